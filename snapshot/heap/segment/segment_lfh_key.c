/*
 * Guesses the key of the LFH from the data that it encodes: 16 bits of block size, and 16 bits of
 * offset of the first block.
 *
 * First, every block size is tried for a few subsegments (the seeds). Each block size yields a key,
 * which is tested on the other subsegments (the judges). Block sizes must be whole units, and the
 * blocks must fit into their subsegment. Blocks should also fill their subsegment, and their size
 * should be that of the bucket of the subsegment. Next, every offset of the first block is tried.
 * The first block must be after the bitmap and leave room for all blocks. The last bytes of partly
 * used blocks must contain the number of unused bytes. The expected offset of the first block is
 * not a criterion.
 *
 * If all subsegments are of one kind, several keys may fit. Then no key is chosen, because blocks
 * at wrong addresses are worse than no blocks.
 */
#include <string.h>

#include "snapshot/heap/segment/segment.h"

#define JUDGES_MAX ((size_t)64)
#define SEEDS 3
#define BLOCK_BYTES_MAX 0x4000u
#define TIES_MAX 16
#define FIRSTS_MAX 256u /* offsets of the first block to try */
#define SLACK_BYTES 64u
#define TAIL_BLOCKS 64u /* limit per subsegment */
#define TAILS_MAX 8u
#define FIT_WEIGHT 8
#define FILL_WEIGHT 8
#define BUCKET_WEIGHT 16
#define TAIL_LENGTH_WEIGHT 1
#define TAIL_MARK_WEIGHT 16
#define TAIL_FAULT 8
#define MARGIN 8 /* lead in score that a key needs over the next best key */

struct judge {
	const struct lfh_sample *sample;
	uint16_t tails[TAILS_MAX]; /* indexes of live blocks that are partly used */
	unsigned tail_count;
};

struct key_search {
	struct segment_heap *heap;
	struct judge judges[JUDGES_MAX];
	size_t judge_count;
	bool is_wide;
	/* The best key so far, and the score of the next best key. */
	uint32_t key;
	int score, rival;
	size_t fit_count;
};

static uint32_t encoded_of(const struct key_search *search, const struct lfh_sample *sample)
{
	const struct lfh_offsets plain = lfh_decode(sample, 0, search->is_wide);

	return plain.block_bytes | plain.first << 16;
}

/* Returns the score of a block size for a subsegment; 0: impossible. */
static int size_score(
	const struct segment_parts *parts, const struct lfh_sample *sample, uint32_t block_bytes)
{
	uint64_t room = sample->bytes - sample->header_bytes;
	uint64_t blocks = (uint64_t)sample->block_count * block_bytes;
	int score = FIT_WEIGHT;

	if (!block_bytes || block_bytes % parts->unit || block_bytes > BLOCK_BYTES_MAX ||
		blocks > room)
		return 0;
	if (room - blocks < block_bytes + SLACK_BYTES)
		score += FILL_WEIGHT;
	if (lfh_bucket_bytes(parts, sample->bucket) == block_bytes)
		score += BUCKET_WEIGHT;
	return score;
}

static int sizes_score(const struct key_search *search, uint32_t key)
{
	int score = 0;

	for (size_t i = 0; i < search->judge_count; i++) {
		const struct lfh_sample *sample = search->judges[i].sample;

		score += size_score(search->heap->parts, sample,
			lfh_decode(sample, key, search->is_wide).block_bytes);
	}
	return score;
}

/* Finds partly used blocks. The number of their unused bytes is at their end. */
static void tails_find(struct segment_heap *heap, struct judge *judge)
{
	const enum lfh_form form = heap->nt->segment_keys.is_halved ? LFH_HALVES : LFH_PAIRS;
	const uint64_t at = judge->sample->addr + heap->parts->lfh_bitmap;
	unsigned char bitmap[TAIL_BLOCKS / 4];

	if (memory_copy(heap->nt->memory, at, bitmap, sizeof(bitmap)))
		return;
	for (uint32_t k = 0;
		k < judge->sample->block_count && k < TAIL_BLOCKS && judge->tail_count < TAILS_MAX;
		k++) {
		if (lfh_state(bitmap, form, k) == 3)
			judge->tails[judge->tail_count++] = (uint16_t)k;
	}
}

/* Returns the score of the tail of the block that ends at `end`. If only one byte is unused, it has
 * room for only one flag, and the tail does not count. */
static int tail_score(struct segment_heap *heap, uint64_t end, uint32_t block_bytes)
{
	struct segment_tail tail;

	if (!segment_tail_read(heap, end, block_bytes, SEGMENT_TAIL_LFH, &tail))
		return -TAIL_FAULT;
	if (tail.has_extra && segment_mark_exists(heap, end - tail.unused_bytes, tail.unused_bytes))
		return TAIL_MARK_WEIGHT;
	return tail.unused_bytes > 1 && !tail.has_extra ? TAIL_LENGTH_WEIGHT : 0;
}

