/*
 * Columns that debuggers print before the name of a frame: frame numbers, addresses, arguments.
 * Columns are words separated by blanks. A word that may be the start of a name counts as a column
 * only if the next word cannot belong to a name.
 */
#include "core/dump/frame_columns.h"

#include <string.h>

#include "core/base/text.h"

#define ADDR_DIGITS_MIN 6
#define DASHES_MIN 8
#define CODE_MIN 0x10000 /* lowest address of code: Windows leaves lower addresses free */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_decimal(char c)
{
	return c >= '0' && c <= '9';
}

static const char *pass_blanks(const char *at, const char *end)
{
	while (at < end && is_blank(*at))
		at++;
	return at;
}

static const char *pass_word(const char *at, const char *end)
{
	while (at < end && !is_blank(*at))
		at++;
	return at;
}

bool frame_columns_number(const char *text, size_t len, uint64_t *value)
{
	uint64_t sum = 0;

	if (len > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
		text += 2;
		len -= 2;
	}
	for (size_t i = 0; i < len; i++) {
		unsigned digit = hex_digits[(unsigned char)text[i]];

		if (i && text[i] == '`' && len - i == 9)
			continue;
		if (!digit || sum >> 60)
			return false;
		sum = sum << 4 | (digit - 1);
	}
	*value = sum;
	return len != 0;
}

enum frame_column {
	COLUMN_NONE,
	COLUMN_MAYBE, /* a number that may be part of a name */
	COLUMN_NUMBER, /* number of the frame */
	COLUMN_ADDR,
	COLUMN_COLON,
	COLUMN_INLINE, /* "(Inline Function)", and the dashes that replace an address */
};

static bool is_number_of_frame(const char *word, size_t len)
{
	return len == 2 && is_decimal(word[0]) && (is_decimal(word[1]) || word[1] >= 'a');
}

static bool is_addr(const char *word, size_t len)
{
	if (memchr(word, 'x', len) || memchr(word, 'X', len) || memchr(word, '`', len))
		return true;
	for (size_t i = 0; i < len; i++) {
		if (is_decimal(word[i]))
			return len >= ADDR_DIGITS_MIN;
	}
	return false;
}

static bool is_dashes(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (word[i] != '-' && word[i] != '`')
			return false;
	}
	return len >= DASHES_MIN;
}

static bool is_word(const char *word, size_t len, const char *text)
{
	return len == strlen(text) && !memcmp(word, text, len);
}

static enum frame_column column_of(const char *word, size_t len, uint64_t *value)
{
	if (is_word(word, len, ":"))
		return COLUMN_COLON;
	if (is_word(word, len, "(Inline") || is_word(word, len, "Function)") ||
		is_word(word, len, "(Inline)") || is_dashes(word, len))
		return COLUMN_INLINE;
	if (!frame_columns_number(word, len, value))
		return COLUMN_NONE;
	if (is_addr(word, len))
		return COLUMN_ADDR;
	if (is_number_of_frame(word, len))
		return COLUMN_NUMBER;
	return COLUMN_MAYBE;
}

static bool is_name(const char *at, const char *end)
{
	size_t len = (size_t)(end - at);

	return len && *at != ':' && (memchr(at, '!', len) || memchr(at, '+', len));
}

struct frame_columns frame_columns_find(const char *text, size_t len)
{
	struct frame_columns found = {0};
	const char *end = text + len, *at = pass_blanks(text, end), *name = text;
	size_t count = 0, addr_count = 0; /* numbers of columns */
	uint64_t value = 0;

	while (at < end) {
		const char *past = pass_word(at, end);
		enum frame_column column;

		if (past - at > 1 && past[-1] == ':')
			past--; /* the ':' is a column of its own */
		column = column_of(at, (size_t)(past - at), &value);
		if (column == COLUMN_NONE || (column == COLUMN_COLON && !count))
			break;
		if (column == COLUMN_ADDR || (column == COLUMN_COLON && count == 1 && !addr_count &&
						     value >= CODE_MIN)) {
			found.addr = value;
			addr_count++;
		}
		found.is_inline |= column == COLUMN_INLINE;
		at = pass_blanks(past, end);
		if (column > COLUMN_NUMBER || (column == COLUMN_NUMBER && !count))
			name = at;
		count++;
	}
	if (name == text || !is_name(name, end))
		return (struct frame_columns){0};
	found.len = (size_t)(name - text);
	found.has_addr = addr_count == 1;
	return found;
}

/* Returns true if a word begins with "ntdll". No other file name ends in "ntdll", so words before
 * this one are not the start of a file name. */
static bool is_system(const char *word, const char *end)
{
	static const char system[] = "ntdll";
	const size_t len = sizeof(system) - 1;

	return (size_t)(end - word) >= len && text_same(word, len, system, len);
}

bool frame_columns_are_strange(const char *text, size_t len)
{
	const char *at = text + frame_columns_find(text, len).len, *end = text + len;
	const char *mark = at < end ? memchr(at, '!', (size_t)(end - at)) : NULL;
	const char *word = mark; /* last word before the mark */

	if (!mark)
		return false;
	at = pass_blanks(at, mark);
	while (word > at && !is_blank(word[-1]))
		word--;
	for (const char *sign = at; sign < mark; sign++) {
		/* for example "c:\\a.c(88): app!f"; a file name does not contain these
		 * characters */
		if (*sign == '\\' || (*sign == ':' && is_blank(sign[1])))
			return true;
	}
	if (word == at)
		return false;
	return is_decimal(*at) || strchr("[=:", *at) || is_system(word, mark);
}
