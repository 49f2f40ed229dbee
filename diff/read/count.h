/*
 * Counting the entries of a dump by several threads: the fast form of an entry, shared stacks,
 * each thread's counts.
 */
#ifndef DIFF_READ_COUNT_H
#define DIFF_READ_COUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/dump/dump.h"
#include "diff/read/dump_sums.h"

/*
 * One entry of a dump at the speed that counts: the form that nearly all of them have, and a quick
 * "no" to every other, which the scanner then looks at with care.
 *
 * What takes time in reading such lines is waiting: where a number ends tells where the next one
 * starts, and where a line ends where the next one starts. So the first 64 bytes are classified at
 * once, into a bit for each byte that is no digit, and one for the line's end, which depends on
 * nothing else: the processor begins with the next line while it is still busy with this one.
 */

#if defined(ENTRY_PORTABLE) /* as on a machine that has nothing better, for tests */
#elif defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/base/text.h"

#define ENTRY_PLAIN_BYTES 64 /* that must be readable at the start of the line */

struct entry_plain {
	uint32_t requested_bytes, overhead_bytes;
	uint32_t id; /* the text of the id is this number in upper case without leading zeros */
};

/* Bit n is about byte n of 64. */
struct entry_bits {
	uint64_t others; /* neither a digit nor a letter from A to F */
	uint64_t newlines;
};

#if defined(ENTRY_PORTABLE)
#elif defined(__AVX2__)

#define ENTRY_VECTOR_BYTES 32
typedef __m256i entry_vector;
#define ENTRY_LOAD(text) _mm256_loadu_si256((const __m256i *)(const void *)(text))
#define ENTRY_EACH(byte) _mm256_set1_epi8(byte)
#define ENTRY_EQUAL(a, b) _mm256_cmpeq_epi8(a, b)
#define ENTRY_LEAST(a, b) _mm256_min_epu8(a, b)
#define ENTRY_MINUS(a, b) _mm256_sub_epi8(a, b)
#define ENTRY_OR(a, b) _mm256_or_si256(a, b)
#define ENTRY_WITHOUT(a, b) _mm256_andnot_si256(b, a)
#define ENTRY_BITS(a) (uint64_t)(uint32_t) _mm256_movemask_epi8(a)

#elif defined(__SSE2__) /* every x86-64 */

#define ENTRY_VECTOR_BYTES 16
typedef __m128i entry_vector;
#define ENTRY_LOAD(text) _mm_loadu_si128((const __m128i *)(const void *)(text))
#define ENTRY_EACH(byte) _mm_set1_epi8(byte)
#define ENTRY_EQUAL(a, b) _mm_cmpeq_epi8(a, b)
#define ENTRY_LEAST(a, b) _mm_min_epu8(a, b)
#define ENTRY_MINUS(a, b) _mm_sub_epi8(a, b)
#define ENTRY_OR(a, b) _mm_or_si128(a, b)
#define ENTRY_WITHOUT(a, b) _mm_andnot_si128(b, a)
#define ENTRY_BITS(a) (uint64_t)(uint32_t) _mm_movemask_epi8(a)

#endif

#ifdef ENTRY_VECTOR_BYTES

/* All ones where a byte is one of count from first on. */
static inline entry_vector entry_in_range(entry_vector bytes, char first, char count)
{
	entry_vector offset = ENTRY_MINUS(bytes, ENTRY_EACH(first));

	return ENTRY_EQUAL(ENTRY_LEAST(offset, ENTRY_EACH((char)(count - 1))), offset);
}

static inline struct entry_bits entry_classify(const char *text)
{
	struct entry_bits bits = {0, 0};

	for (unsigned at = 0; at < 64; at += ENTRY_VECTOR_BYTES) {
		entry_vector bytes = ENTRY_LOAD(text + at);
		entry_vector digits =
			ENTRY_OR(entry_in_range(bytes, '0', 10), entry_in_range(bytes, 'A', 6));

		bits.others |= ENTRY_BITS(digits) << at;
		bits.newlines |= ENTRY_BITS(ENTRY_EQUAL(bytes, ENTRY_EACH('\n'))) << at;
	}
	bits.others = ~bits.others;
	return bits;
}

/* What lies behind the first line from text on that something else than a TAB follows; end when
 * there is none before it. Reads up to 80 bytes behind end. */
