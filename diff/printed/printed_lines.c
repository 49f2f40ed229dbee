#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/dump.h"
#include "diff/printed/printed_parts.h"

static int keep(struct comparison *to, const char *text)
{
	if (to->warning_count < WARNINGS_MAX) {
		const char *own = arena_text(&to->arena, text, strlen(text));

		if (!own)
			return -ERR_NOMEM;
		to->warnings[to->warning_count] = own;
	}
	to->warning_count++;
	return 0;
}

int voice_warn(struct reader_voice *voice, const char *text)
{
	int rc = keep(voice->to, text);

	if (rc || !voice->words->warning)
		return rc;
	return voice->words->warning(voice->words->ctx, text);
}

int voice_skip(struct reader_voice *voice, uint64_t line, const char *why)
{
	char place[600], text[200];
	struct err err;
	int rc;

	snprintf(place, sizeof(place), "%.500s:%" PRIu64, voice->name, line);
	if (!voice->words->skipped || voice->skips++ >= DUMP_SKIPS_MAX)
		return err_set(voice->err, ERR_BAD_LINE, place, "%s", why);
	snprintf(text, sizeof(text), "line %" PRIu64 " was left out: %s", line, why);
	rc = keep(voice->to, text);
	err_set(&err, ERR_BAD_LINE, place, "%s", why);
	return rc ? rc : voice->words->skipped(voice->words->ctx, &err);
}

static void see(struct base_signs *signs, const struct number *number)
{
	if (!number->fits[AS_DECIMAL])
		signs->has_letters = true;
	else if (number->value[AS_HEX] != number->value[AS_DECIMAL])
		signs->is_unsure = true;
}

static void see_growth(struct base_signs *signs, const struct growth_text *growth)
{
	see(signs, &growth->growth);
	see(signs, &growth->new);
	see(signs, &growth->old);
	for (int i = 0; i < READINGS; i++)
		signs->padded[i] += growth->is_padded[i];
}

/* Whether it is worth to look further: letters in what cannot be hexadecimal are damage. */
static bool weigh(struct base_signs *signs, bool as_hex, bool as_decimal)
{
	signs->holds[AS_HEX] += as_hex && !as_decimal;
	signs->holds[AS_DECIMAL] += as_decimal && !as_hex;
	return as_hex;
}

void base_see_row(struct base_signs *signs, const struct read_row *row)
{
	if (!weigh(signs, read_row_holds(row, AS_HEX), read_row_holds(row, AS_DECIMAL)))
		return;
	see_growth(signs, &row->bytes);
	see(signs, &row->count);
	if (row->has_counts)
		see_growth(signs, &row->counts);
}

void base_see_total(struct base_signs *signs, const struct total_text *total)
{
	if (!weigh(signs, total_holds(total, AS_HEX), total_holds(total, AS_DECIMAL)))
		return;
	for (int i = 0; i < (total->has_overhead ? 3 : 1); i++)
		see(signs, &total->part[i]);
}

bool base_adds_up(const struct read_rows *rows, const struct total_text *total, int reading)
{
	return total && total_holds(total, reading) &&
	       read_rows_growth(rows, reading) == (uint64_t)total_part(total, 0, reading);
}

int base_choose(const struct base_signs *signs, const struct read_rows *rows,
	const struct total_text *total, bool *is_guess)
{
	size_t hex = signs->holds[AS_HEX], decimal = signs->holds[AS_DECIMAL];

	*is_guess = false;
	if (signs->is_said[AS_HEX] != signs->is_said[AS_DECIMAL])
		return signs->is_said[AS_HEX] ? AS_HEX : AS_DECIMAL;
	if (signs->has_letters && hex >= decimal) /* else they are damage */
		return AS_HEX;
	if (hex == decimal) {
		hex += base_adds_up(rows, total, AS_HEX);
		decimal += base_adds_up(rows, total, AS_DECIMAL);
	}
	if (hex == decimal) {
		hex += signs->padded[AS_HEX];
		decimal += signs->padded[AS_DECIMAL];
	}
	*is_guess = hex == decimal && signs->is_unsure;
	return decimal > hex ? AS_DECIMAL : AS_HEX;
}

#define CANDIDATES_MAX 100000000 /* more are nonsense */

static bool holds(struct words words, const char *part)
{
	size_t len = strlen(part);

	for (size_t i = 0; i + len <= words.len; i++) {
		if (!memcmp(words.text + i, part, len))
			return true;
	}
	return false;
}

/* Takes start off words. */
static bool skip_start(struct words *words, const char *start)
{
	size_t len = strlen(start);

	if (!words_start(*words, start))
		return false;
	*words = (struct words){words->text + len, words->len - len};
	return true;
}

bool note_is_ours(struct words comment)
{
	return words_start(comment, "// hdiff ");
}

bool note_is_header(struct words comment)
{
	return note_is_ours(comment) || words_start(comment, "// + BYTES_DELTA ");
}

static bool is_grouped(struct words comment)
{
	return (holds(comment, ": heap growth by ") && !holds(comment, ": heap growth by stack")) ||
	       (holds(comment, ": trend by ") && !holds(comment, ": trend by stack"));
}

