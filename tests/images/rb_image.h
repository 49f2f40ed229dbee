/*
 * _RTL_RB_TREE as Windows 10 and 11 keep it.
 */
#ifndef TESTS_IMAGES_RB_IMAGE_H
#define TESTS_IMAGES_RB_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;

/* Links nodes (their _RTL_BALANCED_NODEs' addresses, rising) into the tree at tree_addr: a legal
 * red-black tree, colours in the parents' low bits. is_encoded: its root and children are XORed
 * with the tree's address; no child stays 0. */
void rb_image_build(struct image *image, uint64_t tree_addr, const uint64_t *nodes, size_t count,
	bool is_encoded);

#endif
