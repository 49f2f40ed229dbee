/* LFH subsegments of segment heaps: their key, and their live blocks. */
#include <string.h>

#include "snapshot/heap/segment/segment.h"

/*
 * The LFH's key is guessed from the data that it encodes: 16 bits of block size, and 16 bits of
 * offset of the first block.
 *
 * For a few subsegments (the seeds), every block size is tried, and the resulting key is tested on
 * the other subsegments (the judges). Block sizes must be whole units, and the blocks must fit into
 * their subsegment. Blocks should also fill their subsegment, and their size should be that of the
 * subsegment's bucket. Then every offset of the first block is tried. The first block must be after
 * the bitmap and leave room for all blocks. The last bytes of partly used blocks must contain the
 * number of unused bytes. The expected offset of the first block is not a criterion.
 *
 * If all subsegments are of one kind, several keys may fit. Then no key is chosen, because blocks
 * at wrong addresses are worse than none. */

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
#define MARGIN 8 /* lead that a key needs over the next best */

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
	/* The best key so far, and the score of the next best. */
	uint32_t key;
	int score, rival;
	size_t fit_count;
};

/* Block sizes of consecutive buckets differ by `step`, up to and including bucket `last`, as
 * documented for the low-fragmentation heap. If the unit is 16 bytes, the first 64 buckets are 16
 * bytes apart. */
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

/* ---------------------------------------------------------------- the block size */

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

/* ---------------------------------------------------------------- the first block */

/* Finds partly used blocks, which end with the number of their unused bytes. */
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

/* Returns the score of the tail of the block that ends at `end`. A tail of one unused byte has room
 * for only one flag, so it is not a criterion. */
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

/* Tries all offsets of the seed's first block, given the low half of the key. */
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

/* ---------------------------------------------------------------- choosing the key */

/* Tries the block sizes whose score is close to the best. Gives up if there are too many. */
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

/* Uses three subsegments as seeds: the one with the most blocks, the first and the last. */
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

#define BITMAP_BYTES_MAX (0xffffu / 4 + 1)

/* Returns the bucket to which a subsegment refers, or -1 if the context's table does not confirm
 * the reference. */
static int referred_bucket(struct segment_heap *heap, uint64_t addr)
{
	const struct segment_parts *parts = heap->parts;
	const uint64_t context = heap->addr + heap->layout->lfh_context;
	struct memory *memory = heap->nt->memory;
	uint64_t bucket, listed;
	uint16_t ref;
	uint8_t owner; /* bit 0: IsBucket; bits 1..7: BucketIndex */

	if (memory_u16(memory, addr + parts->lfh_bucket_ref, &ref))
		return -1;
	bucket = context + ((uint64_t)ref << parts->slot_shift);
	if (memory_u8(memory, bucket, &owner) || !(owner & 1) ||
		memory_ptr(memory, parts->bits,
			context + parts->lfh_buckets + (owner >> 1) * (parts->bits / 8), &listed))
		return -1;
	return listed == bucket ? owner >> 1 : -1;
}

/* Returns the bucket of a subsegment's owner, or -1 if unknown. The owner is a bucket or an
 * affinity slot. */
static int bucket_of(struct segment_heap *heap, uint64_t addr)
{
	const struct segment_parts *parts = heap->parts;
	uint64_t owner;
	uint8_t bucket;

	if (parts->lfh_bucket_ref)
		return referred_bucket(heap, addr);
	if (memory_ptr(heap->nt->memory, parts->bits, addr + parts->lfh_owner, &owner) || !owner ||
		owner & 1 || memory_u8(heap->nt->memory, owner + parts->owner_bucket, &bucket))
		return -1;
	return bucket;
}

/* Returns the size of a header including its bitmap, which has two bits per block and consists of
 * whole words. */
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
	enum lfh_form form;
	bool skips_crossing; /* busy blocks that cross a page are skipped as withheld */
	unsigned char bitmap[BITMAP_BYTES_MAX];
};

static unsigned state_of(const struct lfh *lfh, uint32_t k)
{
	return lfh_state(lfh->bitmap, lfh->form, k);
}

