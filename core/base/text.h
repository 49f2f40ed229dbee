/* Text: sanitizing text from elsewhere, UTF-8 and UTF-16, comparison, patterns, hexadecimal
 * numbers. */
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replaces, in place, all characters that a terminal would obey. Each of their bytes becomes '?'.
 * These are control characters (below a blank, DEL, U+0080 to U+009F), characters that change the
 * reading direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), and bytes 80 to
 * 9F outside UTF-8 characters. Returns `text`. */
char *text_harmless(char *text);

/* Returns the length (1 to 3 bytes) of the character or stray byte at `text` if a terminal would
 * obey it. Otherwise, and at the NUL, returns 0. */
size_t text_obeyed(const char *text);

/* Like text_obeyed(), but for characters that a text file must not contain: also returns 1 for a
 * byte that is not UTF-8. */
size_t text_unfit(const char *text);

/* Returns the last part of `text`, at most `max` bytes long. It starts with a whole UTF-8
 * character. */
const char *text_tail(const char *text, size_t max);

/* Returns true if `text` is printable ASCII, which text_harmless() does not change. */
bool text_is_plain(const char *text, size_t len);

/* Returns true if `text` is valid UTF-8 without a NUL. */
bool text_is_utf8(const char *text, size_t len);

/* Returns the length (1 to 4 bytes) of the UTF-8 character at `text` and sets `*code`. Returns 0 at
 * the NUL and for bytes that are not UTF-8. */
size_t text_utf8(const char *text, uint32_t *code);

/* Returns the length of the character or stray byte at `text`, and sets the columns that it takes
 * on a terminal, 1 or 2. */
size_t text_char(const char *text, unsigned *columns);

/* Returns the columns that text takes on a terminal. */
unsigned text_columns(const char *text);

/* Writes a character as UTF-8. Returns its length, 1 to 4 bytes. */
size_t text_write_utf8(uint32_t c, unsigned char *to);

/* Returns the character that starts with the unit `high`. Sets `*is_pair` if `high` and `low` form
 * a surrogate pair. */
uint32_t text_join_utf16(uint32_t high, uint32_t low, bool *is_pair);

/* Converts little-endian UTF-16 to UTF-8, up to a NUL or at most `units` units. An unpaired
 * surrogate becomes U+FFFD. Writes as many whole characters as fit into `size` bytes, and a NUL.
 * Returns the number of bytes that all characters need, without the NUL. `text` may be NULL if
 * `size` is 0. */
size_t text_from_utf16(const unsigned char *bytes, size_t units, char *text, size_t size);

/* Decodes HTML entities in place: "&lt;", "&gt;", "&quot;", "&apos;", "&nbsp;", "&amp;", and
 * numbers ("&#39;", "&#x27;"). Also decodes entities in text that was escaped more than once, such
 * as "&amp;lt;". Returns the new length. */
size_t text_from_html(char *text, size_t len);

/* Change the case of ASCII letters only, independently of the locale. */
static inline char text_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline char text_upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Compares two strings, ignoring ASCII case. Returns a number below 0, 0, or a number above 0. */
int text_compare(const char *a, const char *b);

/* Returns true if two strings are equal, ignoring ASCII case. */
bool text_same(const char *a, size_t a_len, const char *b, size_t b_len);

/* Returns true if `text` begins with `part`, ignoring ASCII case. */
bool text_begins(const char *text, const char *part);

/* Returns true if the whole of `text` matches the pattern, in which '*' represents any text. In the
 * worst case, the time is proportional to the product of both lengths. */
enum {
	GLOB_FOLD = 1, /* ignore the case of ASCII letters */
	GLOB_QUESTION = 2, /* '?' stands for any one character */
	GLOB_SLASH = 4, /* '/' also matches '\\' */
};
bool text_glob(const char *pattern, const char *text, unsigned flags);

/* Fast parsing of hexadecimal numbers. Dumps consist mostly of such numbers. */

/* Value of each hexadecimal digit plus one; 0 for other bytes. */
extern const unsigned char hex_digits[256];

#define HEX_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Returns eight bytes of text as a little-endian number, on any machine. */
static inline uint64_t hex_load(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	return byte[0] | (uint64_t)byte[1] << 8 | (uint64_t)byte[2] << 16 |
	       (uint64_t)byte[3] << 24 | (uint64_t)byte[4] << 32 | (uint64_t)byte[5] << 40 |
	       (uint64_t)byte[6] << 48 | (uint64_t)byte[7] << 56;
}

/* Returns a number in which the high bit of a byte is set if that byte of `bytes` is not a
 * hexadecimal digit. Adds constants to the lower seven bits of each byte. This sets the high bit if
 * these bits exceed a limit, and never carries into the next byte. */
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

static inline uint64_t hex_join(uint64_t bytes)
{
	uint64_t values = (bytes & HEX_EACH(0x0f)) + 9 * (bytes >> 6 & HEX_EACH(0x01));

	values = (values << 4 | values >> 8) & UINT64_C(0x00ff00ff00ff00ff);
	values = (values << 8 | values >> 16) & UINT64_C(0x0000ffff0000ffff);
	return (values << 16 | values >> 32) & UINT64_C(0xffffffff);
}

/* Parses a hexadecimal number of up to 64 bits, after any number of leading zeros, and advances
 * *at. Eight bytes after the digits must be readable. Returns false, with *at unchanged, if there
 * is no number or if it is too large. */
static inline bool hex_parse(const char **at, uint64_t *value)
{
	const char *text = *at;
	uint64_t sum = 0, bytes;
	unsigned digit;

	/* Parse eight digits at once, then one at a time. Numbers of the same kind have similar
	 * lengths. So the processor can predict where the next number starts, and need not wait for
	 * this one. */
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
