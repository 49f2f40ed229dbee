/* Sanitizing, UTF-8 and UTF-16, comparison and patterns. Nothing here depends on the locale. */
#include "core/base/text.h"

#include <string.h>

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define HIGH EACH(0x80)

/* Returns true for characters with Unicode's Bidi_Control property. */
static bool turns_reading(uint32_t code)
{
	return code == 0x061c || code == 0x200e || code == 0x200f ||
	       (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

size_t text_obeyed(const char *text)
{
	unsigned char first = (unsigned char)*text;
	uint32_t code;
	size_t len = text_utf8(text, &code);

	if (!len) /* a byte that is not UTF-8; an 8-bit terminal treats 9B as ESC [ */
		return first >= 0x80 && first <= 0x9f;
	return code < ' ' || (code >= 0x7f && code <= 0x9f) || turns_reading(code) ? len : 0;
}

size_t text_unfit(const char *text)
{
	uint32_t code;
	size_t obeyed = text_obeyed(text);

	return obeyed ? obeyed : *text && !text_utf8(text, &code);
}

char *text_harmless(char *text)
{
	if (text_is_plain(text, strlen(text)))
		return text;
	for (char *c = text; *c;) {
		uint32_t code;
		size_t obeyed = text_obeyed(c), len = obeyed ? obeyed : text_utf8(c, &code);

		memset(c, '?', obeyed);
		c += len ? len : 1;
	}
	return text;
}

const char *text_tail(const char *text, size_t max)
{
	size_t len = strlen(text);
	const char *end = len > max ? text + len - max : text;

	while (end > text && ((unsigned char)*end & 0xc0) == 0x80)
		end++;
	return end;
}

/* Checks eight bytes at once. If any of them lies outside ' ' to '~', some byte of the result has
 * its high bit set; otherwise none has. A byte inside that range never carries into or borrows from
 * the next byte. A byte outside the range may do so, but it also sets its own high bit. */
static uint64_t suspects(const char *text)
{
	uint64_t bytes;

	memcpy(&bytes, text, sizeof(bytes));
	return bytes | (bytes + EACH(1)) | (bytes - EACH(' '));
}

bool text_is_plain(const char *text, size_t len)
{
	uint64_t found = 0;

	if (len >= 8) {
		for (size_t i = 0; i + 8 <= len; i += 8)
			found |= suspects(text + i);
		return !((found | suspects(text + len - 8)) & HIGH);
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return true;
}

size_t text_utf8(const char *text, uint32_t *code)
{
	static const uint32_t first_of[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *c = (const unsigned char *)text;
	size_t len = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
	uint32_t sum = len == 1 ? c[0] : c[0] & (0x7fu >> len);

	if (!c[0] || !len || c[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((c[i] & 0xc0) != 0x80) /* also true for the NUL */
			return 0;
		sum = sum << 6 | (c[i] & 0x3f);
	}
	if (sum < first_of[len] || sum > 0x10ffff || (sum >= 0xd800 && sum <= 0xdfff))
		return 0;
	*code = sum;
	return len;
}

bool text_is_utf8(const char *text, size_t len)
{
	uint32_t code;

	for (size_t at = 0, size; at < len; at += size) {
		char next[5] = ""; /* NUL-terminated */

		memcpy(next, text + at, len - at < 4 ? len - at : 4);
		size = next[0] & 0x80 ? text_utf8(next, &code) : 1;
		if (!size || !next[0])
			return false;
	}
	return true;
}

#define REPLACEMENT 0xfffd

uint32_t text_join_utf16(uint32_t high, uint32_t low, bool *is_pair)
{
	*is_pair = high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low <= 0xdfff;
	if (*is_pair)
		return 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
	return high < 0xd800 || high > 0xdfff ? high : REPLACEMENT;
}

size_t text_char(const char *text, unsigned *columns)
{
	/* Ranges of wide characters: those of width W or F in EastAsianWidth.txt of Unicode 14.
	 * Some symbols in these ranges are really narrow; a line that contains them is then shorter
	 * than the terminal is wide. */
	static const uint32_t wide[][2] = {{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a},
		{0x23e9, 0x23f3}, {0x25fd, 0x25fe}, {0x2614, 0x27bf}, {0x2b1b, 0x2b55},
		{0x2e80, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},
		{0xfe10, 0xfe19}, {0xfe30, 0xfe6f}, {0xff01, 0xff60}, {0xffe0, 0xffe6},
		{0x16fe0, 0x1b2ff}, {0x1f004, 0x1f251}, {0x1f260, 0x1faff}, {0x20000, 0x3fffd}};
	uint32_t code = 0;
	size_t len = text_utf8(text, &code);

	*columns = 1;
	for (size_t i = 0; len && i < sizeof(wide) / sizeof(*wide); i++)
		*columns += code >= wide[i][0] && code <= wide[i][1];
	return len ? len : 1;
}

unsigned text_columns(const char *text)
{
	unsigned sum = 0, columns;

	for (; *text; sum += columns)
		text += text_char(text, &columns);
	return sum;
}

size_t text_write_utf8(uint32_t c, unsigned char *to)
{
	size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = count; i-- > 1; c >>= 6)
		to[i] = (unsigned char)(0x80 | (c & 0x3f));
	to[0] = (unsigned char)(first[count] | c);
	return count;
}

static uint32_t little_unit(const unsigned char *bytes, size_t index, size_t count)
{
	return index < count ? (uint32_t)bytes[2 * index] | (uint32_t)bytes[2 * index + 1] << 8 : 0;
}

/* If the text at `*at` begins with `word`, advances `*at` past it and returns true. */
static bool pass_word(const char **at, const char *end, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(end - *at) < len || memcmp(*at, word, len) != 0)
		return false;
	*at += len;
	return true;
}

/* Parses "39;" or "x27;". */
static bool parse_html_number(const char **at, const char *end, uint32_t *code)
{
	unsigned base = pass_word(at, end, "x") || pass_word(at, end, "X") ? 16 : 10, digit;

	*code = 0;
	for (; *at < end && (digit = hex_digits[(unsigned char)**at]); ++*at) {
		*code = *code * base + digit - 1;
		if (digit > base || *code > 0x10ffff)
			return false;
	}
	return (*code == '\t' || *code >= ' ') && *code >> 11 != 0x1b && pass_word(at, end, ";");
}

/* Returns the length of the entity that text starts with, or 0. */
static size_t html_entity(const char *text, const char *end, uint32_t *code)
{
	static const struct {
		const char *name;
		uint32_t code;
	} entities[] = {
		{"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}, {"nbsp;", 0xa0}};
	const char *at = text, *past;

	if (!pass_word(&at, end, "&"))
		return 0;
	while (pass_word(&at, end, "amp;"))
		;
	for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++) {
		*code = entities[i].code;
		if (pass_word(&at, end, entities[i].name))
			return (size_t)(at - text);
	}
	past = at;
	if (pass_word(&past, end, "#") && parse_html_number(&past, end, code))
		return (size_t)(past - text);
	*code = '&';
	return at > text + 1 ? (size_t)(at - text) : 0;
}

size_t text_from_html(char *text, size_t len)
{
	const char *end = text + len;
	char *to = text; /* an entity is longer than its character */
	uint32_t code;

	for (const char *at = text; at < end;) {
		size_t taken = html_entity(at, end, &code);

		if (taken)
			to += text_write_utf8(code, (unsigned char *)to);
		else
			*to++ = *at;
		at += taken ? taken : 1;
	}
	return (size_t)(to - text);
}

size_t text_from_utf16(const unsigned char *bytes, size_t units, char *text, size_t size)
{
	size_t needed = 0, used = 0;

	for (size_t i = 0; i < units && little_unit(bytes, i, units); i++) {
		unsigned char utf8[4];
		bool is_pair;
		size_t len = text_write_utf8(text_join_utf16(little_unit(bytes, i, units),
						     little_unit(bytes, i + 1, units), &is_pair),
			utf8);

		if (used == needed && needed + len < size) {
			memcpy(text + used, utf8, len);
			used += len;
		}
		needed += len;
		i += is_pair;
	}
	if (size)
		text[used] = '\0';
	return needed;
}

int text_compare(const char *a, const char *b)
{
	while (*a && text_lower(*a) == text_lower(*b)) {
		a++;
		b++;
	}
	return text_lower(*a) - text_lower(*b);
}

bool text_begins(const char *text, const char *part)
{
	for (; *part; text++, part++) {
		if (text_lower(*text) != text_lower(*part))
			return false;
	}
	return true;
}

bool text_same(const char *a, size_t a_len, const char *b, size_t b_len)
{
	if (a_len != b_len)
		return false;
	for (size_t i = 0; i < a_len; i++) {
		if (text_lower(a[i]) != text_lower(b[i]))
			return false;
	}
	return true;
}

/* Returns the length of the character at `text`; a byte that is not UTF-8 counts as a character. */
static size_t character(const char *text)
{
	uint32_t code;
	size_t len = text_utf8(text, &code);

	return len ? len : 1;
}

/* Returns the number of bytes of text that one pattern character matches; 0 if it does not
 * match. */
static size_t glob_step(char pattern, const char *text, unsigned flags)
{
	if (pattern == '?' && (flags & GLOB_QUESTION))
		return character(text);
	return pattern == *text || ((flags & GLOB_SLASH) && pattern == '/' && *text == '\\') ||
	       ((flags & GLOB_FOLD) && text_lower(pattern) == text_lower(*text));
}

/* Backtracks only to the last '*': extending an earlier '*' never helps. */
bool text_glob(const char *pattern, const char *text, unsigned flags)
{
	const char *star = NULL, *taken = NULL;
	size_t len;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			taken = text;
		} else if (*pattern && (len = glob_step(*pattern, text, flags))) {
			pattern++;
			text += len;
		} else if (star) {
			pattern = star;
			text = taken += flags & GLOB_QUESTION ? character(taken) : 1;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

const unsigned char hex_digits[256] = {
	['0'] = 1,
	['1'] = 2,
	['2'] = 3,
	['3'] = 4,
	['4'] = 5,
	['5'] = 6,
	['6'] = 7,
	['7'] = 8,
	['8'] = 9,
	['9'] = 10,
	['A'] = 11,
	['B'] = 12,
	['C'] = 13,
	['D'] = 14,
	['E'] = 15,
	['F'] = 16,
	['a'] = 11,
	['b'] = 12,
	['c'] = 13,
	['d'] = 14,
	['e'] = 15,
	['f'] = 16,
};

const char *text_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}
