#include "tests/images/model_plan.h"
#include "tests/images/page_parts.h"

static const struct page_image_layout *layout_of(struct image *image)
{
	return page_image_layout_of(image_ptr_bytes(image) * 8);
}

static uint64_t top_of_tree(struct image *image)
{
	uint64_t table = model_marked(image, "page table", 0);
	return image_get_ptr(image, table + 2ull * image_ptr_bytes(image));
}

/* Links nodes into a cycle. Nodes are not marked in the tree's order, so the cycle's nodes are
 * spread over the tree. */
static void avl_cycle(struct image *image)
{
	uint64_t top = top_of_tree(image);
	for (size_t i = 0; i < 5; i++) {
		uint64_t node = model_marked(image, "page node", i);
		image_write_ptr(image, node + image_ptr_bytes(image), top);
	}
}

BREAK(avl_wild,
	image_write_ptr(image, model_marked(image, "page table", 0) + 2ull * image_ptr_bytes(image),
		0x7ffe1232))

static void list_wild(struct image *image)
{
	uint64_t link = model_marked(image, "page root", 0) + layout_of(image)->root.next;
	image_write_ptr(image, image_get_ptr(image, link + image_ptr_bytes(image)), 0x7ffe1232);
}

static void list_cycle(struct image *image)
{
	uint64_t link = model_marked(image, "page root", 0) + layout_of(image)->root.next;
	image_write_ptr(image, link, link);
}

static void requested(struct image *image)
{
	unsigned ptr = image_ptr_bytes(image);
	uint64_t field = model_marked(image, "page node", 1) + layout_of(image)->block.requested;
	image_write_ptr(image, field, UINT64_C(1) << (ptr * 8 - 1));
}

static void base_wild(struct image *image)
{
	uint64_t node = model_marked(image, "page node", 1);
	image_write_ptr(image, node + layout_of(image)->block.base, UINT64_MAX - 0xfff);
	image_write_ptr(image, node + layout_of(image)->block.user, UINT64_MAX - 0xf);
}

/* ---- damage visible only by comparing two structures */

/* Returns the address of a field of a node whose block is not empty. */
static uint64_t node_field(struct image *image, unsigned offset)
{
	unsigned requested = layout_of(image)->block.requested;
	size_t number = 1;
	while (image_get_ptr(image, model_marked(image, "page node", number) + requested) < 0x40)
		number++;
	return model_marked(image, "page node", number) + offset;
}

BREAK(size_huge, image_write_ptr(image, node_field(image, layout_of(image)->block.base_bytes),
			 UINT64_C(1) << (image_ptr_bytes(image) == 8 ? 46 : 31)))

static void into_guard(struct image *image)
{
	uint64_t field = node_field(image, layout_of(image)->block.requested);
	image_write_ptr(image, field, image_get_ptr(image, field) + 0x800);
}

static void user_moved(struct image *image)
{
	uint64_t field = node_field(image, layout_of(image)->block.user);
	image_write_ptr(image, field, image_get_ptr(image, field) - 0x20);
}

static void same_base(struct image *image)
{
	const uint8_t fields[] = {layout_of(image)->block.user, layout_of(image)->block.base,
		layout_of(image)->block.requested, layout_of(image)->block.base_bytes};
	uint64_t other = model_marked(image, "page node", 0);
	for (size_t i = 0; i < sizeof fields; i++)
		image_write_ptr(image, node_field(image, fields[i]),
			image_get_ptr(image, other + fields[i]));
}

BREAK(avl_child, image_write_ptr(image, top_of_tree(image) + image_ptr_bytes(image), 0))

/* Breaks a leaf. Nothing follows the leaf, so no other block may be lost. */
static void avl_leaf(struct image *image)
{
	unsigned ptr = image_ptr_bytes(image);
	for (size_t i = 0; image_marked(image, "page node", i); i++) {
		uint64_t node = image_marked(image, "page node", i);
		if (!image_get_ptr(image, node + ptr) && !image_get_ptr(image, node + 2ull * ptr)) {
			image_write_ptr(image, node + ptr, 0x7ffe1232);
			return;
		}
	}
	image_die("nothing to damage: a leaf");
}

BREAK(light_stamp, image_write(image, model_marked(image, "light info", 1), 0xabcdaaa9, 4))

static void light_requested(struct image *image)
{
	uint64_t info = model_marked(image, "light info", 1);
	image_write_ptr(image, info + layout_of(image)->info.requested, UINT64_MAX / 2);
}

const struct image_break page_breaks[] = {
	{"page-heap-avl-cycle", "the tree of busy blocks is a circle", avl_cycle},
	{"page-heap-avl-wild", "the tree of busy blocks hangs from nothing", avl_wild},
	{"page-heap-list-wild", "the list of page heaps leads nowhere", list_wild},
	{"page-heap-list-cycle", "a page heap's root follows itself", list_cycle},
	{"page-heap-requested-huge", "a block asked for half of all addresses", requested},
	{"page-heap-block-wild", "a block lies at the end of all addresses", base_wild},
	{"page-heap-size-huge", "a block's pages are almost all there are", size_huge},
	{"page-heap-into-guard", "a block reaches into the page behind it", into_guard},
	{"page-heap-user-moved", "a block's address is not where its pages want it", user_moved},
	{"page-heap-same-place", "two blocks lie in the same place", same_base},
	{"page-heap-avl-child-0", "half of the tree of busy blocks is not linked", avl_child},
	{"page-heap-avl-leaf-wild", "a leaf of the tree of busy blocks has a wild child", avl_leaf},
	{"page-heap-light-stamp", "a light page heap's block has the stamp of a freed one",
		light_stamp},
	{"page-heap-light-requested-huge", "a light page heap's block asked for 2^63 bytes",
		light_requested},
	{0},
};
