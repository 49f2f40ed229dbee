#include "tests/images/model_plan.h"
#include "tests/images/nt_model.h"

static const struct made_heap_layout *heap_of(struct image *image)
{
	return made_heap_layout(image_profile(image)->bits, image_profile(image)->os_build);
}

static const struct made_nt_shape *shape_of(struct image *image)
{
	return made_nt_shape(image_profile(image)->bits);
}

static const struct made_lfh_layout *lfh_of(struct image *image)
{
	return made_lfh_layout(image_profile(image)->bits, image_profile(image)->os_build);
}

/* Returns the entry after the heap's own header. */
static uint64_t some_entry(struct image *image)
{
	return model_marked(image, "nt.heap", 0) + heap_of(image)->first_entry +
	       shape_of(image)->header_at;
}

static void cycle_segments(struct image *image)
{
	uint64_t link = model_marked(image, "nt.segment", 0) + shape_of(image)->segment_link;
	image_write_ptr(image, link, link);
}

BREAK(segment_wild,
	image_write_ptr(image, model_marked(image, "nt.segment", 0) + shape_of(image)->segment_link,
		0x7ffe0001))
BREAK(segment_last_wild,
	image_write_ptr(image, model_marked(image, "nt.segment", 0) + shape_of(image)->segment_last,
		UINT64_MAX))

static void cycle_virtual(struct image *image)
{
	uint64_t big = model_marked(image, "nt.big", 0);
	image_write_ptr(image, big, big);
}

BREAK(commit_huge,
	image_write_ptr(image, model_marked(image, "nt.big", 0) + shape_of(image)->big_commit,
		UINT64_MAX & ~(uint64_t)0xfff))
BREAK(commit_2_63,
	image_write_ptr(image, model_marked(image, "nt.big", 0) + shape_of(image)->big_commit,
		(uint64_t)1 << (8 * image_ptr_bytes(image) - 1)))

static void write_size(struct image *image, unsigned size)
{
	/* The stored size is coded, so another key changes the decoded size. */
	uint64_t key = model_marked(image, "nt.heap", 0) + shape_of(image)->encoding +
		       shape_of(image)->header_at;
	uint64_t entry = some_entry(image);
	uint8_t plain[4] = {(uint8_t)size, (uint8_t)(size >> 8), NT_BUSY, 0};
	plain[3] = plain[0] ^ plain[1] ^ plain[2];
	for (unsigned i = 0; i < sizeof(plain); i++)
		image_write(image, entry + i, plain[i] ^ image_get(image, key + i, 1), 1);
}

BREAK(size_zero, write_size(image, 0))
BREAK(size_huge, write_size(image, 0xffff))

static void checksum_wrong(struct image *image)
{
	uint64_t at = some_entry(image) + 3;
	image_write(image, at, image_get(image, at, 1) ^ 0x55, 1);
}

static void encoding_wrong(struct image *image)
{
	uint64_t key = model_marked(image, "nt.heap", 0) + shape_of(image)->encoding +
		       shape_of(image)->header_at;
	image_write(image, key, ~image_get(image, key, 4), 4);
}

BREAK(signature_wrong,
	image_write(image, model_marked(image, "nt.heap", 0) + heap_of(image)->signature,
		0x12345678, 4))

static void uncommitted_wild(struct image *image)
{
	uint64_t ucr = model_marked(image, "nt.ucr", 0);
	image_write_ptr(image, ucr + shape_of(image)->ucr_address, 0x1000);
	image_write_ptr(image, ucr + shape_of(image)->ucr_size, UINT64_MAX);
}

static void cycle_uncommitted(struct image *image)
{
	uint64_t link = model_marked(image, "nt.ucr", 0) + shape_of(image)->ucr_segment_link;
	image_write_ptr(image, link, link);
}

static void pointer_wild(struct image *image)
{
	uint64_t heap = model_marked(image, "nt.heap", 0);
	image_write_ptr(image, heap + heap_of(image)->segment_list, 0xfffffffffffffff8);
	image_write_ptr(image, heap + heap_of(image)->virtual_blocks, 0xfffffffffffffff8);
	image_write_ptr(image, heap + heap_of(image)->front_end, 0xfffffffffffffff8);
}

