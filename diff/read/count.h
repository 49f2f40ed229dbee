/* Counting the entries of a dump on several threads: fast parsing of entries, stacks shared by the
 * threads, and counts of each thread. */
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
 * Fast parsing of one dump entry. Accepts only the form that nearly all entries have, which is
 * called plain, and quickly rejects other forms. The scanner then parses the rejected entries.
 *
 * Parsing usually waits for one result after another: a number starts where the previous number
 * ends, and a line starts where the previous line ends. Therefore, the first 64 bytes are
 * classified at once, with one bit for each byte that is not a digit and one for each line end.
 * Finding the line end then depends on no other result, and the processor can start the next line
 * before it finishes the current one. */

#if defined(ENTRY_PORTABLE) /* tests use the code for processors without vector instructions */
#elif defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/base/text.h"

#define ENTRY_PLAIN_BYTES 64 /* readable bytes required from the start of the line */

struct entry_plain {
	uint32_t requested_bytes, overhead_bytes;
	uint32_t id; /* the id; its text is in upper case, without leading zeros */
};

/* Bit n describes byte n of 64. */
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

/* Returns a vector that is all ones at each byte with a value in [first, first + count), and 0 at
 * all other bytes. */
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

/* Returns the end of a stack, which is the first line end that no TAB follows. Returns `end` if
 * there is no such line end before `end`. Reads up to 80 bytes after `end`. */
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

#else /* any processor */

static inline const char *entry_stack_end(const char *text, const char *end)
{
	for (; text < end; text++) {
		text = memchr(text, '\n', (size_t)(end - text));
		if (!text || text[1] != '\t')
			return text ? text + 1 : end;
	}
	return end;
}

/* Gathers the highest bit of each byte into the lowest eight bits. */
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

/* Returns the number of consecutive digits that start at byte `at`, at most 64 - at. */
static inline unsigned entry_digits(const struct entry_bits *bits, unsigned at)
{
	uint64_t others = bits->others >> at;

	return others ? (unsigned)__builtin_ctzll(others) : 64 - at;
}

/* Loads `count` digits (1 to 8) into the high bytes. The low bytes are zero, and are parsed like
 * the digit 0. */
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
	/* Every 16 bits hold the value of two digits. */
	__m256i bytes = _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(0x0110));
	/* Reverse the order: the last of four values becomes the lowest byte. */
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

/* Parses "REQ bytes + OVH at ADDR by BackTraceID" and the line end. Returns the end of the line, or
 * NULL if the line is not plain. A plain line has at most 64 bytes and no trailing blanks. REQ, OVH
 * and the id are numbers of up to 32 bits in upper case. The id has no leading zeros. */
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
 * Data shared by the threads that read one dump: its stacks, and the sums of each stack in each
 * heap.
 *
 * Each thread counts in its own tally (see below), and uses the shared data only for new stacks.
 * All functions take the lock, except shared_stacks_init() and shared_stacks_release(). */

#define HEAP_NONE INT32_MAX /* no heading was read yet; blocks are then counted as heap 0 */

/* Lines of a stack, copied from the dump with their line ends. */
struct pool_text {
	const char *text; /* NULL: not stored */
	uint32_t len, line_count;
};

struct shared_stacks {
	struct thread_lock *lock;
	struct dump_sums *sums; /* sums of the dump; the pool fills their stacks, cells and heaps */
	size_t cell_cap, heap_cap, reach_cap;
	/* one map for each enum block_reach, from a heap's address to its number */
	struct u64map heaps[BLOCK_REACHES];
	/* First cell of a stack, or CELL_NONE. The index is twice the stack's number, plus 1 for
	 * cells with `is_bare`. */
	uint32_t *first_cells;
	size_t first_count, first_cap;
	struct hash_index cells; /* cells that are not the first cell of their stack */
	struct pool_text *texts; /* indexed by stack */
	size_t text_count, text_cap;
	struct arena arena; /* storage of texts */
};

/* `sums` must outlive `pool`. */
void shared_stacks_init(struct shared_stacks *pool, struct dump_sums *sums);
void shared_stacks_release(struct shared_stacks *pool);

/* Returns the number of a heap. A heap has a separate number for each value of `reach`. */
uint32_t shared_stacks_heap(struct shared_stacks *pool, uint64_t addr, enum block_reach reach);

/* Adds `more[0..count)` to the sums of their cells. With `take_away`, subtracts them, undoing an
 * earlier call. */
void shared_stacks_count(
	struct shared_stacks *pool, const struct stack_total *more, size_t count, bool take_away);

struct pool_entry {
	struct stack stack;
	size_t id_len;
	struct block_totals sums;
	struct pool_text text; /* text of the stack, or empty */
	/* Results: */
	uint32_t hash;
	uint32_t number; /* number of the stack, see stackset_add() */
};