const char *note_refusal(struct words comment, bool is_behind)
{
	if (!note_is_ours(comment))
		return NULL;
	if (is_behind)
		return "there are several reports in it, as of a trend of several series: print "
		       "one, with --series";
	return is_grouped(comment) ? "it is a report that is grouped: there are no stacks in it" :
				     NULL;
}

bool note_is_inverted(struct words comment)
{
	return words_equal(words_trim(comment), "// frames: outermost first");
}

/* "// WORD: ...", behind which anything may stand: a file's name, a warning; of a trend also
 * "// SERIES 1 of 2: ..." and a snapshot's line, which is indented. */
static bool is_of_file(struct words comment)
{
	const char *blank;

	if (words_start(comment, "// SERIES ") || words_start(comment, "//  "))
		return true;
	if (!skip_start(&comment, "// "))
		return false;
	blank = memchr(comment.text, ' ', comment.len);
	return blank && blank > comment.text && blank[-1] == ':';
}

void note_base(struct words comment, bool is_said[READINGS])
{
	if (is_of_file(comment))
		return;
	is_said[AS_HEX] |= holds(comment, "Numbers are hexadecimal");
	is_said[AS_DECIMAL] |= holds(comment, "Numbers are decimal");
}

bool note_is_ambiguous(struct words comment)
{
	return words_start(comment, "//     ambiguous: one of ");
}

bool note_also(struct words *comment)
{
	return skip_start(comment, "//     also");
}

bool note_id(struct words *rest, struct words *id)
{
	static const char word[] = " BackTrace";
	struct words at = *rest;

	if (!skip_start(&at, word))
		return false;
	id->text = at.text;
	while (at.len && !words_start(at, word) && !words_start(at, " and "))
		at = (struct words){at.text + 1, at.len - 1};
	id->len = (size_t)(at.text - id->text);
	*rest = at;
	return true;
}

bool note_is_of_cut(struct words comment)
{
	return is_of_file(comment) && holds(comment, ", CUT SHORT: sums are of what is there");
}

bool note_rest(struct words comment, struct rest_text *rest)
{
	static const char more[] = " more stacks are not shown; they add up to";

	if (!skip_start(&comment, "// "))
		return false;
	while (comment.len && *comment.text >= '0' && *comment.text <= '9')
		comment = (struct words){comment.text + 1, comment.len - 1};
	return skip_start(&comment, more) && words_signed(&comment, &rest->bytes) &&
	       skip_start(&comment, " bytes,") && words_signed(&comment, &rest->blocks) &&
	       words_equal(words_trim(comment), "blocks");
}

bool note_all(struct words comment, struct all_text *all)
{
	if (!skip_start(&comment, "//") || !words_signed(&comment, &all->requested))
		return false;
	all->has_overhead = words_signed(&comment, &all->overhead);
	if (!all->has_overhead) {
		comment = words_trim(comment);
		if (!skip_start(&comment, "?"))
			return false;
	}
	return words_signed(&comment, &all->blocks) && words_equal(words_trim(comment), "all");
}

/* "(one of 12 stacks under this id)" */
static bool is_one_of(struct words words, size_t *count)
{
	size_t sum = 0;

	if (!skip_start(&words, "(one of "))
		return false;
	while (words.len && *words.text >= '0' && *words.text <= '9' && sum < CANDIDATES_MAX) {
		sum = sum * 10 + (size_t)(*words.text - '0');
		words = (struct words){words.text + 1, words.len - 1};
	}
	if (!sum || !words_equal(words, " stacks under this id)"))
		return false;
	*count = sum;
	return true;
}

bool note_no_stack(struct words words, enum row_kind *kind, size_t *candidate_count)
{
	if (words_equal(words, NO_STACK))
		*kind = ROW_STACKLESS;
	else if (words_equal(words, "(stack not in the dump)"))
		*kind = ROW_UNKNOWN;
	else if (is_one_of(words, candidate_count))
		*kind = ROW_ONE_OF;
	else
		return false;
	return true;
}

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

bool words_signed(struct words *words, struct signed_number *number)
{
	struct cursor cursor = {words->text, words->text + words->len};
	bool is_minus = take(&cursor, "-");

	if ((!is_minus && !take(&cursor, "+")) || cursor.at == cursor.end || is_blank(*cursor.at) ||
		!take_number(&cursor, &number->number))
		return false;
	number->is_minus = is_minus;
	*words = (struct words){cursor.at, (size_t)(cursor.end - cursor.at)};
	return true;
}

/* ---------------------------------------------------------------- arithmetic */

static bool fits(const struct number *number, int reading)
{
	return number->fits[reading] && number->value[reading] <= INT64_MAX;
}

bool signed_holds(const struct signed_number *number, int reading)
{
	return fits(&number->number, reading);
}

int64_t signed_value(const struct signed_number *number, int reading)
{
	int64_t value = (int64_t)number->number.value[reading];

	return number->is_minus ? -value : value;
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
