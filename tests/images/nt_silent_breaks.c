/*
 * Damage to NT heaps that leaves all that is read plausible: it is only seen by comparing one thing
 * with another.
 */
#include "tests/images/model_plan.h"
#include "tests/images/nt_model.h"

static const struct made_lfh_layout *lfh_of(struct image *image)
{
	const struct profile *profile = image_profile(image);
	return made_lfh_layout(profile->bits, profile->os_build);
}

static const struct made_nt_shape *shape_of(struct image *image)
{
	return made_nt_shape(image_profile(image)->bits);
}

/* ---- the back end */

static void unused_3(struct image *image)
{
	uint64_t entry = model_marked(image, "nt.block", 10);
	image_put(image, entry + shape_of(image)->header_at + 7, NT_UNUSED_LAST, 1);
}

static void commit_half(struct image *image)
{
	uint64_t at = model_marked(image, "nt.big", 0) + shape_of(image)->big_commit;
	image_put_ptr(image, at, image_get_ptr(image, at) / 2);
}

static void commit_more(struct image *image)
{
	uint64_t at = model_marked(image, "nt.big", 0) + shape_of(image)->big_commit;
	image_put_ptr(image, at, image_get_ptr(image, at) + 0x10000);
}

static void big_prefix(struct image *image)
{
	const struct made_nt_shape *shape = shape_of(image);
	uint64_t at = model_marked(image, "nt.big prefix", 0) + shape->prefix_header;
	image_put(image, at, 0x4141414141414141, 8);
}

/* ---- the front end */

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

/* The first byte of some container's bitmap that has bits, and one that is not full. */
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

static void bitmap_zero(struct image *image)
{
	uint64_t first = bitmap_at(image, 0);
	image_fill(image, first, 0, (bits_at(image, 0) + 7) / 8);
}

static void bit_cleared(struct image *image)
{
	uint64_t at = some_bits(image, false);
	uint64_t byte = image_get(image, at, 1);
	image_put(image, at, byte & (byte - 1), 1);
}

static void bit_set(struct image *image)
{
	uint64_t at = some_bits(image, true);
	uint64_t byte = image_get(image, at, 1);
	image_put(image, at, byte | (byte + 1), 1);
}

static void count_to(struct image *image, unsigned part)
{
	uint64_t at = model_marked(image, "lfh.subsegment", 0) + lfh_of(image)->block_count;
	image_put(image, at, part ? image_get(image, at, 2) / part : 0, 2);
}

static void count_0(struct image *image)
{
	count_to(image, 0);
}

static void count_half(struct image *image)
{
	count_to(image, 2);
}

static void blocks_0(struct image *image)
{
	uint64_t subsegment = model_marked(image, "lfh.subsegment", 0);
	image_put_ptr(image, subsegment + lfh_of(image)->user_blocks, 0);
}

const struct image_break nt_silent_breaks[] = {
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
