#include <string.h>

#include "snapshot/heap/segment/segment_heap.h"

#define BITMAP_BYTES_MAX (0xffffu / 4 + 1)

/* Whoever owns a subsegment, a bucket or an affinity slot, knows the bucket. */
static int bucket_of(struct segment_heap *heap, uint64_t addr)
{
	const struct segment_parts *parts = heap->parts;
	uint64_t owner;
	uint8_t bucket;

	if (memory_ptr(heap->nt->memory, parts->bits, addr + parts->lfh_owner, &owner) || !owner ||
		owner & 1 || memory_u8(heap->nt->memory, owner + parts->owner_bucket, &bucket))
		return -1;
	return bucket;
}

/* The header with its bitmap of two bits per block, in whole words. */
static uint32_t header_bytes(const struct segment_parts *parts, uint32_t block_count)
{
	uint32_t words = (block_count * 2 + parts->bits - 1) / parts->bits;

	return parts->lfh_bitmap + words * (parts->bits / 8);
}

bool lfh_sample_read(
	struct segment_heap *heap, uint64_t addr, uint64_t bytes, struct lfh_sample *sample)
{
	const struct segment_parts *parts = heap->parts;
	const unsigned char *header;
	uint16_t withheld = heap->layout->lfh_withheld;

	if (bytes < parts->lfh_bitmap)
		return false;
	header = memory_at(heap->nt->memory, addr, parts->lfh_bitmap);
	if (!header)
		return false;
	*sample = (struct lfh_sample){.addr = addr,
		.bytes = bytes,
		.free_count = bytes_u16(header + parts->lfh_free_count),
		.block_count = bytes_u16(header + parts->lfh_block_count),
		.encoded = bytes_u32(header + parts->lfh_offsets),
		.withheld_count = withheld ? header[withheld] : 0};
	sample->header_bytes = header_bytes(parts, sample->block_count);
	sample->bucket = bucket_of(heap, addr);
	return sample->block_count && sample->header_bytes < bytes;
}

struct lfh_offsets lfh_decode(const struct lfh_sample *sample, uint32_t key, bool is_wide)
{
	uint32_t mask = is_wide ? (uint32_t)(sample->addr >> 12) : (uint32_t)sample->addr >> 12;
	uint32_t plain = sample->encoded ^ key ^ mask;

	return (struct lfh_offsets){.block_bytes = plain & 0xffff, .first = plain >> 16};
}

bool lfh_offsets_fit(const struct segment_parts *parts, const struct lfh_sample *sample,
	const struct lfh_offsets *offsets)
{
	uint64_t blocks = (uint64_t)sample->block_count * offsets->block_bytes;

	return offsets->block_bytes && offsets->block_bytes % parts->unit == 0 &&
	       offsets->first % parts->unit == 0 && offsets->first >= sample->header_bytes &&
	       offsets->first < sample->bytes && blocks <= sample->bytes - offsets->first;
}

/* ---------------------------------------------------------------- live blocks */

struct lfh {
	struct segment_heap *heap;
	const struct lfh_sample *sample;
	uint64_t first;
	uint32_t block_bytes;
	bool skips_crossing; /* live blocks that cross a page are withheld ones */
	unsigned char bitmap[BITMAP_BYTES_MAX];
};

static unsigned state_of(const struct lfh *lfh, uint32_t k)
{
	return lfh->bitmap[k / 4] >> k % 4 * 2 & 3;
}

static bool crosses_page(const struct lfh *lfh, uint64_t addr)
{
	return (addr ^ (addr + lfh->block_bytes - 1)) / CLAIM_PAGE_BYTES != 0;
}

/*
 * A subsegment may withhold the blocks that cross a page; how it marks them is not known. Withheld
 * ones are never given out: so when as many blocks that cross a page are marked live as there are
 * withheld ones, these are they.
 */
static void withheld_find(struct lfh *lfh)
{
	uint32_t crossing = 0, withheld = lfh->sample->withheld_count;

	for (uint32_t k = 0; withheld && k < lfh->sample->block_count; k++) {
		crossing += (state_of(lfh, k) & 1) &&
			    crosses_page(lfh, lfh->first + (uint64_t)k * lfh->block_bytes);
	}
	lfh->skips_crossing = crossing && crossing <= withheld;
	if (crossing > withheld && withheld)
		walk_broken(lfh->heap->nt->walk, lfh->sample->addr,
			"LFH blocks of which some are withheld");
}

static uint32_t busy_count(const struct lfh *lfh)
{
	static const uint8_t of_four_bits[16] = {0, 1, 0, 1, 1, 2, 1, 2, 0, 1, 0, 1, 1, 2, 1, 2};
	uint32_t whole = lfh->sample->block_count / 4, count = 0;

	for (uint32_t i = 0; i < whole; i++)
		count += of_four_bits[lfh->bitmap[i] & 15] + of_four_bits[lfh->bitmap[i] >> 4];
	for (uint32_t k = whole * 4; k < lfh->sample->block_count; k++)
		count += state_of(lfh, k) & 1;
	return count;
}

