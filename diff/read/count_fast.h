/* The hot loop of counting, compiled once for every processor and once for processors with AVX2. */
#ifndef DIFF_READ_COUNT_FAST_H
#define DIFF_READ_COUNT_FAST_H

#include "diff/read/count.h"

/*
 * Parsing the lines of a stack into numbers.
 *
 * The next line starts where the number ends, so a simple parser must wait for the end of each
 * number. Most addresses of one stack have the same length, so the length is guessed. The processor
 * can start the next line while it checks the guess. */

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "core/base/text.h"
#include "core/dump/dump.h"

#define FRAME_DIGITS_MAX 16

#ifdef __AVX2__

/* Returns a mask with bit n set if byte n of 16 is a digit. Stores the digits' values in
 * `nibbles`. */
static inline unsigned frame_digits(const char *text, __m128i *nibbles)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
	__m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
	__m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
	__m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
	__m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);

	*nibbles = _mm_blendv_epi8(digit, _mm_add_epi8(letter, _mm_set1_epi8(10)), is_letter);
	return (unsigned)_mm_movemask_epi8(_mm_or_si128(is_digit, is_letter));
}

/* Returns the number formed by the first `count` of 16 nibbles. `count` is 1 to 16. */
static inline uint64_t frame_number(__m128i nibbles, unsigned count)
{
	/* `moves + count` is a shuffle that moves the first `count` bytes to the end and fills the
	 * start with zeros. */
	static const signed char moves[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
		-1, -1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	__m128i move = _mm_loadu_si128((const __m128i *)(const void *)(moves + count));
	__m128i pairs = _mm_maddubs_epi16(_mm_shuffle_epi8(nibbles, move), _mm_set1_epi16(0x0110));

	return __builtin_bswap64((uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)));
}

/* Parses lines until a number has more than 15 digits. See `frames_parse` in struct
 * thread_counts. */
static inline const char *frames_guess(
	uint64_t *frames, const char *at, const char *end, uint32_t *count)
{
	/* bit masks: `own` has a bit for each digit of the guessed width, `all` has one more bit */
	unsigned width = 1, own = 1, all = 3;
	uint32_t frame_count = 0;

	while (at < end && *at == '\t' && frame_count < DUMP_FRAMES_MAX) {
		__m128i nibbles;
		unsigned digits = frame_digits(at + 1, &nibbles);

		if ((digits & all) != own) {
			width = (unsigned)__builtin_ctz(~digits);
			if (!width || width >= FRAME_DIGITS_MAX)
				break;
			own = (1u << width) - 1;
			all = 2 * own + 1;
		}
		if (at[width + 1] == '\r' && at[width + 2] == '\n')
			at += width + 3;
		else if (at[width + 1] == '\n')
			at += width + 2;
		else
			break;
		frames[frame_count++] = frame_number(nibbles, width);
	}
	*count = frame_count;
	return at;
}

#else

static inline const char *frames_guess(
	uint64_t *frames, const char *at, const char *end, uint32_t *count)
{
	(void)frames;
	(void)end;
	*count = 0;
	return at;
}

#endif

/* See struct thread_counts. */
static const char *frames_parse(uint64_t *frames, const char *at, const char *end, uint32_t *count)
{
	uint32_t frame_count;

	at = frames_guess(frames, at, end, &frame_count);
	while (at < end && *at == '\t') {
		at++;
		if (frame_count == DUMP_FRAMES_MAX || !hex_parse(&at, &frames[frame_count]))
			return NULL;
		at += *at == '\r';
		if (*at++ != '\n')
			return NULL;
		frame_count++;
	}
	*count = frame_count;
	return at;
}

/* The hot loop, explained in diff/read/count.h. */

#define BATCH 32
#define PREFETCH_BYTES 1024 /* at the start of a stack; most stacks are shorter */

/* An entry that was parsed but not yet counted. */
struct pending {
	struct entry_plain entry;
	uint32_t number; /* number of the entry's id */
	uint32_t line_count; /* the entry's line and empty lines before it, without stack lines */
	uint32_t stack_len; /* length of the following lines that start with a TAB */
	const char *behind; /* end of the entry and its stack */
};

/* Several entries in progress. While an entry is counted, the data of the next ones is
 * prefetched. */
struct batch {
	struct pending items[BATCH];
	unsigned count;
};

/* Parses entries until the batch is full or another kind of line follows. An entry at the very end
 * of the text may be incomplete, so the scanner must parse it. */