/* The dump has no range with the page, and no uncommitted range covers it. */
BREAK(page_missing, image_decommit(image, model_marked(image, "nt.heap", 0) + 0x5000, 0x1000))
BREAK(header_missing, image_decommit(image, model_marked(image, "nt.segment", 0), 0x1000))

/* ---- the front end */

static void cycle_zones(struct image *image)
{
	uint64_t zone = model_marked(image, "lfh.zone", 0);
	image_write_ptr(image, zone, zone);
}

static void key_wrong(struct image *image)
{
	/* Give each container another key, so that no key fits more than one container. */
	for (size_t i = 0; image_marked(image, "lfh.container", i); i++) {
		uint64_t offsets = image_marked(image, "lfh.container", i) + lfh_of(image)->offsets;
		image_write(image, offsets, image_random(image, UINT32_MAX), 4);
	}
}

static void stride_zero(struct image *image)
{
	uint64_t offsets = model_marked(image, "lfh.container", 0) + lfh_of(image)->offsets;
	uint64_t subsegment = model_marked(image, "lfh.subsegment", 0);
	image_write(image, subsegment + lfh_of(image)->block_size, 0, 2);
	if (lfh_of(image)->offsets) {
		uint32_t key = lfh_of(image)->are_offsets_coded ?
				       (uint32_t)model_marked(image, "lfh.container", 0) ^
					       (uint32_t)model_marked(image, "lfh.heap", 0) ^
					       image_lfh_key(image) :
				       0;
		image_write(image, offsets, 0x40 ^ key, 4);
	}
}

static void block_count(struct image *image)
{
	image_write(image, model_marked(image, "lfh.subsegment", 0) + lfh_of(image)->block_count,
		0xffff, 2);
	if (lfh_of(image)->bitmap)
		image_write(image, model_marked(image, "lfh.container", 0) + lfh_of(image)->bitmap,
			UINT32_MAX, 4);
}

BREAK(bitmap_wild,
	image_write_ptr(image,
		model_marked(image, "lfh.container", 0) + lfh_of(image)->bitmap_buffer, 0xfffffff0))
BREAK(zone_end_wild,
	image_write_ptr(
		image, model_marked(image, "lfh.zone", 0) + lfh_of(image)->zone_end, 0x7fffffff))
BREAK(container_shared,
	image_write_ptr(image,
		model_marked(image, "lfh.subsegment", 1) + lfh_of(image)->user_blocks,
		model_marked(image, "lfh.container", 0)))

/* ---- back end: damage visible only by comparing two structures */

BREAK(unused_3,
	image_write(image, model_marked(image, "nt.block", 10) + shape_of(image)->header_at + 7,
		NT_UNUSED_LAST, 1))

static void commit_half(struct image *image)
{
	uint64_t at = model_marked(image, "nt.big", 0) + shape_of(image)->big_commit;
	image_write_ptr(image, at, image_get_ptr(image, at) / 2);
}

static void commit_more(struct image *image)
{
	uint64_t at = model_marked(image, "nt.big", 0) + shape_of(image)->big_commit;
	image_write_ptr(image, at, image_get_ptr(image, at) + 0x10000);
}

static void big_prefix(struct image *image)
{
	const struct made_nt_shape *shape = shape_of(image);
	uint64_t at = model_marked(image, "nt.big prefix", 0) + shape->prefix_header;
	image_write(image, at, 0x4141414141414141, 8);
}

/* ---- front end: damage visible only by comparing two structures */

static uint64_t bitmap_at(struct image *image, size_t number)
{
	const struct made_lfh_layout *lfh = lfh_of(image);
	if (!lfh->bitmap)
		image_die("nothing to damage: a bitmap");
	return model_marked(image, "lfh.container", number) + lfh->bitmap_data;
}

static unsigned bits_at(struct image *image, size_t number)
{
	uint64_t container = model_marked(image, "lfh.container", number);
	return (unsigned)image_get(image, container + lfh_of(image)->bitmap, 4);
}

/* Returns the first byte of a container's bitmap that has a bit set. With is_clear, returns the
 * first byte that has a bit clear. */
