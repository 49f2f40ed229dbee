#include "tests/images/segment_parts.h"

static const struct segment_image_layout *layout_of(struct image *image)
{
	const struct profile *profile = image_profile(image);
	const struct segment_image_layout *at =
		segment_image_layout_of(profile->bits, profile->os_build);
	if (!at)
		image_die("nothing to damage: segment heap");
	return at;
}

/* Makes a cycle. The root pointer is encoded like the pointers to children. Nodes are marked in the
 * order of their keys, so the cycle's nodes are spread over the tree. */
static void large_cycle(struct image *image)
{
	uint64_t root = image_get_ptr(image, model_marked(image, "large tree", 0));
	for (size_t i = 0; image_marked(image, "large node", i); i += 2)
		image_write_ptr(image, model_marked(image, "large node", i), root);
}

BREAK(large_wild, image_write_ptr(image, model_marked(image, "large tree", 0), 0x7ffe1231))
BREAK(large_pages,
	image_write_ptr(image, model_marked(image, "large node", 0) + layout_of(image)->large.pages,
		~UINT64_C(0xffe)))

static void segment_cycle(struct image *image)
{
	uint64_t first = model_marked(image, "page segment", 0);
	image_write_ptr(image, first, first);
}

BREAK(segment_wild, image_write_ptr(image, model_marked(image, "page segment", 0), 0x7ffe1231))

static void segment_key(struct image *image)
{
	uint64_t place =
		model_marked(image, "page segment", 1) + layout_of(image)->segment.signature;
	image_write_ptr(image, place, image_get_ptr(image, place) ^ 0x5500);
}

/* Returns OwnerSlotRef, or 0 in builds that have one list. */
static uint64_t slot_of(struct image *image, uint64_t subsegment)
{
	unsigned owner = layout_of(image)->vs_subsegment.owner;
	return owner ? image_get(image, subsegment + owner, 2) : 0;
}

static void vs_cycle(struct image *image)
{
	uint64_t first = model_marked(image, "vs subsegment", 0);
	uint64_t at = first;
	for (size_t i = 1; at == first && image_marked(image, "vs subsegment", i); i++) {
		uint64_t other = image_marked(image, "vs subsegment", i);
		if (slot_of(image, other) == slot_of(image, first))
			at = other;
	}
	image_write_ptr(image, at, first ^ at);
}

BREAK(unit_size,
	image_write(image,
		model_marked(image, "segment user range", 0) + layout_of(image)->range.unit, 0, 1))
BREAK(unit_size_most,
	image_write(image,
		model_marked(image, "segment user range", 0) + layout_of(image)->range.unit, 0xff,
		1))
BREAK(unused_bytes,
	image_write(image,
		model_marked(image, "segment user range", 0) + layout_of(image)->range.unused,
		UINT32_MAX, 4))

static void vs_size(struct image *image)
{
	uint64_t addr = model_marked(image, "vs chunk", 3);
	image_write_ptr(image, addr, addr ^ image_hp_heap_key(image));
}

static void vs_huge(struct image *image)
{
	uint64_t addr = model_marked(image, "vs chunk", 3);
	uint64_t all = layout_of(image)->bits == 64 ? 0x0001fffffffffffeull : 0xfffffffe;
	image_write_ptr(image, addr, all ^ addr ^ image_hp_heap_key(image));
}

static void write_offsets(struct image *image, uint32_t kept, uint32_t set)
{
	uint64_t addr = model_marked(image, "lfh subsegment", 0);
	bool is_wide = layout_of(image)->subsegment.bucket;
	uint32_t key = (uint32_t)image_hp_lfh_key(image);
	key ^= is_wide ? (uint32_t)(addr >> 12) : (uint32_t)addr >> 12;
	uint64_t place = addr + layout_of(image)->subsegment.offsets;
	uint32_t plain = (uint32_t)image_get(image, place, 4) ^ key;
	image_write(image, place, ((plain & kept) | set) ^ key, 4);
}

