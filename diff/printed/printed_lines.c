#include <string.h>

#include "core/base/text.h"
#include "diff/printed/printed_parts.h"

struct cursor {
	const char *at, *end;
};

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

static void pass_blanks(struct cursor *cursor)
{
	while (cursor->at < cursor->end && is_blank(*cursor->at))
		cursor->at++;
}

/* Passes blanks and then word, which may be part of a longer one. */
static bool take(struct cursor *cursor, const char *word)
{
	size_t len = strlen(word);

	pass_blanks(cursor);
	if ((size_t)(cursor->end - cursor->at) < len || memcmp(cursor->at, word, len) != 0)
		return false;
	cursor->at += len;
	return true;
}

static void add_digit(struct number *number, int reading, unsigned base, unsigned digit)
{
	uint64_t *value = &number->value[reading];

	if (digit >= base || *value > (UINT64_MAX - digit) / base)
		number->fits[reading] = false;
	else
		*value = *value * base + digit;
}

/* False when no digit follows the blanks, or when neither reading fits. */
static bool take_number(struct cursor *cursor, struct number *number)
{
	const char *from;
	unsigned digit;

	pass_blanks(cursor);
	*number = (struct number){.fits = {true, true}};
	from = cursor->at;
	for (; cursor->at < cursor->end && (digit = hex_digits[(unsigned char)*cursor->at]);
		cursor->at++) {
		add_digit(number, AS_HEX, 16, digit - 1);
		add_digit(number, AS_DECIMAL, 10, digit - 1);
	}
	return cursor->at != from && (number->fits[AS_HEX] || number->fits[AS_DECIMAL]);
}

/* UMDH gives OLD five columns for hexadecimal numbers and six for decimal ones, behind a blank, as
 * measured on published samples. */
static bool take_old(struct cursor *cursor, struct growth_text *growth)
{
	static const size_t columns[READINGS] = {[AS_HEX] = 5, [AS_DECIMAL] = 6};
	struct cursor start = *cursor;
	size_t all, blanks;

	if (!take_number(cursor, &growth->old))
		return false;
	all = (size_t)(cursor->at - start.at);
	pass_blanks(&start);
	blanks = all - (size_t)(cursor->at - start.at);
	for (int i = 0; i < READINGS; i++)
		growth->is_padded[i] = blanks > 1 && all == columns[i] + 1;
	return true;
}

static bool take_growth(struct cursor *cursor, struct growth_text *growth)
{
	if (cursor->at == cursor->end || (*cursor->at != '+' && *cursor->at != '-'))
		return false;
	growth->is_minus = *cursor->at++ == '-';
	return take_number(cursor, &growth->growth) && take(cursor, "(") &&
	       take_number(cursor, &growth->new) && take(cursor, "-") && take_old(cursor, growth) &&
	       take(cursor, ")");
}

bool words_start(struct words words, const char *prefix)
{
	size_t len = strlen(prefix);

	return words.len >= len && !memcmp(words.text, prefix, len);
}

bool words_equal(struct words words, const char *text)
{
	return words.len == strlen(text) && !memcmp(words.text, text, words.len);
}

struct words words_trim(struct words words)
{
	while (words.len && is_blank(*words.text))
		words = (struct words){words.text + 1, words.len - 1};
	while (words.len && is_blank(words.text[words.len - 1]))
		words.len--;
	return words;
}

/* Takes "BackTraceID" with all that follows as the id. */
static bool take_id(struct cursor *cursor, struct words *id)
{
	if (!take(cursor, "BackTrace"))
		return false;
	*id = words_trim((struct words){cursor->at, (size_t)(cursor->end - cursor->at)});
	return id->len != 0;
}

/* Takes the word "allocations" off the end of an id. */
static bool cut_allocations(struct words *id)
{
	static const char word[] = "allocations";
	size_t len = sizeof(word) - 1;

	if (id->len <= len || memcmp(id->text + id->len - len, word, len) != 0 ||
		!is_blank(id->text[id->len - len - 1]))
		return false;
	id->len -= len;
	*id = words_trim(*id);
	return id->len != 0;
}

/* A line that is no row may still be meant as one. */
static bool is_like_row(struct cursor cursor)
{
	struct number number;
	struct words word = {cursor.at, 0};

	for (; word.text < cursor.end; word.text++) {
		word.len = (size_t)(cursor.end - word.text);
		if (words_start(word, "BackTrace"))
			return true;
	}
	cursor.at++;
	return take_number(&cursor, &number) && take(&cursor, "(");
}

static enum line_kind parse_row(struct cursor cursor, struct row_text *row)
{
	struct cursor start = cursor;

