/* Text from elsewhere, made fit to be shown. */
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replaces in place what a terminal would obey by '?', one for each byte: control characters (below a blank,
 * DEL, U+0080 to U+009F), those that turn the order of reading (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
 * U+2069), and bytes 80 to 9F that are part of no UTF-8. Returns text. */
char *text_harmless(char *text);

/* Bytes of what a terminal would obey that text, which ends in NUL, starts with: 0 to 3. 0 for the end. */
size_t text_obeyed(const char *text);

/* The same of what must not stand in a file of text: also 1 for a byte that is no UTF-8. */
size_t text_unfit(const char *text);

/* The last bytes of text, max at most, from the beginning of a UTF-8 character on. */
const char *text_tail(const char *text, size_t max);

/* Whether text is ASCII without control characters, of which text_harmless() changes nothing. */
bool text_is_plain(const char *text, size_t len);

/* Returns true for UTF-8, which has no NUL. */
bool text_is_utf8(const char *text, size_t len);

/* Bytes of the UTF-8 character that text, which ends in NUL, starts with: 1 to 4, and *code is its
 * number. 0 at the end of text and for bytes that are no UTF-8. */
size_t text_utf8(const char *text, uint32_t *code);

/* Writes the UTF-8 of a character: how many bytes, 1 to 4. */
size_t text_put_utf8(uint32_t c, unsigned char *to);

/* The character that starts with the unit high; of a pair low is the other half, and *is_pair. */
uint32_t text_join_utf16(uint32_t high, uint32_t low, bool *is_pair);

/* UTF-16 as UTF-8: units little-endian ones, up to a NUL among them; half a pair becomes U+FFFD. Writes whole
 * characters that fit into size bytes, with a NUL behind, and returns how many bytes all would need without it; text may
 * be NULL when size is 0. */
size_t text_from_utf16(const unsigned char *bytes, size_t units, char *text, size_t size);

/* Letters of ASCII in the other case, as in names of files on Windows, whatever the locale says. */
static inline char text_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline char text_upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* The order of two texts without regard to that case: below 0, 0, or above. */
int text_compare(const char *a, const char *b);

/* Whether two texts are the same but for that case. */
bool text_same(const char *a, size_t a_len, const char *b, size_t b_len);

/* Whether a text begins with another one. */
bool text_begins(const char *text, const char *part);

/*
 * True when all of text is as the pattern says, in which '*' stands for any text. Takes time in
 * proportion to the product of both lengths at worst.
 */
enum {
	GLOB_FOLD = 1, /* letters of ASCII are alike in either case */
	GLOB_QUESTION = 2, /* '?' stands for one character */
};
bool text_glob(const char *pattern, const char *text, unsigned flags);

/*
 * Hexadecimal text to numbers: most of what a dump consists of.
 */

/* One more than the value of a digit, 0 for every other byte. */
extern const unsigned char hex_digits[256];

#define HEX_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Eight bytes of text as a number, the first one lowest, on any machine. */
static inline uint64_t hex_load(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	return byte[0] | (uint64_t)byte[1] << 8 | (uint64_t)byte[2] << 16 |
	       (uint64_t)byte[3] << 24 | (uint64_t)byte[4] << 32 | (uint64_t)byte[5] << 40 |
	       (uint64_t)byte[6] << 48 | (uint64_t)byte[7] << 56;
}

/* The upper bits of those of the eight that are no digits. Adding to seven bits sets the eighth
 * from a limit on and never touches the next byte. */
static inline uint64_t hex_others(uint64_t bytes)
{
	uint64_t low = bytes & HEX_EACH(0x7f), letter = low | HEX_EACH(0x20);
	uint64_t digits = (low + HEX_EACH(0x80 - '0')) & ~(low + HEX_EACH(0x7f - '9'));
	uint64_t letters = (letter + HEX_EACH(0x80 - 'a')) & ~(letter + HEX_EACH(0x7f - 'f'));

	return (~(digits | letters) | bytes) & HEX_EACH(0x80);
}

static inline bool hex_all(uint64_t bytes)
{
	return !hex_others(bytes);
}

/* The number that eight digits stand for. */
static inline uint64_t hex_join(uint64_t bytes)
{
	uint64_t values = (bytes & HEX_EACH(0x0f)) + 9 * (bytes >> 6 & HEX_EACH(0x01));

	values = (values << 4 | values >> 8) & UINT64_C(0x00ff00ff00ff00ff);
	values = (values << 8 | values >> 16) & UINT64_C(0x0000ffff0000ffff);
	return (values << 16 | values >> 32) & UINT64_C(0xffffffff);
}

/*
 * Takes a number of up to 64 bits (and any number of leading zeros) from *at, behind which eight
 * bytes more than the digits must be readable. False, and *at where it was, when there is none or
 * it is too large.
 */
static inline bool hex_take(const char **at, uint64_t *value)
{
	const char *text = *at;
	uint64_t sum = 0, bytes;
	unsigned digit;

	/* Eight at once, then one by one: numbers of one kind have about the same length, so that
	 * a processor guesses where the next one starts and need not wait for this one. */
	while (hex_all(bytes = hex_load(text))) {
		if (sum >> 32)
			return false;
		sum = sum << 32 | hex_join(bytes);
		text += 8;
	}
	for (; (digit = hex_digits[(unsigned char)*text]); text++) {
		if (sum >> 60)
			return false;
		sum = sum << 4 | (digit - 1);
	}
	if (text == *at)
		return false;
	*at = text;
	*value = sum;
	return true;
}

/* Returns "" for 1, otherwise "s". */
const char *text_plural(uint64_t count);

#endif
