/* Lines of printed comparisons: splits a line into words and numbers, finds its kind, and checks
 * its arithmetic. */
#include "core/dump/printed_line.h"

#include <string.h>

#include "core/base/text.h"

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Removes bytes from the start. */
static void pass(struct words *words, size_t bytes)
{
	*words = (struct words){words->text + bytes, words->len - bytes};
}

static void pass_blanks(struct words *words)
{
	while (words->len && is_blank(*words->text))
		pass(words, 1);
}

bool words_start(struct words words, const char *prefix)
{
	size_t len = strlen(prefix);

	return words.len >= len && !memcmp(words.text, prefix, len);
}

bool words_end(struct words words, const char *suffix)
{
	size_t len = strlen(suffix);

	return words.len >= len && !memcmp(words.text + words.len - len, suffix, len);
}

bool words_equal(struct words words, const char *text)
{
	return words.len == strlen(text) && words_start(words, text);
}

struct words words_trim(struct words words)
{
	pass_blanks(&words);
	while (words.len && is_blank(words.text[words.len - 1]))
		words.len--;
	return words;
}

/* Skips blanks and `word`, even if it is only the start of a longer word. Returns false if `word`
 * does not follow. */
static bool skip_word(struct words *words, const char *word)
{
	pass_blanks(words);
	if (!words_start(*words, word))
		return false;
	pass(words, strlen(word));
	return true;
}

/* Reads a number. Returns false if no digit follows the blanks, or if the number fits in neither
 * base. */
static bool parse_number(struct words *words, struct number *number)
{
	static const unsigned bases[READINGS] = {[AS_HEX] = 16, [AS_DECIMAL] = 10};
	const char *from;
	unsigned digit;

	pass_blanks(words);
	*number = (struct number){.fits = {true, true}};
	from = words->text;
	for (; words->len && (digit = hex_digits[(unsigned char)*words->text]); pass(words, 1)) {
		digit--;
		for (int i = 0; i < READINGS; i++) {
			uint64_t *value = &number->value[i];

			if (digit >= bases[i] || *value > (UINT64_MAX - digit) / bases[i])
				number->fits[i] = false;
			else
				*value = *value * bases[i] + digit;
		}
	}
	return words->text != from && (number->fits[AS_HEX] || number->fits[AS_DECIMAL]);
}

/* Reads OLD. In published samples, UMDH writes a blank, then OLD padded to five columns
 * (hexadecimal) or six columns (decimal). */
static bool parse_old(struct words *words, struct growth_text *growth)
{
	static const size_t columns[READINGS] = {[AS_HEX] = 5, [AS_DECIMAL] = 6};
	struct words start = *words;
	size_t all;

	if (!parse_number(words, &growth->old))
		return false;
	all = start.len - words->len;
	for (int i = 0; i < READINGS; i++)
		growth->is_padded[i] = all == columns[i] + 1 && is_blank(start.text[1]);
	return true;
}

static bool parse_growth(struct words *words, struct growth_text *growth)
{
	growth->is_minus = words_start(*words, "-");
	pass(words, 1);
	return parse_number(words, &growth->growth) && skip_word(words, "(") &&
	       parse_number(words, &growth->now) && skip_word(words, "-") &&
	       parse_old(words, growth) && skip_word(words, ")");
}

/* Reads "BackTraceID". The id is the rest of the line. Fails if the id contains a parenthesis:
 * another line was then joined to this one. */
static bool parse_id(struct words *words, struct words *id)
{
	if (!skip_word(words, "BackTrace"))
		return false;
	*id = words_trim(*words);
	return id->len && !memchr(id->text, '(', id->len);
}

/* Removes the word "allocations" from the end of an id. */
static bool cut_allocations(struct words *id)
{
	if (!words_end(*id, " allocations") && !words_end(*id, "\tallocations"))
		return false;
	*id = words_trim((struct words){id->text, id->len - strlen(" allocations")});
	return id->len != 0;
}

/* Returns true if a line that is not a row resembles a row. */
static bool is_like_row(struct words line)
{
	struct number number;

	for (struct words word = line; word.len; pass(&word, 1)) {
		if (words_start(word, "BackTrace"))
			return true;
	}
	pass(&line, 1);
	return parse_number(&line, &number) && skip_word(&line, "(");
}

/* Parses a line that begins with a sign. */
static enum line_kind parse_row(struct words line, struct row_text *row)
{
	struct words rest = line, behind;