/* Why a subsegment's counts cannot be true, or NULL. Withheld blocks may count as either or neither. */
static const char *counts_fault(const struct lfh *lfh)
{
	const struct lfh_sample *sample = lfh->sample;
	uint32_t sum = busy_count(lfh) + sample->free_count;

	if (sum + sample->withheld_count < sample->block_count)
		return "LFH blocks neither free nor in use";
	if (sum > sample->block_count + sample->withheld_count)
		return "more LFH blocks free and in use than there are";
	return NULL;
}

static int live_block(struct lfh *lfh, uint64_t addr, bool has_unused)
{
	struct segment_block block = {.addr = addr, .bytes = lfh->block_bytes};
	struct segment_tail tail = {0};

	if (has_unused && !segment_tail_read(lfh->heap, addr + lfh->block_bytes, lfh->block_bytes,
				  SEGMENT_TAIL_LFH, &tail))
		walk_broken(lfh->heap->nt->walk, addr, "LFH block smaller than unused");
	block.unused_bytes = tail.unused_bytes;
	block.has_extra = tail.has_extra;
	return segment_block_add(lfh->heap, &block);
}

static int live_blocks(struct lfh *lfh)
{
	int rc = 0;

	for (uint32_t k = 0; !rc && k < lfh->sample->block_count; k++) {
		unsigned state = state_of(lfh, k);
		uint64_t addr = lfh->first + (uint64_t)k * lfh->block_bytes;

		if ((state & 1) && !(lfh->skips_crossing && crosses_page(lfh, addr)))
			rc = live_block(lfh, addr, state & 2);
	}
	return rc;
}

/* Reads the bitmap and finds the first block: false when it is not there. */
static bool lfh_open(struct lfh *lfh, const struct lfh_offsets *offsets)
{
	lfh->first = lfh->sample->addr + offsets->first;
	lfh->block_bytes = offsets->block_bytes;
	return !memory_copy(lfh->heap->nt->memory, lfh->sample->addr + lfh->heap->parts->lfh_bitmap,
		lfh->bitmap, (lfh->sample->block_count + 3) / 4);
}

int segment_lfh_walk(struct segment_heap *heap, uint64_t addr, uint64_t bytes)
{
	const struct segment_keys *keys = &heap->nt->segment_keys;
	struct walk *walk = heap->nt->walk;
	struct lfh_sample sample;
	struct lfh lfh = {.heap = heap, .sample = &sample};
	struct lfh_offsets offsets;
	const char *fault;
	int rc = segment_lfh_key_find(heap->nt);

	if (rc)
		return rc;
	if (!lfh_sample_read(heap, addr, bytes, &sample))
		return segment_fault(heap, addr, "broken LFH subsegment");
	if (!keys->has_lfh)
		return walk_broken(walk, addr, "LFH subsegment of no certain key");
	offsets = lfh_decode(&sample, keys->lfh, keys->is_wide);
	if (!lfh_offsets_fit(heap->parts, &sample, &offsets))
		return walk_broken(walk, addr, "LFH subsegment of another key");
	if (!lfh_open(&lfh, &offsets))
		return walk_missing(walk, addr, "unreadable LFH subsegment");
	withheld_find(&lfh);
	fault = counts_fault(&lfh);
	if (fault)
		walk_broken(walk, addr, fault);
	return live_blocks(&lfh);
}

/* ---------------------------------------------------------------- what may be one */

/* Cheap, for many blocks are asked: few bytes are such counts. */
static bool may_be_lfh(struct segment_heap *heap, uint64_t addr, uint64_t bytes)
{
	const struct segment_parts *parts = heap->parts;
	const unsigned char *header = bytes > parts->lfh_bitmap ?
					      memory_at(heap->nt->memory, addr, parts->lfh_bitmap) :
					      NULL;
	uint32_t blocks = header ? bytes_u16(header + parts->lfh_block_count) : 0;

	return blocks && bytes_u16(header + parts->lfh_free_count) < blocks &&
	       (uint64_t)blocks * parts->unit < bytes;
}

/* What was a subsegment once has no live blocks any more. */
static bool is_live_lfh(struct lfh *lfh)
{
	const struct segment_keys *keys = &lfh->heap->nt->segment_keys;
	const struct lfh_sample *sample = lfh->sample;
	struct lfh_offsets offsets = lfh_decode(sample, keys->lfh, keys->is_wide);

	if (!keys->has_lfh || !lfh_offsets_fit(lfh->heap->parts, sample, &offsets) ||
		lfh_bucket_bytes(lfh->heap->parts, sample->bucket) != offsets.block_bytes ||
		!lfh_open(lfh, &offsets))
		return false;
	return busy_count(lfh) > sample->withheld_count && !counts_fault(lfh);
}

int segment_lfh_notice(struct segment_heap *heap, uint64_t addr, uint64_t bytes)
{
	struct lfh_sample sample;
	struct lfh lfh = {.heap = heap, .sample = &sample};
	int rc;

	if (!may_be_lfh(heap, addr, bytes) || !lfh_sample_read(heap, addr, bytes, &sample) ||
		sample.bucket < 0)
		return 0;
	rc = segment_lfh_key_find(heap->nt);
	if (!rc && is_live_lfh(&lfh))
		walk_broken(heap->nt->walk, addr, "what looks like an LFH subsegment");
	return rc;
}