static int firsts_score(const struct key_search *search, uint32_t key, size_t *fit_count)
{
	int score = 0;

	*fit_count = 0;
	for (size_t i = 0; i < search->judge_count; i++) {
		const struct judge *judge = &search->judges[i];
		const struct lfh_sample *sample = judge->sample;
		struct lfh_offsets offsets = lfh_decode(sample, key, search->is_wide);

		if (!lfh_offsets_fit(search->heap->parts, sample, &offsets))
			continue;
		++*fit_count;
		score += FIT_WEIGHT;
		for (unsigned t = 0; t < judge->tail_count; t++)
			score += tail_score(search->heap,
				sample->addr + offsets.first +
					(judge->tails[t] + 1ull) * offsets.block_bytes,
				offsets.block_bytes);
	}
	return score;
}

static void key_judge(struct key_search *search, uint32_t key, int size)
{
	size_t fit_count;
	int score = size + firsts_score(search, key, &fit_count);

	if (search->fit_count && key == search->key)
		return;
	if (score > search->score) {
		search->rival = search->score;
		search->score = score;
		search->key = key;
		search->fit_count = fit_count;
	} else if (score > search->rival) {
		search->rival = score;
	}
}

/* Tries all offsets of the first block of the seed, given the low half of the key. */
static void firsts_try(struct key_search *search, const struct lfh_sample *seed, uint32_t low)
{
	const struct segment_parts *parts = search->heap->parts;
	struct lfh_offsets offsets = lfh_decode(seed, low, search->is_wide);
	int size = sizes_score(search, low);

	offsets.first = (seed->header_bytes + parts->unit - 1) / parts->unit * parts->unit;
	for (uint32_t i = 0; i < FIRSTS_MAX && offsets.first < 0x10000; i++) {
		if (!lfh_offsets_fit(parts, seed, &offsets))
			break;
		key_judge(search, low | ((encoded_of(search, seed) >> 16 ^ offsets.first) << 16),
			size);
		offsets.first += parts->unit;
	}
}

/* Tries the block sizes whose score is close to the best score. Gives up if there are too many. */
static void seed_try(struct key_search *search, const struct lfh_sample *seed)
{
	uint32_t unit = search->heap->parts->unit, encoded = encoded_of(search, seed);
	uint32_t lows[TIES_MAX];
	size_t low_count = 0;
	int best = 1;

	for (uint32_t bytes = unit; bytes <= BLOCK_BYTES_MAX; bytes += unit) {
		int score = sizes_score(search, (encoded ^ bytes) & 0xffff);

		best = score > best ? score : best;
	}
	for (uint32_t bytes = unit; bytes <= BLOCK_BYTES_MAX; bytes += unit) {
		uint32_t low = (encoded ^ bytes) & 0xffff;

		if (sizes_score(search, low) <= best - MARGIN)
			continue;
		if (low_count == TIES_MAX)
			return;
		lows[low_count++] = low;
	}
	for (size_t i = 0; i < low_count; i++)
		firsts_try(search, seed, lows[i]);
}

/* Uses three subsegments as seeds: the one with the most blocks, the first, and the last. */
static void seeds_try(struct key_search *search)
{
	const struct lfh_sample *seeds[SEEDS];

	seeds[0] = seeds[1] = search->judges[0].sample;
	seeds[2] = search->judges[search->judge_count - 1].sample;
	for (size_t i = 1; i < search->judge_count; i++) {
		if (search->judges[i].sample->block_count > seeds[0]->block_count)
			seeds[0] = search->judges[i].sample;
	}
	for (size_t i = 0; i < SEEDS; i++) {
		if (search->fit_count < search->judge_count)
			seed_try(search, seeds[i]);
	}
}

static bool is_certain(const struct key_search *search)
{
	return search->fit_count * 2 > search->judge_count &&
	       search->score - search->rival >= MARGIN;
}

bool lfh_key_guess(struct segment_heap *heap, const struct lfh_sample *samples, size_t count,
	uint32_t *key, bool *is_wide)
{
	bool is_new = heap->nt->process->os_build >= SEGMENT_BUILD_WIDE;
	struct key_search best = {0};

	for (unsigned i = 0; i < 2 && (!i || best.fit_count < best.judge_count); i++) {
		struct key_search search = {.heap = heap, .is_wide = is_new != (i == 1)};
		size_t step = (count + JUDGES_MAX - 1) / JUDGES_MAX;

		for (size_t k = 0; k < count; k += step) {
			struct judge *judge = &search.judges[search.judge_count++];

			judge->sample = &samples[k];
			tails_find(heap, judge);
		}
		seeds_try(&search);
		if (i && search.score > best.score && best.score > search.rival)
			search.rival = best.score;
		if (!i || search.score > best.score)
			best = search;
	}
	*key = best.key;
	*is_wide = best.is_wide;
	return is_certain(&best);
}

bool lfh_key_fits(struct segment_heap *heap, const struct lfh_sample *samples, size_t count,
	uint32_t key, bool *is_wide)
{
	bool is_new = heap->nt->process->os_build >= SEGMENT_BUILD_WIDE;
	size_t fit_counts[2] = {0};

	for (unsigned wide = 0; wide < 2; wide++) {
		for (size_t i = 0; i < count; i++) {
			struct lfh_offsets offsets = lfh_decode(&samples[i], key, wide);

			fit_counts[wide] += lfh_offsets_fit(heap->parts, &samples[i], &offsets);
		}
	}
	*is_wide = fit_counts[!is_new] > fit_counts[is_new] ? !is_new : is_new;
	return fit_counts[*is_wide] * 2 > count;
}