static uint64_t some_bits(struct image *image, bool is_clear)
{
	for (size_t i = 0; image_marked(image, "lfh.container", i); i++) {
		uint64_t at = bitmap_at(image, i);
		for (unsigned k = 0; k < bits_at(image, i) / 8; k++) {
			uint64_t byte = image_get(image, at + k, 1);
			if (is_clear ? byte != 0xff : byte != 0)
				return at + k;
		}
	}
	image_die("nothing to damage: such a bit");
}

BREAK(bitmap_zero, image_fill(image, bitmap_at(image, 0), 0, (bits_at(image, 0) + 7) / 8))

static void bit_cleared(struct image *image)
{
	uint64_t at = some_bits(image, false);
	uint64_t byte = image_get(image, at, 1);
	image_write(image, at, byte & (byte - 1), 1);
}

static void bit_set(struct image *image)
{
	uint64_t at = some_bits(image, true);
	uint64_t byte = image_get(image, at, 1);
	image_write(image, at, byte | (byte + 1), 1);
}

static void count_to(struct image *image, unsigned part)
{
	uint64_t at = model_marked(image, "lfh.subsegment", 0) + lfh_of(image)->block_count;
	image_write(image, at, part ? image_get(image, at, 2) / part : 0, 2);
}

BREAK(count_0, count_to(image, 0))
BREAK(count_half, count_to(image, 2))
BREAK(blocks_0, image_write_ptr(image,
			model_marked(image, "lfh.subsegment", 0) + lfh_of(image)->user_blocks, 0))

const struct image_break nt_breaks[] = {
	{"missing-page", "a page of the first heap's first segment is not there", page_missing},
	{"missing-header", "the first heap's first page is not there", header_missing},
	{"cycle-segments", "the first segment's link leads to itself", cycle_segments},
	{"segment-wild", "the first segment's link leads to nothing", segment_wild},
	{"segment-last-wild", "the first segment ends at 2^64-1", segment_last_wild},
	{"cycle-virtual", "the first big block's link leads to itself", cycle_virtual},
	{"commit-huge", "a big block says to have almost all addresses", commit_huge},
	{"size-2-63", "a big block says to have 2^63 (2^31) bytes", commit_2_63},
	{"size-zero", "an entry of no size, with a right checksum", size_zero},
	{"size-huge", "an entry of FFFFh units, with a right checksum", size_huge},
	{"checksum-wrong", "an entry's checksum is wrong", checksum_wrong},
	{"encoding-wrong", "the heap's key is not what headers were coded with", encoding_wrong},
	{"signature-wrong", "the heap's signature is none", signature_wrong},
	{"uncommitted-wild", "an uncommitted range is everywhere", uncommitted_wild},
	{"cycle-uncommitted", "an uncommitted range's link leads to itself", cycle_uncommitted},
	{"pointer-wild", "the heap's pointers lead to nothing", pointer_wild},
	{"cycle-zones", "the first zone's link leads to itself", cycle_zones},
	{"lfh-key-wrong", "no key fits more than one container", key_wrong},
	{"lfh-stride-zero", "a container's blocks have no size", stride_zero},
	{"lfh-count-ffff", "a container says to have FFFFh blocks, or more", block_count},
	{"lfh-bitmap-wild", "a container's bitmap is elsewhere", bitmap_wild},
	{"lfh-zone-end-wild", "a zone says to have 2^31-1 subsegments", zone_end_wild},
	{"lfh-container-shared", "two subsegments have one container", container_shared},
	{"nt-unused-3", "a block in mid-run says to end what is committed", unused_3},
	{"nt-commit-half", "a big block's CommitSize is half of what it is", commit_half},
	{"nt-commit-more", "a big block's CommitSize is 64 KB more than it is", commit_more},
	{"nt-big-prefix", "the prefix of a big block is overwritten", big_prefix},
	{"lfh-bitmap-zero", "a container's bitmap says that all is free", bitmap_zero},
	{"lfh-bit-clear", "a bit is clear, though the block's mark says busy", bit_cleared},
	{"lfh-bit-set", "a bit is set, though the block's mark says free", bit_set},
	{"lfh-count-0", "a subsegment counts no blocks", count_0},
	{"lfh-count-half", "a subsegment counts half of its blocks", count_half},
	{"lfh-blocks-0", "a subsegment has no container, though one is its", blocks_0},
	{0},
};
