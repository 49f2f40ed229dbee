/* Sampling of blocks: random distances, computed in integer arithmetic, and the filter of recorded
 * addresses. */
#include "snapshot/tracer/tables.h"

#define FRACTION_BITS 26
#define LN2_32 0xb17217f8u /* ln 2, in units of 2^-32 */

#define FITS_MAX (SAMPLE_PART - 3)

/* Returns -log2 of bits / 2^64, in units of 2^-FRACTION_BITS. */
static uint64_t minus_log2(uint64_t bits)
{
	unsigned zeros = (unsigned)__builtin_clzll(bits);
	uint64_t mantissa = bits << zeros >> 32; /* 1 to 2, in units of 2^-31 */
	uint64_t log = 0; /* logarithm of the mantissa */

	/* Squaring doubles a logarithm. The next bit of the result is 1 if the doubled logarithm
	 * reaches 1. */
	for (int i = 0; i < FRACTION_BITS; i++) {
		uint64_t square = mantissa * mantissa >> 31, carry = square >> 32;

		log = log << 1 | carry;
		mantissa = square >> carry;
	}
	return ((uint64_t)(zeros + 1) << FRACTION_BITS) - log;
}

uint64_t sample_distance(uint64_t bits, uint64_t mean_bytes)
{
	uint64_t log = minus_log2(bits ? bits : 1); /* result: at most 64 << FRACTION_BITS */
	uint64_t whole = log >> FRACTION_BITS, part = log & (((uint64_t)1 << FRACTION_BITS) - 1);
	uint64_t high, low;

	/* Multiply by ln 2. */
	log = whole * LN2_32 + (part * LN2_32 >> FRACTION_BITS); /* in units of 2^-32 */
	high = log >> 16; /* in units of 2^-16; below 2^22 */
	low = log & 0xffff;
	return (mean_bytes * high + (mean_bytes * low >> 16)) >> 16;
}

/* Returns 64 random bits. Steps through all 2^64 states and mixes the bits of each state. Based on
 * Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014 (splitmix64). */
static uint64_t draw(uint64_t *random)
{
	uint64_t bits = __atomic_add_fetch(random, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED);

	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
	return bits ^ bits >> 31;
}

static uint32_t next_word(uint64_t *random, uint64_t mean_bytes)
{
	uint64_t distance = sample_distance(draw(random), mean_bytes);

	return distance <= FITS_MAX ? (uint32_t)distance + 1 : (FITS_MAX + 2) | SAMPLE_PART;
}

bool sample_at_end(uint32_t *word, uint64_t *random, uint64_t mean_bytes, uint64_t bytes)
{
	uint32_t next = *word ? *word : next_word(random, mean_bytes);

	while ((next & ~SAMPLE_PART) <= bytes) {
		bool is_end = !(next & SAMPLE_PART);

		bytes -= (next & ~SAMPLE_PART) - 1;
		next = next_word(random, mean_bytes);
		if (is_end) {
			*word = next;
			return true;
		}
	}
	*word = next - (uint32_t)bytes;
	return false;
}

void tracer_filter_add(struct tracer_filter *filter, uint64_t addr)
{
	uint8_t *count = tracer_filter_count(filter, addr);
	uint8_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (now != UINT8_MAX && !__atomic_compare_exchange_n(count, &now, (uint8_t)(now + 1),
					   false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void tracer_filter_remove(struct tracer_filter *filter, uint64_t addr)
{
	uint8_t *count = tracer_filter_count(filter, addr);
	uint8_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (now && now != UINT8_MAX &&
		!__atomic_compare_exchange_n(
			count, &now, (uint8_t)(now - 1), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}
