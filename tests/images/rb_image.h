/* _RTL_RB_TREE as in Windows 10 and 11. */
#ifndef TESTS_IMAGES_RB_IMAGE_H
#define TESTS_IMAGES_RB_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;

struct rb_nodes {
	uint64_t *at;
	size_t count, capacity;
};

void rb_image_add(struct rb_nodes *nodes, uint64_t node);
/* Links nodes into the tree at tree_addr. nodes: addresses of their _RTL_BALANCED_NODEs, in any
 * order. The result is a valid red-black tree, with the colours in the low bits of the parents'
 * pointers. is_encoded: the root and the pointers to children are XORed with the tree's address; a
 * missing child stays 0. */
void rb_image_build(
	struct image *image, uint64_t tree_addr, struct rb_nodes *nodes, bool is_encoded);

#endif
