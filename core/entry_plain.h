/*
 * One entry of a dump at the speed that counts: the form that nearly all of them have, and a quick
 * "no" to every other, which the scanner then looks at with care.
 *
 * What takes time in reading such lines is waiting: where a number ends tells where the next one
 * starts, and where a line ends where the next one starts. So the first 64 bytes are classified at
 * once, into a bit for each byte that is no digit, and one for the line's end, which depends on
 * nothing else: the processor begins with the next line while it is still busy with this one.
 */
#ifndef CORE_ENTRY_PLAIN_H
#define CORE_ENTRY_PLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(ENTRY_PORTABLE) /* as on a machine that has nothing better, for tests */
#elif defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/hex.h"

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

/* The number of 1 to 8 digits at text. */
static inline uint32_t entry_number(const char *text, unsigned count)
{
	/* The digits move up; what comes in below are zeros, which count as the digit. */
	return (uint32_t)hex_join(hex_load(text) << (64 - 8 * count));
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
	const char *id_text;

	if (!bits.newlines)
		return NULL;
	end = (unsigned)__builtin_ctzll(bits.newlines);
	if (requested - 1 > 7 || hex_load(text + requested) != hex_load(" bytes +") ||
		text[requested + 8] != ' ')
		return NULL;
	overhead = entry_digits(&bits, at);
	if (overhead - 1 > 7 || memcmp(text + at + overhead, " at ", 4) != 0)
		return NULL;
	entry->overhead_bytes = entry_number(text + at, overhead);
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
	entry->requested_bytes = entry_number(text, requested);
	at += id;
	if (at + (text[at] == '\r') != end || id - 1 > 7 || (*id_text == '0' && id > 1))
		return NULL;
	entry->id = entry_number(id_text, id);
	return text + end + 1;
}

#endif