static bool crosses_page(const struct lfh *lfh, uint64_t addr)
{
	return (addr ^ (addr + lfh->block_bytes - 1)) / CLAIM_PAGE_BYTES != 0;
}

/*
 * Decides whether blocks that cross a page are skipped. A subsegment may withhold such blocks,
 * which means that they are never allocated. It is not known how withheld blocks are marked. If the
 * number of crossing blocks that are marked live does not exceed the number of withheld blocks,
 * they are the withheld blocks. */
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

/* Returns the number of busy blocks. In either form of the bitmap, one mask selects the busy bits
 * of a word. */
static uint32_t busy_count(const struct lfh *lfh)
{
	const uint32_t word_blocks = 32, count = lfh->sample->block_count;
	const uint64_t mask = lfh->form == LFH_PAIRS ? 0x5555555555555555 : UINT32_MAX;
	uint32_t whole = count / word_blocks, busy = 0;

	for (uint32_t i = 0; i < whole; i++)
		busy += (uint32_t)__builtin_popcountll(
			bytes_u64(lfh->bitmap + (size_t)i * 8) & mask);
	for (uint32_t k = whole * word_blocks; k < count; k++)
		busy += state_of(lfh, k) & 1;
	return busy;
}

/* Returns the reason why a subsegment's counts are impossible, or NULL. Withheld blocks may be
 * counted as busy, as free, as both or as neither. */
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
		uint64_t ahead = addr + (uint64_t)MEMORY_AHEAD_BLOCKS * lfh->block_bytes;

		memory_fetch(&lfh->heap->nt->memory->last, ahead - 64, 64);
		if ((state & 1) && !(lfh->skips_crossing && crosses_page(lfh, addr)))
			rc = live_block(lfh, addr, state & 2);
	}
	return rc;
}

/* Reads the bitmap in whole words, because LFH_HALVES requires this. Returns false if the bitmap is
 * unreadable. */
static bool read_bitmap(struct lfh *lfh)
{
	const struct segment_parts *parts = lfh->heap->parts;

	return !memory_copy(lfh->heap->nt->memory, lfh->sample->addr + parts->lfh_bitmap,
		lfh->bitmap, lfh->sample->header_bytes - parts->lfh_bitmap);
}

/* Reads the bitmap and finds the first block. Returns false if the bitmap is unreadable. */
static bool lfh_open(struct lfh *lfh, const struct lfh_offsets *offsets)
{
	lfh->first = lfh->sample->addr + offsets->first;
	lfh->block_bytes = offsets->block_bytes;
	lfh->form = lfh->heap->nt->segment_keys.is_halved ? LFH_HALVES : LFH_PAIRS;
	return read_bitmap(lfh);
}

enum lfh_form lfh_form_choose(
	struct segment_heap *heap, const struct lfh_sample *samples, size_t count)
{
	size_t fit_counts[LFH_FORMS] = {0};
	enum lfh_form likely = heap->parts->lfh_is_halved ? LFH_HALVES : LFH_PAIRS;

	/* In 32-bit heaps, words have 32 bits, and no bitmaps in halves are known. */
	for (size_t i = 0; heap->parts->bits == 64 && i < count; i++) {
		struct lfh lfh = {.heap = heap, .sample = &samples[i]};

		if (!read_bitmap(&lfh))
			continue;
		for (lfh.form = 0; lfh.form < LFH_FORMS; lfh.form++)
			fit_counts[lfh.form] +=
				busy_count(&lfh) + samples[i].free_count == samples[i].block_count;
	}
	if (fit_counts[LFH_PAIRS] == fit_counts[LFH_HALVES])
		return likely;
	return fit_counts[LFH_HALVES] > fit_counts[LFH_PAIRS] ? LFH_HALVES : LFH_PAIRS;
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

/* ---------------------------------------------------------------- possible subsegments */

/* Cheap first check, because it runs for many blocks. Few blocks pass it. */
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

/* Returns true if the data is a subsegment with live blocks. A freed subsegment has none. */
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
