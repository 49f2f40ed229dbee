/*
 * Damage to segment heaps.
 */
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

/* The tree's pointer to its root is as encoded as those to children are. Nodes are marked in the
 * order of their keys, so these are all over the tree. */
static void large_cycle(struct image *image)
{
	uint64_t root = image_get_ptr(image, model_marked(image, "large tree", 0));
	for (size_t i = 0; image_marked(image, "large node", i); i += 2)
		image_put_ptr(image, model_marked(image, "large node", i), root);
}

static void large_wild(struct image *image)
{
	image_put_ptr(image, model_marked(image, "large tree", 0), 0x7ffe1231);
}

static void large_pages(struct image *image)
{
	uint64_t node = model_marked(image, "large node", 0);
	image_put_ptr(image, node + layout_of(image)->large.pages, ~UINT64_C(0xffe));
}

static void segment_cycle(struct image *image)
{
	uint64_t first = model_marked(image, "page segment", 0);
	image_put_ptr(image, first, first);
}

static void segment_wild(struct image *image)
{
	image_put_ptr(image, model_marked(image, "page segment", 0), 0x7ffe1231);
}

static void segment_key(struct image *image)
{
	uint64_t place =
		model_marked(image, "page segment", 1) + layout_of(image)->segment.signature;
	image_put_ptr(image, place, image_get_ptr(image, place) ^ 0x5500);
}

static void vs_cycle(struct image *image)
{
	uint64_t first = model_marked(image, "vs subsegment", 0);
	uint64_t second = image_marked(image, "vs subsegment", 1);
	uint64_t at = second ? second : first;
	image_put_ptr(image, at, first ^ at);
}

static void unit_size(struct image *image)
{
	uint64_t place =
		model_marked(image, "segment user range", 0) + layout_of(image)->range.unit;
	image_put(image, place, 0, 1);
}

static void unit_size_most(struct image *image)
{
	uint64_t place =
		model_marked(image, "segment user range", 0) + layout_of(image)->range.unit;
	image_put(image, place, 0xff, 1);
}

static void unused_bytes(struct image *image)
{
	uint64_t place =
		model_marked(image, "segment user range", 0) + layout_of(image)->range.unused;
	image_put(image, place, UINT32_MAX, 4);
}

static void vs_size(struct image *image)
{
	uint64_t addr = model_marked(image, "vs chunk", 3);
	image_put_ptr(image, addr, addr ^ image_hp_heap_key(image));
}

static void vs_huge(struct image *image)
{
	uint64_t addr = model_marked(image, "vs chunk", 3);
	uint64_t all = layout_of(image)->bits == 64 ? 0x0001fffffffffffeull : 0xfffffffe;
	image_put_ptr(image, addr, all ^ addr ^ image_hp_heap_key(image));
}

/* Sets the two halves of BlockOffsets. */
static void put_offsets(struct image *image, uint32_t kept, uint32_t set)
{
	uint64_t addr = model_marked(image, "lfh subsegment", 0);
	uint32_t key = (uint32_t)image_hp_lfh_key(image) ^ (uint32_t)addr >> 12;
	uint64_t place = addr + layout_of(image)->subsegment.offsets;
	uint32_t plain = (uint32_t)image_get(image, place, 4) ^ key;
	image_put(image, place, ((plain & kept) | set) ^ key, 4);
}

static void lfh_block_size(struct image *image)
{
	put_offsets(image, 0xffff0000, 0);
}

static void lfh_first_offset(struct image *image)
{
	put_offsets(image, 0xffff, 0xfff00000);
}

static void lfh_block_count(struct image *image)
{
	for (size_t i = 0; i < 2; i++) {
		uint64_t addr = model_marked(image, "lfh subsegment", i);
		image_put(image, addr + layout_of(image)->subsegment.block_count, 0xffff, 2);
	}
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
	{0},
};
