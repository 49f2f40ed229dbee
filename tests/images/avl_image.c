/* _RTL_AVL_TABLE. BalancedRoot.RightChild points to the topmost node, whose Parent is BalancedRoot.
 * BalancedRoot's own Parent is BalancedRoot itself. */
#include "tests/images/page_parts.h"

struct avl_build {
	struct image *image;
	const struct page_image_layout *at;
	const uint64_t *nodes;
};

static void write_links(const struct avl_build *build, uint64_t node, uint64_t parent,
	uint64_t left, uint64_t right)
{
	unsigned ptr = image_ptr_bytes(build->image);
	image_write_ptr(build->image, node, parent);
	image_write_ptr(build->image, node + ptr, left);
	image_write_ptr(build->image, node + 2ull * ptr, right);
}

/* Makes the tree of nodes first..end-1; returns its root and stores its height. */
static uint64_t build_part(
	const struct avl_build *build, size_t first, size_t end, uint64_t parent, unsigned *height)
{
	unsigned left_height = 0, right_height = 0;
	*height = 0;
	if (first == end)
		return 0;
	size_t middle = first + (end - first) / 2;
	uint64_t node = build->nodes[middle];
	uint64_t left = build_part(build, first, middle, node, &left_height);
	uint64_t right = build_part(build, middle + 1, end, node, &right_height);
	write_links(build, node, parent, left, right);
	image_write(build->image, node + build->at->table.balance,
		(uint8_t)(right_height - left_height), 1);
	*height = 1 + (left_height > right_height ? left_height : right_height);
	return node;
}

void avl_image_build(struct image *image, const struct page_image_layout *at, uint64_t table_addr,
	const uint64_t *nodes, size_t count)
{
	struct avl_build build = {image, at, nodes};
	unsigned height;
	uint64_t top = build_part(&build, 0, count, table_addr, &height);
	write_links(&build, table_addr, table_addr, 0, top);
	image_write(image, table_addr + at->table.count, count, 4);
	image_write(image, table_addr + at->table.depth, height, 4);
}
