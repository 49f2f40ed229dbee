#include "tests/images/rb_image.h"

#include <stdlib.h>

#include "tests/images/made_image.h"

struct rb_build {
	struct image *image;
	const uint64_t *nodes;
	uint64_t mask; /* value that is XORed with every link */
	unsigned red_depth;
};

static uint64_t encoded(const struct rb_build *build, uint64_t link)
{
	return link ? link ^ build->mask : 0;
}

/* Makes the tree of nodes first..end-1 by halving; returns its root. Only the last level may have
 * gaps. That level's nodes are red. */
static uint64_t build_part(
	const struct rb_build *build, size_t first, size_t end, uint64_t parent, unsigned depth)
{
	if (first == end)
		return 0;
	size_t middle = first + (end - first) / 2;
	uint64_t node = build->nodes[middle];
	unsigned ptr = image_ptr_bytes(build->image);
	uint64_t left = build_part(build, first, middle, node, depth + 1);
	uint64_t right = build_part(build, middle + 1, end, node, depth + 1);
	bool is_red = depth && depth == build->red_depth;
	image_write_ptr(build->image, node, encoded(build, left));
	image_write_ptr(build->image, node + ptr, encoded(build, right));
	image_write_ptr(build->image, node + 2ull * ptr, parent | is_red);
	return node;
}

static int by_address(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;
	return (*a > *b) - (*a < *b);
}

void rb_image_add(struct rb_nodes *nodes, uint64_t node)
{
	nodes->at = image_grow(nodes->at, &nodes->capacity, nodes->count, sizeof *nodes->at);
	nodes->at[nodes->count++] = node;
}

void rb_image_build(
	struct image *image, uint64_t tree_addr, struct rb_nodes *nodes, bool is_encoded)
{
	struct rb_build build = {
		.image = image, .nodes = nodes->at, .mask = is_encoded ? tree_addr : 0};
	if (nodes->count)
		qsort(nodes->at, nodes->count, sizeof *nodes->at, by_address);
	while (nodes->count >> (build.red_depth + 1))
		build.red_depth++;
	uint64_t root = build_part(&build, 0, nodes->count, 0, 0);
	uint64_t least = nodes->count ? nodes->at[0] : 0;
	image_write_ptr(image, tree_addr, encoded(&build, root));
	image_write_ptr(image, tree_addr + image_ptr_bytes(image), least | is_encoded);
}