static inline void batch_fill(
	struct thread_counts *tally, struct batch *batch, const char *at, const char *end)
{
	const uint64_t *slots = tally->slots, mixer = tally->mixer;
	unsigned shift = tally->shift;

	batch->count = 0;
	while (batch->count < BATCH && at < end) {
		struct pending *pending = &batch->items[batch->count];
		const char *stack;

		pending->line_count = 1;
		stack = entry_plain(&pending->entry, tally_blanks_skip(at, &pending->line_count));
		if (!stack || stack > end)
			return;
		if (slots)
			__builtin_prefetch(&slots[pending->entry.id * mixer >> shift]);
		at = *stack == '\t' ? entry_stack_end(stack, end) : stack;
		if (at == end && !*end)
			return;
		pending->stack_len = (uint32_t)(at - stack);
		pending->behind = at;
		batch->count++;
	}
}

/* Finds the number of each entry's id. */
static inline void batch_find(struct thread_counts *tally, struct batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++) {
		struct pending *pending = &batch->items[i];

		pending->number = tally_id_find(tally, pending->entry.id);
		if (pending->stack_len)
			__builtin_prefetch(&tally->stacks[pending->number], 1);
		else
			__builtin_prefetch(&tally->ids[pending->number], 1);
	}
}

static inline void batch_prefetch(const struct thread_counts *tally, const struct batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++) {
		const struct pending *pending = &batch->items[i];
		const struct pool_text *text = &tally->stacks[pending->number].text;

		if (!pending->stack_len)
			continue;
		for (uint32_t at = 0; at < text->len && at < PREFETCH_BYTES; at += 64)
			__builtin_prefetch(text->text + at);
	}
}

static inline bool is_known(const struct thread_counts *tally, const struct pending *pending)
{
	const struct pool_text *text = &tally->stacks[pending->number].text;

	return text->len == pending->stack_len &&
	       !memcmp(pending->behind - text->len, text->text, text->len);
}

/* Counts an entry, and stores the number of lines in the entry's stack. Returns false if the stack
 * is not plain. */
static inline bool pending_count(struct thread_counts *tally, const struct pending *pending,
	const char *end, uint32_t *line_count)
{
	*line_count = 0;
	if (!pending->stack_len) {
		tally_count_bare(tally, pending->number, &pending->entry);
	} else if (is_known(tally, pending)) {
		*line_count = tally->stacks[pending->number].text.line_count;
		tally_count_known(tally, pending->number, &pending->entry);
	} else {
		*line_count = tally_stack_add(tally, &pending->entry,
			pending->behind - pending->stack_len, end, pending->number);
		return *line_count != 0;
	}
	return true;
}

/* Counts the batch up to the first entry that is not plain. Returns the end of the counted
 * entries. */
static inline const char *batch_count(struct thread_counts *tally, const struct batch *batch,
	const char *at, const char *end, struct dump_progress *progress)
{
	for (unsigned i = 0; i < batch->count; i++) {
		const struct pending *pending = &batch->items[i];
		uint32_t stack_lines;

		if (!pending_count(tally, pending, end, &stack_lines))
			break;
		progress->line_count += pending->line_count + stack_lines;
		progress->seen.block_count++;
		progress->seen.requested_bytes += pending->entry.requested_bytes;
		progress->seen.overhead_bytes += pending->entry.overhead_bytes;
		at = pending->behind;
	}
	return at;
}

/* Counts entries that describe one block each. */
static inline const char *plain_blocks(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress)
{
	struct batch batch;

	do {
		if (tally->count >= TALLY_IDS_MAX) {
			tally_flush(tally);
			memset(tally->slots, 0, tally->slot_count * sizeof(*tally->slots));
			tally->count = 0;
		}
		batch_fill(tally, &batch, at, end);
		batch_find(tally, &batch);
		batch_prefetch(tally, &batch);
		at = batch_count(tally, &batch, at, end, progress);
	} while (batch.count == BATCH && at == batch.items[BATCH - 1].behind && at < end);
	tally_batch_flush(tally);
	return at;
}

/* See tally_plain(). */
static const char *plain(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress)
{
	/* a local copy, to avoid writing to cache lines that other threads use */
	struct dump_progress own = *progress;
	const char *from;

	do {
		from = plain_blocks(tally, at, end, &own);
		at = tally_sums(tally, from, end, &own);
	} while (at != from);
	for (; at < end && (*at == '\n' || (*at == '\r' && at[1] == '\n')); own.line_count++)
		at += 1 + (*at == '\r');
	*progress = own;
	return at;
}

#endif
