/*
 * Hexadecimal text to numbers, eight digits at a time: most of what a dump consists of.
 */
#ifndef CORE_HEX_H
#define CORE_HEX_H

#include <stdbool.h>
#include <stdint.h>

#define HEX_EACH(byte) ((uint64_t)(byte) * UINT64_C(0x0101010101010101))

/* Eight bytes of text as a number, the first one lowest, on any machine. */
static inline uint64_t hex_load(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	return byte[0] | (uint64_t)byte[1] << 8 | (uint64_t)byte[2] << 16 |
	       (uint64_t)byte[3] << 24 | (uint64_t)byte[4] << 32 | (uint64_t)byte[5] << 40 |
	       (uint64_t)byte[6] << 48 | (uint64_t)byte[7] << 56;
}

/*
 * The bytes that are no digits, as their top bits. Adding to seven bits sets the eighth from a
 * limit on and never touches the next byte.
 */
static inline uint64_t hex_others(uint64_t bytes)
{
	uint64_t low = bytes & HEX_EACH(0x7f), letter = low | HEX_EACH(0x20);
	uint64_t digits = (low + HEX_EACH(0x80 - '0')) & ~(low + HEX_EACH(0x7f - '9'));
	uint64_t letters = (letter + HEX_EACH(0x80 - 'a')) & ~(letter + HEX_EACH(0x7f - 'f'));

	return (~(digits | letters) | bytes) & HEX_EACH(0x80);
}

/* The number that eight digits stand for; a zero byte counts as the digit 0. */
static inline uint64_t hex_join(uint64_t bytes)
{
	uint64_t values = (bytes & HEX_EACH(0x0f)) + 9 * (bytes >> 6 & HEX_EACH(0x01));

	values = (values << 4 | values >> 8) & UINT64_C(0x00ff00ff00ff00ff);
	values = (values << 8 | values >> 16) & UINT64_C(0x0000ffff0000ffff);
	return (values << 16 | values >> 32) & UINT64_C(0xffffffff);
}

/* How many of the next eight bytes, which must all be readable, are digits; and their value. */
static inline unsigned hex_take8(const char *text, uint64_t *value)
{
	uint64_t bytes = hex_load(text), others = hex_others(bytes);
	unsigned count = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;

	*value = count ? hex_join(bytes << (64 - 8 * count)) : 0;
	return count;
}

/*
 * Takes a number of up to 64 bits (and any number of leading zeros) from *at, behind which 16
 * bytes must be readable. False, and *at where it was, when there is none or it is too large.
 */
static inline bool hex_take(const char **at, uint64_t *value)
{
	const char *text = *at;
	uint64_t sum = 0, part;
	unsigned count;

	do {
		count = hex_take8(text, &part);
		if (count && sum >> (64 - 4 * count))
			return false;
		sum = sum << 4 * count | part;
		text += count;
	} while (count == 8);
	if (text == *at)
		return false;
	*at = text;
	*value = sum;
	return true;
}

#endif