	if (!take_growth(&cursor, &row->growth))
		return is_like_row(start) ? LINE_BAD_ROW : LINE_OTHER;
	start = cursor;
	if (take_id(&cursor, &row->id))
		return cut_allocations(&row->id) ? LINE_COUNTS : LINE_BAD_ROW;
	cursor = start;
	if (take_number(&cursor, &row->count) && take(&cursor, "allocs") &&
		take_id(&cursor, &row->id))
		return LINE_BYTES;
	return LINE_BAD_ROW;
}

static bool take_part(struct cursor *cursor, struct total_text *total, int part)
{
	total->is_minus[part] = take(cursor, "-");
	return take_number(cursor, &total->part[part]);
}

static enum line_kind parse_total(struct cursor cursor, struct total_text *total)
{
	if (!take(&cursor, "Total "))
		return LINE_OTHER;
	total->is_decrease = take(&cursor, "decrease");
	if (!total->is_decrease && !take(&cursor, "increase"))
		return LINE_OTHER;
	if (!take(&cursor, "==") || !take_part(&cursor, total, 0))
		return LINE_BAD_TOTAL;
	pass_blanks(&cursor);
	total->has_overhead = cursor.at != cursor.end;
	if (!total->has_overhead)
		return LINE_TOTAL;
	if (!take(&cursor, "requested") || !take(&cursor, "+") || !take_part(&cursor, total, 1) ||
		!take(&cursor, "overhead") || !take(&cursor, "=") || !take_part(&cursor, total, 2))
		return LINE_BAD_TOTAL;
	pass_blanks(&cursor);
	return cursor.at == cursor.end ? LINE_TOTAL : LINE_BAD_TOTAL;
}

/* "DBGHELP: module - kind", "BASE-END DBGHELP: module - kind", and a path on a line of its own. */
static bool is_chatter(struct words line)
{
	const char *word = memchr(line.text, ' ', line.len);

	if (words_start(line, "DBGHELP: ") || words_start(line, "         "))
		return true;
	if (!word)
		return false;
	word++;
	return words_start(
		(struct words){word, line.len - (size_t)(word - line.text)}, "DBGHELP: ");
}

enum line_kind line_parse(
	const char *text, size_t len, struct row_text *row, struct total_text *total)
{
	struct words line = {text, len};
	struct cursor cursor = {text, text + len};
	enum line_kind kind;

	if (!words_trim(line).len)
		return LINE_BLANK;
	if (words_start(line, "//"))
		return LINE_COMMENT;
	if (*text == '\t')
		return LINE_FRAME;
	if (*text == '+' || *text == '-')
		return parse_row(cursor, row);
	kind = *text == 'T' ? parse_total(cursor, total) : LINE_OTHER;
	return kind == LINE_OTHER && is_chatter(line) ? LINE_CHATTER : kind;
}

/* ---------------------------------------------------------------- arithmetic */

static bool fits(const struct number *number, int reading)
{
	return number->fits[reading] && number->value[reading] <= INT64_MAX;
}

bool growth_holds(const struct growth_text *growth, int reading)
{
	uint64_t from = growth->old.value[reading], to = growth->new.value[reading];

	if (growth->is_minus) {
		uint64_t swap = from;

		from = to;
		to = swap;
	}
	return fits(&growth->growth, reading) && fits(&growth->new, reading) &&
	       fits(&growth->old, reading) && to >= from &&
	       to - from == growth->growth.value[reading];
}

int64_t total_part(const struct total_text *total, int part, int reading)
{
	int64_t value = (int64_t)total->part[part].value[reading];

	return total->is_minus[part] != total->is_decrease ? -value : value;
}

bool total_holds(const struct total_text *total, int reading)
{
	int64_t requested, overhead, sum;

	for (int i = 0; i < (total->has_overhead ? 3 : 1); i++) {
		if (!fits(&total->part[i], reading))
			return false;
	}
	if (!total->has_overhead)
		return true;
	requested = total_part(total, 0, reading);
	overhead = total_part(total, 1, reading);
	sum = total_part(total, 2, reading);
	/* Both lie between -INT64_MAX and INT64_MAX: as unsigned numbers nothing overflows. */
	return (uint64_t)requested + (uint64_t)overhead == (uint64_t)sum &&
	       (requested < 0 || overhead < 0 || sum >= 0) &&
	       (requested >= 0 || overhead >= 0 || sum < 0);
}

/* ---------------------------------------------------------------- what a file is */

bool line_is_of_dump(struct words line)
{
	static const char *const starts[] = {"// hsnap:", "// UMDH: version", "// Loaded modules",
		"// Process modules", "*- ", "REQUESTED bytes"};
	struct cursor cursor = {line.text, line.text + line.len};
	struct number number;

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (words_start(line, starts[i]))
			return true;
	}
	return take_number(&cursor, &number) && take(&cursor, "bytes ");
}