BREAK(lfh_block_size, write_offsets(image, 0xffff0000, 0))
BREAK(lfh_first_offset, write_offsets(image, 0xffff, 0xfff00000))

static void lfh_block_count(struct image *image)
{
	for (size_t i = 0; i < 2; i++) {
		uint64_t addr = model_marked(image, "lfh subsegment", i);
		image_write(image, addr + layout_of(image)->subsegment.block_count, 0xffff, 2);
	}
}

/* ---- damage visible only by comparing two structures: ranges of the back end */

static void write_unit(struct image *image, const char *name, unsigned set, unsigned more)
{
	uint64_t place = model_marked(image, name, 0) + layout_of(image)->range.unit;
	image_write(image, place, set ? set : image_get(image, place, 1) + more, 1);
}

BREAK(free_ff, write_unit(image, "segment free range", 0xff, 0))
BREAK(free_more, write_unit(image, "segment free range", 0, 1))
BREAK(lfh_more, write_unit(image, "segment lfh range", 0, 1))

/* Sets the low five bits, which are all flags except on x86. */
static void write_flags(struct image *image, const char *name, unsigned flags)
{
	uint64_t place = model_marked(image, name, 0) + layout_of(image)->range.flags;
	image_write(image, place, (image_get(image, place, 1) & ~UINT64_C(0x1f)) | flags, 1);
}

BREAK(lfh_flags_09, write_flags(image, "segment lfh range", 9))
BREAK(lfh_flags_00, write_flags(image, "segment lfh range", 0))
BREAK(lfh_flags_07, write_flags(image, "segment lfh range", 7))
BREAK(user_flags_01, write_flags(image, "segment user range", 1))

/* Makes page segments of 256 MB, which overlap. */
static void unit_shift(struct image *image)
{
	uint64_t place =
		model_marked(image, "segment context", 0) + layout_of(image)->context.unit_shift;
	if (!layout_of(image)->context.bytes)
		image_die("nothing to damage: a context");
	image_write(image, place, 20, 1);
}

/* ---- LFH subsegments */

static bool is_busy(struct image *image, uint64_t subsegment, unsigned number)
{
	uint64_t bitmap = subsegment + layout_of(image)->subsegment.bitmap;
	if (layout_of(image)->subsegment.bucket)
		return image_get(image, bitmap + number / 32 * 8, 4) >> number % 32 & 1;
	return image_get(image, bitmap + number / 4, 1) >> number % 4 * 2 & 1;
}

static unsigned count_of(struct image *image, uint64_t subsegment)
{
	uint64_t place = subsegment + layout_of(image)->subsegment.block_count;
	return (unsigned)image_get(image, place, 2);
}

/* Returns a subsegment whose last blocks are not all free. */
static uint64_t busy_subsegment(struct image *image)
{
	for (size_t i = 0; image_marked(image, "lfh subsegment", i); i++) {
		uint64_t subsegment = image_marked(image, "lfh subsegment", i);
		unsigned count = count_of(image, subsegment);
		for (unsigned k = count / 2; k < count; k++)
			if (is_busy(image, subsegment, k))
				return subsegment;
	}
	image_die("nothing to damage: busy LFH subsegment");
}

static void lfh_bitmap_0(struct image *image)
{
	uint64_t subsegment = busy_subsegment(image);
	uint64_t bitmap = subsegment + layout_of(image)->subsegment.bitmap;
	unsigned count = count_of(image, subsegment);
	bool is_split = layout_of(image)->subsegment.bucket;
	image_fill(image, bitmap, 0, is_split ? (count + 31) / 32 * 8 : (count + 3) / 4);
}

static void lfh_count_half(struct image *image)
{
	uint64_t subsegment = busy_subsegment(image);
	uint64_t place = subsegment + layout_of(image)->subsegment.block_count;
	image_write(image, place, count_of(image, subsegment) / 2, 2);
}

/* ---- large blocks */

static uint64_t tree_mask(struct image *image, uint64_t tree)
{
	return image_get_ptr(image, tree + image_ptr_bytes(image)) & 1 ? tree : 0;
}