	if (!parse_growth(&rest, &row->growth))
		return is_like_row(line) ? LINE_BAD_ROW : LINE_OTHER;
	behind = rest;
	if (parse_id(&rest, &row->id))
		return cut_allocations(&row->id) ? LINE_COUNTS : LINE_BAD_ROW;
	return parse_number(&behind, &row->count) && skip_word(&behind, "allocs") &&
			       parse_id(&behind, &row->id) ?
		       LINE_BYTES :
		       LINE_BAD_ROW;
}

static bool parse_part(struct words *words, struct total_text *total, int part)
{
	total->is_minus[part] = skip_word(words, "-");
	return parse_number(words, &total->part[part]);
}

static enum line_kind parse_total(struct words line, struct total_text *total)
{
	if (!skip_word(&line, "Total "))
		return LINE_OTHER;
	total->is_decrease = skip_word(&line, "decrease");
	if (!total->is_decrease && !skip_word(&line, "increase"))
		return LINE_OTHER;
	if (!skip_word(&line, "==") || !parse_part(&line, total, 0))
		return LINE_BAD_TOTAL;
	pass_blanks(&line);
	total->has_overhead = line.len;
	if (!total->has_overhead)
		return LINE_TOTAL;
	if (!skip_word(&line, "requested") || !skip_word(&line, "+") ||
		!parse_part(&line, total, 1) || !skip_word(&line, "overhead") ||
		!skip_word(&line, "=") || !parse_part(&line, total, 2))
		return LINE_BAD_TOTAL;
	pass_blanks(&line);
	return line.len ? LINE_BAD_TOTAL : LINE_TOTAL;
}

bool line_is_message(struct words line)
{
	if (words_start(line, "DBGHELP: ") || words_start(line, "SYMSRV: "))
		return true;
	while (line.len && *line.text != ' ')
		pass(&line, 1);
	return words_start(line, " DBGHELP: ");
}

enum line_kind line_parse(
	const char *text, size_t len, struct row_text *row, struct total_text *total)
{
	struct words line = {text, len};
	enum line_kind kind;

	/* Ctrl-Z, DOS's mark for the end of a file */
	if (!words_trim(line).len || words_equal(line, "\x1a"))
		return LINE_BLANK;
	if (words_start(line, "//"))
		return LINE_COMMENT;
	if (*text == '\t')
		return LINE_FRAME;
	if (*text == '+' || *text == '-')
		return parse_row(line, row);
	kind = *text == 'T' ? parse_total(line, total) : LINE_OTHER;
	/* a path on its own line continues a message */
	return kind == LINE_OTHER && (line_is_message(line) || words_start(line, "         ")) ?
		       LINE_CHATTER :
		       kind;
}

/* ---------------------------------------------------------------- arithmetic */

static bool fits(const struct number *number, int reading)
{
	return number->fits[reading] && number->value[reading] <= INT64_MAX;
}

bool growth_holds(const struct growth_text *growth, int reading)
{
	/* All three numbers fit, so a difference that is equal modulo 2^64 is the true
	 * difference. */
	uint64_t change = growth->now.value[reading] - growth->old.value[reading];

	return fits(&growth->growth, reading) && fits(&growth->now, reading) &&
	       fits(&growth->old, reading) &&
	       growth->growth.value[reading] == (growth->is_minus ? -change : change);
}

int64_t total_part(const struct total_text *total, int part, int reading)
{
	int64_t value = (int64_t)total->part[part].value[reading];

	return total->is_minus[part] != total->is_decrease ? -value : value;
}

bool total_holds(const struct total_text *total, int reading)
{
	int64_t sum;

	for (int i = 0; i < (total->has_overhead ? 3 : 1); i++) {
		if (!fits(&total->part[i], reading))
			return false;
	}
	return !total->has_overhead || (!__builtin_add_overflow(total_part(total, 0, reading),
						total_part(total, 1, reading), &sum) &&
					       sum == total_part(total, 2, reading));
}

/* ---------------------------------------------------------------- lines of dumps */

bool line_is_of_dump(struct words line)
{
	static const char *const starts[] = {"// hsnap:", "// UMDH: version", "// Loaded modules",
		"// Process modules", "*- ", "REQUESTED bytes"};
	struct number number;

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (words_start(line, starts[i]))
			return true;
	}
	return parse_number(&line, &number) && skip_word(&line, "bytes ");
}

/* ---------------------------------------------------------------- headers */

bool line_is_ours(struct words comment)
{
	return words_start(comment, "// hdiff ");
}

bool line_is_header(struct words comment)
{
	return line_is_ours(comment) || words_start(comment, "// + BYTES_DELTA ");
}
