#include "snapshot/heap/segment/segment_heap.h"

/*
 * The LFH's key, from what it encodes: 16 bits of block size, 16 bits of where the first block lies.
 *
 * For one subsegment every block size is tried, and with the key that follows from it all others are
 * judged: sizes must be whole units and blocks must find room (a must), they should fill their
 * subsegment, and be what their bucket is for. Then the same for the first block's offset: it must lie
 * behind the bitmap and leave room for the blocks, should be the first place there is, and the last
 * bytes of blocks that are not all used must say so.
 */

#define JUDGES_MAX ((size_t)32)
#define SEEDS 3
#define BLOCK_BYTES_MAX 0x4000u
#define TIES_MAX 4
#define FIRSTS_MAX 256u /* places of the first block that are tried */
#define SLACK_BYTES 64u
#define TAIL_BLOCKS 64u
#define TAILS_MAX 4u
#define FIT_WEIGHT 8
#define TAIL_FAULT 8

struct key_search {
	struct segment_heap *heap;
	const struct lfh_sample *judges[JUDGES_MAX];
	size_t judge_count;
	bool is_wide;
	/* The best so far. */
	uint32_t key;
	int score;
	size_t fit_count;
};

/* Granularity of buckets up to each, as documented for the low-fragmentation heap; where blocks
 * are at least 16 bytes apart the first ones are too. */
uint32_t lfh_bucket_bytes(const struct segment_parts *parts, int bucket)
{
	static const struct {
		int last;
		uint32_t step;
	} steps[] = {{32, 8}, {48, 16}, {64, 32}, {80, 64}, {96, 128}, {112, 256}, {128, 512}};
	uint32_t bytes = 0;
	int at = 0;

	if (bucket < 1 || bucket > 128)
		return 0;
	if (parts->unit == 16 && bucket <= 64)
		return (uint32_t)bucket * 16;
	for (size_t i = 0; at < bucket; at = steps[i++].last) {
		int last = steps[i].last < bucket ? steps[i].last : bucket;

		bytes += (uint32_t)(last - at) * steps[i].step;
	}
	return bytes;
}

static uint32_t encoded_of(const struct key_search *search, const struct lfh_sample *sample)
{
	const struct lfh_offsets plain = lfh_decode(sample, 0, search->is_wide);

	return plain.block_bytes | plain.first << 16;
}

/* How well a subsegment's blocks are of that size: < 0: not at all. */
static int size_score(
	const struct segment_parts *parts, const struct lfh_sample *sample, uint32_t block_bytes)
{
	uint64_t room = sample->bytes - sample->header_bytes;
	uint64_t blocks = (uint64_t)sample->block_count * block_bytes;

	if (!block_bytes || block_bytes % parts->unit || block_bytes > BLOCK_BYTES_MAX ||
		blocks > room)
		return -1;
	return (room - blocks < block_bytes + SLACK_BYTES) +
	       (lfh_bucket_bytes(parts, sample->bucket) == block_bytes);
}

static int sizes_score(const struct key_search *search, uint32_t key)
{
	int score = 0;

	for (size_t i = 0; i < search->judge_count; i++) {
		const struct lfh_sample *judge = search->judges[i];
		uint32_t bytes = lfh_decode(judge, key, search->is_wide).block_bytes;
		int one = size_score(search->heap->parts, judge, bytes);

		score += one < 0 ? 0 : FIT_WEIGHT + one;
	}
	return score;
}

/* ---------------------------------------------------------------- the first block */

static uint32_t aligned(const struct segment_parts *parts, uint32_t offset)
{
	return (offset + parts->unit - 1) / parts->unit * parts->unit;
}

/* Whether the first block lies where it would be expected: right behind what stands before it. */
static bool is_first_place(const struct segment_parts *parts, const struct lfh_sample *sample,
	const struct lfh_offsets *offsets)
{
	uint32_t end = sample->commit_end > sample->header_bytes ? sample->commit_end :
								   sample->header_bytes;

	return offsets->first == aligned(parts, end);
}