static inline const char *entry_stack_end(const char *text, const char *end)
{
	for (; text < end; text += 64) {
		uint64_t ends = 0;

		for (unsigned at = 0; at < 64; at += ENTRY_VECTOR_BYTES) {
			entry_vector newlines =
				ENTRY_EQUAL(ENTRY_LOAD(text + at), ENTRY_EACH('\n'));
			entry_vector tabs =
				ENTRY_EQUAL(ENTRY_LOAD(text + at + 1), ENTRY_EACH('\t'));

			ends |= ENTRY_BITS(ENTRY_WITHOUT(newlines, tabs)) << at;
		}
		if (ends) {
			text += __builtin_ctzll(ends) + 1;
			return text < end ? text : end;
		}
	}
	return end;
}

#else /* any machine */

static inline const char *entry_stack_end(const char *text, const char *end)
{
	for (; text < end; text++) {
		text = memchr(text, '\n', (size_t)(end - text));
		if (!text || text[1] != '\t')
			return text ? text + 1 : end;
	}
	return end;
}

/* The eighth bit of each byte, side by side. */
static inline uint64_t entry_gather(uint64_t eighths)
{
	return (eighths >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

static inline struct entry_bits entry_classify(const char *text)
{
	struct entry_bits bits = {0, 0};

	for (unsigned at = 0; at < 64; at += 8) {
		uint64_t bytes = hex_load(text + at), other = bytes ^ HEX_EACH('\n');
		uint64_t filled = ((other & HEX_EACH(0x7f)) + HEX_EACH(0x7f)) | other;
		uint64_t lower = bytes & bytes << 1 & HEX_EACH(0x40);

		bits.others |= entry_gather(hex_others(bytes) | lower << 1) << at;
		bits.newlines |= entry_gather(~filled & HEX_EACH(0x80)) << at;
	}
	return bits;
}

#endif

/* How many digits there are from a place on; 64 - at: to the end of what was classified. */
static inline unsigned entry_digits(const struct entry_bits *bits, unsigned at)
{
	uint64_t others = bits->others >> at;

	return others ? (unsigned)__builtin_ctzll(others) : 64 - at;
}

/* The 1 to 8 digits at text, moved up; what comes in below are zeros, which count as the digit. */
static inline uint64_t entry_number(const char *text, unsigned count)
{
	return hex_load(text) << (64 - 8 * count);
}

/* Fills an entry from the digits of its numbers. */
static inline void entry_fill(
	struct entry_plain *entry, uint64_t requested, uint64_t overhead, uint64_t id)
{
#if defined(ENTRY_VECTOR_BYTES) && defined(__AVX2__)
	__m256i digits =
		_mm256_set_epi64x(0, (long long)id, (long long)overhead, (long long)requested);
	__m256i letters = _mm256_cmpgt_epi8(digits, _mm256_set1_epi8('9'));
	__m256i nibbles = _mm256_add_epi8(_mm256_and_si256(digits, _mm256_set1_epi8(0x0f)),
		_mm256_and_si256(letters, _mm256_set1_epi8(9)));
	/* In each 16 bits the number of two digits. */
	__m256i bytes = _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(0x0110));
	/* Of four such ones the last is the lowest byte. */
	__m256i order = _mm256_set1_epi64x(0x080a0c0e00020406);
	__m256i numbers = _mm256_shuffle_epi8(bytes, order);
	uint64_t first = (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(numbers));

	entry->requested_bytes = (uint32_t)first;
	entry->overhead_bytes = (uint32_t)(first >> 32);
	entry->id = (uint32_t)_mm_cvtsi128_si32(_mm256_extracti128_si256(numbers, 1));
#else
	entry->requested_bytes = (uint32_t)hex_join(requested);
	entry->overhead_bytes = (uint32_t)hex_join(overhead);
	entry->id = (uint32_t)hex_join(id);
#endif
}

/*
 * Reads "REQ bytes + OVH at ADDR by BackTraceID" and its line end at text. Returns what lies behind
 * it, or NULL when it is something else or not plain: longer than 64 bytes, numbers over 32 bits,
 * ids that are no such numbers, digits in lower case, blanks at the end.
 */
static inline __attribute__((always_inline)) const char *entry_plain(
	struct entry_plain *entry, const char *text)
{
	struct entry_bits bits = entry_classify(text);
	unsigned requested = entry_digits(&bits, 0), at = requested + 9, overhead, addr, id, end;
	const char *id_text, *overhead_text;

	if (!bits.newlines)
		return NULL;
	end = (unsigned)__builtin_ctzll(bits.newlines);
	if (requested - 1 > 7 || hex_load(text + requested) != hex_load(" bytes +") ||
		text[requested + 8] != ' ')
		return NULL;
	overhead = entry_digits(&bits, at);
	if (overhead - 1 > 7 || memcmp(text + at + overhead, " at ", 4) != 0)
		return NULL;
	overhead_text = text + at;
	at += overhead + 4;
	addr = entry_digits(&bits, at);
	if (addr - 1 > 15 || hex_load(text + at + addr) != hex_load(" by Back") ||
		hex_load(text + at + addr + 5) != hex_load("ackTrace"))
		return NULL;
	at += addr + 13;
	if (at > end)
		return NULL;
	id = entry_digits(&bits, at);
	id_text = text + at;
	at += id;
	if (at + (text[at] == '\r') != end || id - 1 > 7 || (*id_text == '0' && id > 1))
		return NULL;
	entry_fill(entry, entry_number(text, requested), entry_number(overhead_text, overhead),
		entry_number(id_text, id));
	return text + end + 1;
}

/*
 * What several threads that read one dump share: its stacks, and the sums of each in each heap.
 *
 * Threads count in tallies of their own, see below, and come here for what is new to them. Every function but
 * the first two takes the lock itself.
 */

#define HEAP_NONE INT32_MAX /* no heading was seen: heap 0 */

/* A stack's lines as they stood in the dump, with their line ends. */
struct pool_text {
	const char *text; /* NULL: none was kept */
	uint32_t len, line_count;
};

struct shared_stacks {
	struct thread_lock *lock;
	struct dump_sums *sums; /* stacks, cells and heaps are filled */
	size_t cell_cap, heap_cap, reach_cap;
	struct u64map
		heaps[BLOCK_REACHES]; /* by what leads to their blocks: addresses to numbers */
	/* By twice the number of a stack, and 1 where cells are bare: its first cell, or CELL_NONE. */
	uint32_t *first_cells;
	size_t first_count, first_cap;
	struct hash_index cells; /* the others, of further heaps */
	struct pool_text *texts; /* by stack */
	size_t text_count, text_cap;
	struct arena arena; /* of texts */
};

/* sums must outlive the pool. */
void shared_stacks_init(struct shared_stacks *pool, struct dump_sums *sums);
void shared_stacks_release(struct shared_stacks *pool);

/* The number of a heap, whose blocks to which something else leads have another. */
uint32_t shared_stacks_heap(struct shared_stacks *pool, uint64_t addr, enum block_reach reach);

/* Adds to the sums of cells, or takes away what was added before. */
void shared_stacks_count(
	struct shared_stacks *pool, const struct stack_total *more, size_t count, bool take_away);

/* One entry of a dump. */
struct pool_entry {
	struct stack stack;
	size_t id_len;
	struct block_totals sums;
	struct pool_text text; /* of its stack, or nothing */
	/* Filled in: */
	uint32_t hash;
	uint32_t number; /* of its stack, see stackset_put() */
};

/* Counts entries of one heap, or takes away what was counted before. What comes back as text is kept for all
 * threads as long as the pool lives; stacks that come but once have none. */
void shared_stacks_entries(struct shared_stacks *pool, struct pool_entry *entries, size_t count,
	uint32_t heap, bool take_away);

/*
 * One thread's counting of entries: the hot loop of hdiff.
 *
 * A tally knows the ids that its thread has met and, for each, the text of a stack that came with
 * it. An entry whose stack has the same text needs no look at the text's meaning: comparing and
 * passing over it is as fast as reading memory. What is new goes to the pool.
 */

/* Entries that name an id and give no stack. Two to a cache line. */
struct tally_id {
	struct block_totals sums;
	uint32_t id;
	uint32_t padding;
};

/* Entries with the stack whose text is known. */
struct tally_stack {
	struct block_totals sums;
	struct pool_text text; /* or nothing: then the stack is not known either */
	uint32_t stack;
};

struct thread_counts {
	struct shared_stacks *pool;
	uint32_t heap; /* that is counted for, or HEAP_NONE */
	bool take_away; /* what was counted by mistake */
	uint64_t *slots; /* open table: 0, or id | (number + 1) << 32 */
	size_t slot_count;
	uint64_t mixer; /* random: nobody can make ids that collide */
	unsigned shift;
	struct tally_id *ids; /* by number: entries without a stack, */
	struct tally_stack *stacks; /* and those with one */
	size_t count, cap;
	struct entry_batch *batch; /* that are counted at once; NULL until there are any */
	uint32_t *touched; /* 2 * number + (1: with a stack), of those that are not zero */
	size_t touched_count;
	/* tally_plain() for this machine */
	const char *(*plain)(struct thread_counts *tally, const char *at, const char *end,
		struct dump_progress *progress);
	/* Reads plain lines of a stack, at most DUMP_FRAMES_MAX, for this machine. What lies behind them,
	 * or NULL when there is another kind. */
	const char *(*frames_take)(
		uint64_t *frames, const char *at, const char *end, uint32_t *count);
};

/* pool must outlive the tally. */
void tally_init(struct thread_counts *tally, struct shared_stacks *pool);
void tally_release(struct thread_counts *tally);

/* Takes plain entries, see struct dump_sink. It stops at everything else. */
const char *tally_plain(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress);

/* Hands all sums over to the pool; do so before heap or take_away change. */
void tally_flush(struct thread_counts *tally);

/*
 * The inside of a tally, for the files that count.
 */

#define TALLY_IDS_MAX ((size_t)1 << 17) /* about: with more of them a tally starts afresh */
#define ENTRY_ID_BYTES 16

/* So many that a thread is busy with them for longer than it takes to wait for another one. */
#define BATCH_ENTRIES 1024
#define BATCH_FRAMES (32 * DUMP_FRAMES_MAX)

struct entry_batch {
	struct pool_entry items[BATCH_ENTRIES];
	char ids[BATCH_ENTRIES][ENTRY_ID_BYTES]; /* of blocks */
	uint32_t numbers[BATCH_ENTRIES]; /* of the ids, in the tally */
	const char *behind[BATCH_ENTRIES]; /* of sums: each of them */
	uint32_t lines[BATCH_ENTRIES]; /* that it has, with empty ones before it */
	size_t count, frame_count;
	uint64_t frames[BATCH_FRAMES];
};

/* The batch of a tally, with room for one more entry. */
struct entry_batch *tally_batch(struct thread_counts *tally);

/* Hands over what is in it, while the text is there that it was read from. */
void tally_batch_flush(struct thread_counts *tally);

/* Makes a number for an id that is new. */
uint32_t tally_id_add(struct thread_counts *tally, uint32_t id);

/* Counts an entry whose stack, at lines, is not the known one of its id. How many lines the stack has,
 * or 0: it is not plain. */
uint32_t tally_stack_take(struct thread_counts *tally, const struct entry_plain *entry,
	const char *lines, const char *end, uint32_t number);

/* Counts sums, from the start of a line on, until something else comes; behind them. See tally_plain(). */
const char *tally_sums(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress);

static inline const char *tally_blanks_skip(const char *at, uint32_t *line_count)
{
	for (; *at == '\n' || (*at == '\r' && at[1] == '\n'); ++*line_count)
		at += 1 + (*at == '\r');
	return at;
}

/* tally_plain() for processors of today. */
const char *tally_plain_avx2(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress);

/* frames_take() for them. */
const char *tally_frames_avx2(uint64_t *frames, const char *at, const char *end, uint32_t *count);

static inline void tally_count(struct thread_counts *tally, struct block_totals *to,
	uint32_t touched, const struct entry_plain *entry)
{
	if (!to->block_count++)
		tally->touched[tally->touched_count++] = touched;
	to->requested_bytes += entry->requested_bytes;
	to->overhead_bytes += entry->overhead_bytes;
}

static inline void tally_count_bare(
	struct thread_counts *tally, uint32_t number, const struct entry_plain *entry)
{
	tally_count(tally, &tally->ids[number].sums, 2 * number, entry);
}

static inline void tally_count_known(
	struct thread_counts *tally, uint32_t number, const struct entry_plain *entry)
{
	tally_count(tally, &tally->stacks[number].sums, 2 * number + 1, entry);
}

static inline uint64_t *tally_slot(const struct thread_counts *tally, uint32_t id)
{
	size_t mask = tally->slot_count - 1, at = (size_t)(id * tally->mixer >> tally->shift);

	while (tally->slots[at] && (uint32_t)tally->slots[at] != id)
		at = (at + 1) & mask;
	return &tally->slots[at];
}

static inline uint32_t tally_id_find(struct thread_counts *tally, uint32_t id)
{
	uint64_t slot = tally->slot_count ? *tally_slot(tally, id) : 0;

	return slot ? (uint32_t)(slot >> 32) - 1 : tally_id_add(tally, id);
}

#endif
