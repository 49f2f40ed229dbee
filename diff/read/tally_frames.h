/*
 * Lines of a stack to numbers, to be compiled once for every machine and once for processors of today.
 *
 * What takes time is waiting: where a number ends tells where the next line starts. Addresses of one
 * stack mostly have the same length, so that it is guessed: a processor goes on with the next line while
 * it still finds out whether the guess was right.
 */
#ifndef DIFF_TALLY_FRAMES_H
#define DIFF_TALLY_FRAMES_H

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "core/dump.h"
#include "core/hex.h"

#define FRAME_DIGITS_MAX 16

#ifdef __AVX2__

/* Bit n: byte n of 16 is a digit; nibbles gets their values. */
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

/* The number of the first count of 16 nibbles, which count may be 1 to 16. */
static inline uint64_t frame_number(__m128i nibbles, unsigned count)
{
	/* From place count on: what moves count bytes to the end, and zeros before them. */
	static const signed char moves[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
		-1, -1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	__m128i move = _mm_loadu_si128((const __m128i *)(const void *)(moves + count));
	__m128i pairs = _mm_maddubs_epi16(_mm_shuffle_epi8(nibbles, move), _mm_set1_epi16(0x0110));

	return __builtin_bswap64((uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)));
}

/* Reads lines as struct tally tells, as long as their numbers have up to 15 digits. */
static inline const char *frames_guess(
	uint64_t *frames, const char *at, const char *end, uint32_t *count)
{
	unsigned width = 1, own = 1, all = 3; /* bits of a number of that width, and one more */
	uint32_t taken = 0;

	while (at < end && *at == '\t' && taken < DUMP_FRAMES_MAX) {
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
		frames[taken++] = frame_number(nibbles, width);
	}
	*count = taken;
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

/* See struct tally. */
static const char *frames_take(uint64_t *frames, const char *at, const char *end, uint32_t *count)
{
	uint32_t taken;

	at = frames_guess(frames, at, end, &taken);
	while (at < end && *at == '\t') {
		at++;
		if (taken == DUMP_FRAMES_MAX || !hex_take(&at, &frames[taken]))
			return NULL;
		at += *at == '\r';
		if (*at++ != '\n')
			return NULL;
		taken++;
	}
	*count = taken;
	return at;
}

#endif