/* Blocks that are not all used must end with how much. */
static int tails_score(const struct key_search *search, const struct lfh_sample *sample,
	const struct lfh_offsets *offsets)
{
	struct segment_heap *heap = search->heap;
	unsigned seen = 0;
	int score = 0;

	for (uint32_t k = 0; k < sample->block_count && k < TAIL_BLOCKS && seen < TAILS_MAX; k++) {
		uint64_t end = sample->addr + offsets->first + (k + 1ull) * offsets->block_bytes;
		struct segment_tail tail;
		uint8_t bits;

		if (memory_u8(heap->nt->memory, sample->addr + heap->parts->lfh_bitmap + k / 4,
			    &bits))
			break;
		if ((bits >> k % 4 * 2 & 3) != 3)
			continue;
		seen++;
		score += segment_tail_read(
				 heap, end, offsets->block_bytes, SEGMENT_TAIL_LFH, &tail) ?
				 1 :
				 -TAIL_FAULT;
	}
	return score;
}

static int firsts_score(const struct key_search *search, uint32_t key, size_t *fit_count)
{
	const struct segment_parts *parts = search->heap->parts;
	int score = 0;

	*fit_count = 0;
	for (size_t i = 0; i < search->judge_count; i++) {
		const struct lfh_sample *judge = search->judges[i];
		struct lfh_offsets offsets = lfh_decode(judge, key, search->is_wide);

		if (!lfh_offsets_fit(parts, judge, &offsets))
			continue;
		++*fit_count;
		score += FIT_WEIGHT + is_first_place(parts, judge, &offsets);
		score += tails_score(search, judge, &offsets);
	}
	return score;
}

/* Tries all places of a seed's first block, given the low half of the key. */
static void firsts_try(struct key_search *search, const struct lfh_sample *seed, uint32_t low)
{
	const struct segment_parts *parts = search->heap->parts;
	struct lfh_offsets offsets = lfh_decode(seed, low, search->is_wide);
	int size = sizes_score(search, low);

	offsets.first = aligned(parts, seed->header_bytes);
	for (uint32_t i = 0; i < FIRSTS_MAX && offsets.first < 0x10000; i++) {
		uint32_t key = low | ((encoded_of(search, seed) >> 16 ^ offsets.first) << 16);
		size_t fit_count;
		int score;

		if (!lfh_offsets_fit(parts, seed, &offsets))
			break;
		score = size + firsts_score(search, key, &fit_count);
		if (score > search->score) {
			search->score = score;
			search->key = key;
			search->fit_count = fit_count;
		}
		offsets.first += parts->unit;
	}
}

/* ---------------------------------------------------------------- the block size */

static void seed_try(struct key_search *search, const struct lfh_sample *seed)
{
	uint32_t unit = search->heap->parts->unit, ties[TIES_MAX];
	size_t tie_count = 0;
	int best = 0;

	for (uint32_t bytes = unit; bytes <= BLOCK_BYTES_MAX; bytes += unit) {
		uint32_t low = (encoded_of(search, seed) ^ bytes) & 0xffff;
		int score = sizes_score(search, low);

		if (score < best || !score)
			continue;
		tie_count = score > best ? 0 : tie_count;
		best = score;
		if (tie_count < TIES_MAX)
			ties[tie_count++] = low;
	}
	for (size_t i = 0; i < tie_count; i++)
		firsts_try(search, seed, ties[i]);
}

/* Those that say most: with many blocks, and the first and the last. */
static void seeds_try(struct key_search *search)
{
	const struct lfh_sample *seeds[SEEDS];

	seeds[0] = seeds[1] = search->judges[0];
	seeds[2] = search->judges[search->judge_count - 1];
	for (size_t i = 1; i < search->judge_count; i++) {
		if (search->judges[i]->block_count > seeds[0]->block_count)
			seeds[0] = search->judges[i];
	}
	for (size_t i = 0; i < SEEDS; i++) {
		if (search->fit_count < search->judge_count)
			seed_try(search, seeds[i]);
	}
}

bool lfh_key_find(struct segment_heap *heap, const struct lfh_sample *samples, size_t count,
	uint32_t *key, bool *is_wide)
{
	bool is_new = heap->nt->process->os_build >= SEGMENT_BUILD_WIDE;
	struct key_search best = {0};

	for (unsigned i = 0; i < 2 && (!i || best.fit_count < best.judge_count); i++) {
		struct key_search search = {.heap = heap, .is_wide = is_new != (i == 1)};
		size_t step = (count + JUDGES_MAX - 1) / JUDGES_MAX;

		for (size_t k = 0; k < count; k += step)
			search.judges[search.judge_count++] = &samples[k];
		seeds_try(&search);
		if (!i || search.score > best.score)
			best = search;
	}
	*key = best.key;
	*is_wide = best.is_wide;
	return best.fit_count * 2 > best.judge_count;
}