/* Counts entries of one heap. With `take_away`, subtracts them, undoing an earlier call. Replaces
 * the text in each entry with the text that the pool has cached for the entry's stack. The cached
 * text lives as long as `pool`. It is empty if nothing is cached, as for a stack that occurred only
 * once. */
void shared_stacks_entries(struct shared_stacks *pool, struct pool_entry *entries, size_t count,
	uint32_t heap, bool take_away);

/*
 * Counts of one thread. Counting is the hot loop of hdiff.
 *
 * A tally contains the ids that its thread has read and, for each id, the text of one stack. If the
 * stack after an entry equals the text stored for the entry's id, the stack is skipped without
 * parsing. Comparing texts is as fast as reading memory. New stacks go to the pool. */

/* Entries that contain an id but no stack. Two of these structs fit in a cache line. */
struct tally_id {
	struct block_totals sums;
	uint32_t id;
	uint32_t padding;
};

/* Entries with one id whose stack equals the text stored for this id. */
struct tally_stack {
	struct block_totals sums;
	struct pool_text text; /* empty: the stack is unknown */
	uint32_t stack;
};

struct thread_counts {
	struct shared_stacks *pool;
	uint32_t heap; /* heap of the entries, or HEAP_NONE */
	bool take_away; /* subtract entries that were counted by mistake */
	uint64_t *slots; /* open hash table; an element is 0 (free) or id | (number + 1) << 32 */
	size_t slot_count;
	uint64_t mixer; /* random, to prevent inputs that force collisions */
	unsigned shift;
	struct tally_id *ids; /* entries without a stack, indexed by number */
	struct tally_stack *stacks; /* entries with a stack, indexed by number */
	size_t count, cap;
	struct entry_batch *batch; /* entries that are counted together; NULL until the first one */
	/* list of sums that are not zero: 2 * number for a sum in `ids`, 2 * number + 1 for a sum
	 * in `stacks` */
	uint32_t *touched;
	size_t touched_count;
	/* Version of tally_plain() for this processor. */
	const char *(*plain)(struct thread_counts *tally, const char *at, const char *end,
		struct dump_progress *progress);
	/* Parses the lines of a stack, at most DUMP_FRAMES_MAX, using the code for this processor.
	 * Returns the end of the lines, or NULL if a line is not plain. */
	const char *(*frames_parse)(
		uint64_t *frames, const char *at, const char *end, uint32_t *count);
};

/* `pool` must outlive the tally. */
void tally_init(struct thread_counts *tally, struct shared_stacks *pool);
void tally_release(struct thread_counts *tally);

/* Counts plain entries, see struct dump_sink. Stops at the first other line. */
const char *tally_plain(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress);

/* Moves all sums to the pool. Must be called before `heap` or `take_away` changes. */
void tally_flush(struct thread_counts *tally);

/* Internals of a tally, for the files that count. */

#define TALLY_IDS_MAX ((size_t)1 << 17) /* approximate limit at which a tally is emptied */
#define ENTRY_ID_BYTES 16

/* number of entries for which processing takes longer than waiting for another thread */
#define BATCH_ENTRIES 1024
#define BATCH_FRAMES (32 * DUMP_FRAMES_MAX)

struct entry_batch {
	struct pool_entry items[BATCH_ENTRIES];
	char ids[BATCH_ENTRIES][ENTRY_ID_BYTES]; /* ids of the entries */
	uint32_t numbers[BATCH_ENTRIES]; /* numbers of the ids in the tally */
	const char *behind[BATCH_ENTRIES]; /* end of each entry; only for sums */
	/* number of lines in each entry, including empty lines before it */
	uint32_t lines[BATCH_ENTRIES];
	size_t count, frame_count;
	uint64_t frames[BATCH_FRAMES];
};

/* Returns the batch of a tally, with room for one more entry. */
struct entry_batch *tally_batch(struct thread_counts *tally);

/* Passes the batch to the pool. The text of the entries must still be in memory. */
void tally_batch_flush(struct thread_counts *tally);

/* Adds a new id and returns its number. */
uint32_t tally_id_add(struct thread_counts *tally, uint32_t id);

/* Counts an entry whose stack, which starts at `lines`, differs from the stack stored for its id.
 * Returns the number of lines in the stack, or 0 if some line is not plain. */
uint32_t tally_stack_add(struct thread_counts *tally, const struct entry_plain *entry,
	const char *lines, const char *end, uint32_t number);

/* Counts sums, like tally_plain(). `at` must be the start of a line. Returns the first line that is
 * not a sum. */
const char *tally_sums(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress);

static inline const char *tally_blanks_skip(const char *at, uint32_t *line_count)
{
	for (; *at == '\n' || (*at == '\r' && at[1] == '\n'); ++*line_count)
		at += 1 + (*at == '\r');
	return at;
}

/* tally_plain(), compiled for AVX2. */
const char *tally_plain_avx2(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress);

/* frames_parse(), compiled for AVX2. */
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