BREAK(large_root_0, image_write_ptr(image, model_marked(image, "large tree", 0), 0))

static void large_child_0(struct image *image)
{
	uint64_t tree = model_marked(image, "large tree", 0);
	uint64_t root = image_get_ptr(image, tree) ^ tree_mask(image, tree);
	image_write_ptr(image, root, 0);
}

/* Breaks a leaf. Nothing follows the leaf, so no other block may be lost. */
static void large_leaf_wild(struct image *image)
{
	for (size_t i = 0; image_marked(image, "large node", i); i++) {
		uint64_t node = image_marked(image, "large node", i);
		unsigned ptr = image_ptr_bytes(image);
		if (!image_get_ptr(image, node) && !image_get_ptr(image, node + ptr)) {
			image_write_ptr(image, node, 0x7ffe1231);
			return;
		}
	}
	image_die("nothing to damage: a leaf");
}

/* ---- stacks */

static void records_wild(struct image *image)
{
	model_marked(image, "segment record", 0);
	for (size_t i = 0; i < 40 && image_marked(image, "segment record", i); i++)
		image_write_ptr(image, image_marked(image, "segment record", i), 0x7ffe1231);
}

const struct image_break segment_breaks[] = {
	{"segment-heap-large-cycle", "the tree of large blocks is a circle", large_cycle},
	{"segment-heap-large-wild", "the tree of large blocks hangs from nothing", large_wild},
	{"segment-heap-large-pages", "a large block has all pages there are", large_pages},
	{"segment-heap-list-wild", "the list of page segments leads nowhere", segment_wild},
	{"segment-heap-list-cycle", "a page segment follows itself", segment_cycle},
	{"segment-heap-key", "a page segment's signature is another heap's", segment_key},
	{"segment-heap-vs-cycle", "the list of VS subsegments is a circle without its head",
		vs_cycle},
	{"segment-heap-unit-size-0", "a range of the back end has no units", unit_size},
	{"segment-heap-unit-size-ff", "a range of the back end is longer than its segment",
		unit_size_most},
	{"segment-heap-unused-bytes", "a block of the back end has 4 GB unused", unused_bytes},
	{"segment-heap-vs-size-0", "a VS chunk has no size", vs_size},
	{"segment-heap-vs-size-ffff", "a VS chunk is larger than its subsegment", vs_huge},
	{"segment-heap-lfh-size-0", "an LFH subsegment's blocks have no size", lfh_block_size},
	{"segment-heap-lfh-offset", "an LFH subsegment's first block lies behind it",
		lfh_first_offset},
	{"segment-heap-lfh-count-ffff", "LFH subsegments count FFFF blocks", lfh_block_count},
	{"segment-heap-free-size-ff", "a free range is longer than its segment", free_ff},
	{"segment-heap-free-size-more", "a free range reaches into the one behind it", free_more},
	{"segment-heap-lfh-range-more", "an LFH range reaches into the one behind it", lfh_more},
	{"segment-heap-lfh-flags-09", "an LFH range says not to begin there", lfh_flags_09},
	{"segment-heap-lfh-flags-00", "an LFH range says to be free", lfh_flags_00},
	{"segment-heap-lfh-flags-07", "an LFH range says to be internal", lfh_flags_07},
	{"segment-heap-user-flags-01", "a block's range says not to begin there", user_flags_01},
	{"segment-heap-unit-shift-20", "page segments lie over each other", unit_shift},
	{"segment-heap-lfh-bitmap-0", "an LFH subsegment's bitmap says that all is free",
		lfh_bitmap_0},
	{"segment-heap-lfh-count-half", "an LFH subsegment counts half of its blocks",
		lfh_count_half},
	{"segment-heap-large-root-0", "the tree of large blocks has no root", large_root_0},
	{"segment-heap-large-child-0", "half of the tree of large blocks is not linked",
		large_child_0},
	{"segment-heap-large-leaf-wild", "a leaf of the tree of large blocks has a wild child",
		large_leaf_wild},
	{"segment-heap-records-wild", "some blocks' stack records are nowhere", records_wild},
	{0},
};
