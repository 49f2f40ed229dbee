/* Reading printed comparisons: recognizes them, detects the base of their numbers, and collects
 * rows and totals line by line. */
#include "diff/printed/printed.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/frame_columns.h"
#include "core/dump/pasted.h"
#include "core/dump/source.h"
#include "diff/printed/printed_parts.h"

static const char not_plain[] =
	"a grouped, filtered, inverted or trend report; only a plain report of all stacks can be "
	"read back: compare the dumps, or use -o json";

/* Position of the reader in a row. */
enum printed_place {
	BETWEEN, /* between rows */
	IN_BAD, /* in a refused row; its remaining lines are skipped */
	IN_BAD_STACK,
	COUNTS_NEXT,
	STACK_NEXT,
	IN_STACK,
};

/* Evidence for the base of the numbers. UMDH does not state the base. */
struct base_signs {
	bool is_said[READINGS]; /* stated in hdiff's own header */
	size_t holds[READINGS]; /* number of lines whose arithmetic is correct only in this base */
	bool has_letters; /* some digits are from a to f */
	/* number of OLD values that are padded as UMDH does in this base */
	size_t padded[READINGS];
	bool is_unsure; /* some numbers have different values in the two bases */
};

struct printed_reader {
	struct comparison *comparison;
	struct source *source;
	const struct read_words *words;
	size_t skips;
	/* number of skipped lines that look like data; line number of the first such line */
	uint64_t unread_count, unread_line;
	const char *unread; /* text of the first such line */
	int rc; /* first error; it ends the reading */
	struct err err;
	struct lines lines;
	struct read_rows rows;
	enum printed_place place;
	struct read_row row; /* valid if `place` is COUNTS_NEXT or later */
	struct total_text total;
	bool has_header, is_ours; /* found in the header */
	bool has_row, has_total, has_bad_total, packed_end;
	const char *cut; /* why the file is incomplete, or NULL */
	struct base_signs signs;
};

static void add_warning(struct comparison *comparison, const char *text)
{
	if (comparison->warning_count < WARNINGS_MAX)
		comparison->warnings[comparison->warning_count] =
			arena_text(&comparison->arena, text, strlen(text));
	comparison->warning_count++;
}

static void warn(struct printed_reader *reader, const char *text)
{
	if (reader->rc)
		return;
	add_warning(reader->comparison, text);
	reader->rc = reader->words->warning(reader->words->ctx, text);
}

/* Reports a skipped line or row. Fails if too many were skipped. */
static void refuse(void *ctx, uint64_t line, const char *why)
{
	struct printed_reader *reader = ctx;
	char place[600], text[200];
	struct err err;

	if (reader->rc)
		return;
	snprintf(place, sizeof(place), "%.500s:%" PRIu64, source_name(reader->source), line);
	if (reader->skips++ >= DUMP_SKIPS_MAX) {
		reader->rc = err_set(&reader->err, ERR_BAD_LINE, place, "%s", why);
		return;
	}
	snprintf(text, sizeof(text), "line %" PRIu64 " was left out: %s", line, why);
	add_warning(reader->comparison, text);
	err_set(&err, ERR_BAD_LINE, place, "%s", why);
	reader->rc = reader->words->skipped(reader->words->ctx, &err);
}

static void refuse_line(struct printed_reader *reader, const char *why)
{
	refuse(reader, reader->lines.number, why);
}

static void fail(struct printed_reader *reader, enum err_code code, const char *why)
{
	if (!reader->rc)
		reader->rc = err_set(&reader->err, code, source_name(reader->source), "%s", why);
}

/* Fails because the current line begins another comparison. */
static void fail_second(struct printed_reader *reader, const char *why)
{
	char place[600];

	snprintf(place, sizeof(place), "%.500s:%" PRIu64, source_name(reader->source),
		reader->lines.number);
	if (!reader->rc)
		reader->rc = err_set(&reader->err, ERR_SECOND, place, "%s", why);
}

/* ---------------------------------------------------------------- the base */

/* Collects evidence from a line whose arithmetic is correct in hexadecimal. In any other
 * line, the digits A to F are a sign of damage, not of base 16. */
static void see(struct base_signs *signs, const struct number *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!numbers[i].fits[AS_DECIMAL])
			signs->has_letters = true;
		else if (numbers[i].value[AS_HEX] != numbers[i].value[AS_DECIMAL])
			signs->is_unsure = true;
	}
}

static void see_growth(struct base_signs *signs, const struct growth_text *growth)
{
	const struct number numbers[] = {growth->growth, growth->now, growth->old};

	see(signs, numbers, 3);
	for (int i = 0; i < READINGS; i++)
		signs->padded[i] += growth->is_padded[i];
}

/* If a line's arithmetic is correct in only one base, counts the line for that base. Returns false
 * if it is correct in neither base. */
static bool weigh(struct base_signs *signs, bool as_hex, bool as_decimal)
{
	signs->holds[AS_HEX] += as_hex && !as_decimal;
	signs->holds[AS_DECIMAL] += as_decimal && !as_hex;
	return as_hex || as_decimal;
}

/* Returns true if the rows that are consistent in this base add up to the total line. */
static bool adds_up(const struct printed_reader *reader, int reading)
{
	uint64_t sum = 0; /* modulo 2^64 */

	for (size_t i = 0; i < reader->rows.count; i++) {
		const struct read_row *row = &reader->rows.items[i];

		if (read_row_holds(row, reading))
			sum += row->bytes.now.value[reading] - row->bytes.old.value[reading];
	}
	return reader->has_total && total_holds(&reader->total, reading) &&
	       sum == (uint64_t)total_part(&reader->total, 0, reading);
}

/* Returns the base that the evidence supports, or AS_HEX if it supports neither. In the second
 * case, sets `*is_guess` if some numbers have different values in the two bases. */
static int choose_base(const struct printed_reader *reader, bool *is_guess)
{
	const struct base_signs *signs = &reader->signs;
	size_t hex = signs->holds[AS_HEX], decimal = signs->holds[AS_DECIMAL];

	if (signs->is_said[AS_HEX] != signs->is_said[AS_DECIMAL])
		return signs->is_said[AS_HEX] ? AS_HEX : AS_DECIMAL;
	/* if more lines are correct in decimal, the letters are damage */
	if (signs->has_letters && hex >= decimal)
		return AS_HEX;
	if (hex == decimal) {
		hex += adds_up(reader, AS_HEX);
		decimal += adds_up(reader, AS_DECIMAL);
	}
	if (hex == decimal) {
		hex += signs->padded[AS_HEX];
		decimal += signs->padded[AS_DECIMAL];
	}
	*is_guess = hex == decimal && signs->is_unsure;
	return decimal > hex ? AS_DECIMAL : AS_HEX;
}

/* ---------------------------------------------------------------- rows */

static bool is_open(const struct printed_reader *reader)
{
	return reader->place >= COUNTS_NEXT;
}

static void row_drop(struct printed_reader *reader)
{
	reader->rows.frame_count = reader->row.frame_at;
	reader->place = BETWEEN;
}

/* Refuses a line. If the line is in a row, the row's stack is incomplete. */
static void refuse_inside(struct printed_reader *reader, const char *why)
{
	if (is_open(reader))
		reader->row.is_own = true;
	refuse_line(reader, why);
}

static void row_end(struct printed_reader *reader)
{
	struct base_signs *signs = &reader->signs;
	struct read_row *row = &reader->row;
	bool was_open = is_open(reader), as_hex;

	reader->place = BETWEEN;
	if (!was_open)
		return;
	row->frame_count = reader->rows.frame_count - row->frame_at;
	as_hex = read_row_holds(row, AS_HEX);
	if (!weigh(signs, as_hex, read_row_holds(row, AS_DECIMAL))) {
		row_drop(reader);
		refuse(reader, row->line, "its numbers contradict each other");
		return;
	}
	if (as_hex) {
		see_growth(signs, &row->bytes);
		see(signs, &row->count, 1);
	}
	if (as_hex && row->has_counts)
		see_growth(signs, &row->counts);
	read_rows_add(&reader->rows, row);
}

static void refuse_row(struct printed_reader *reader, const char *why)
{
	if (is_open(reader))
		row_drop(reader);
	reader->place = IN_BAD;
	refuse_line(reader, why);
}

static void row_begin(struct printed_reader *reader, const struct row_text *text)
{
	struct read_rows *rows = &reader->rows;

	row_end(reader);
	if (reader->has_total) {
		fail_second(reader, "a row after the total line");
		return;
	}
	reader->has_row = true;
	reader->row = (struct read_row){.line = reader->lines.number,
		.id = arena_text(rows->arena, text->id.text, text->id.len),
		.bytes = text->growth,
		.count = text->count,
		.frame_at = rows->frame_count};
	reader->place = COUNTS_NEXT;
}

static void row_counts(struct printed_reader *reader, const struct row_text *text)
{
	if (reader->place == IN_BAD)
		return;
	if (reader->place != COUNTS_NEXT) {
		row_end(reader);
		refuse_row(reader, "the row's first line is missing");
	} else if (!words_equal(text->id, reader->row.id)) {
		refuse_row(reader, "a row's two lines name different stacks");
	} else {
		reader->row.counts = text->growth;
		reader->row.has_counts = true;
		reader->place = STACK_NEXT;
	}
}

static void bad_row(struct printed_reader *reader)
{
	if (reader->place != COUNTS_NEXT)
		row_end(reader);
	reader->has_row = true;
	refuse_row(reader, "begins like a row but does not continue like one");
}

#define SHOWN_MAX 60 /* bytes of a line that a message shows */

/* Counts a line between rows that looks like data. */
static void unread_line(struct printed_reader *reader, struct words words)
{
	if (reader->unread_count++)
		return;
	reader->unread_line = reader->lines.number;
	if (words.len > SHOWN_MAX)
		words.len = SHOWN_MAX;
	while (words.len == SHOWN_MAX && words.len && (words.text[words.len - 1] & 0x80))
		words.len--; /* the last character may be cut */
	reader->unread =
		text_harmless(arena_text(&reader->comparison->arena, words.text, words.len));
}

/* Returns true if unknown marks or columns precede the name of a frame, or if a mark replaces it. In our own reports, what
 * looks like columns may be part of a module's name. */
static bool is_marked(const struct printed_reader *reader, struct words words)
{
	return pasted_is_marked(words.text, words.len) ||
	       pasted_is_omission(words.text, words.len) ||
	       (!reader->is_ours && (memchr(words.text, '\t', words.len) ||
					    frame_columns_are_strange(words.text, words.len)));
}

static void row_frame(struct printed_reader *reader, struct words words)
{
	bool is_first = reader->rows.frame_count == reader->row.frame_at;

	words = words_trim(words);
	if (reader->place == IN_BAD || reader->place == IN_BAD_STACK) {
		reader->place = IN_BAD_STACK;
	} else if (!is_open(reader) && reader->unread_count) {
		unread_line(reader, words);
	} else if (!is_open(reader)) {
		refuse_line(reader, "does not belong to a row");
	} else if (reader->is_ours && words_start(words, "(one of ")) {
		fail(reader, ERR_NOT_DUMP, not_plain);
	} else if (is_marked(reader, words)) {
		reader->place = IN_STACK;
		reader->row.is_own = true;
		unread_line(reader, words);
	} else {
		reader->place = IN_STACK;
		/* Not frames: our own reports print these texts instead of a stack. */
		if (is_first && (words_equal(words, NO_STACK) ||
					words_equal(words, "(stack not in the dump)")))
			return;
		if (!read_rows_frame(&reader->rows, words, reader->is_ours))
			unread_line(reader, words);
	}
}

static void refuse_unread(struct printed_reader *reader)
{
	char why[SHOWN_MAX + 100];

	refuse(reader, reader->unread_line,
		dump_unread_text(reader->unread_count, reader->unread, why, sizeof(why)));
}

/* Returns true for "MODULE+OFFSET : ADDRESS", the form of a frame without a name. */
static bool is_nameless_frame(struct words words)
{
	size_t len;

	words = words_trim(words);
	len = words.len;
	while (len && isxdigit((unsigned char)words.text[len - 1]))
		len--;
	return len < words.len && len > 3 && !memcmp(words.text + len - 3, " : ", 3) &&
	       memchr(words.text, '+', len - 3);
}

/* Reads a line of unknown form. It may be a frame, because frames are not indented in old logs.
 * Between rows, any text may occur, because UMDH writes its messages to the same output as the
 * report. */
static void other_line(struct printed_reader *reader, struct words words)
{
	bool is_frame = memchr(words.text, '!', words.len) || is_nameless_frame(words) ||
			pasted_is_marked(words_trim(words).text, words_trim(words).len);

	if (reader->place != BETWEEN && is_frame)
		row_frame(reader, words);
	else if (reader->place != BETWEEN)
		refuse_inside(reader, "not part of a comparison");
	else if (line_is_of_dump(words))
		refuse_line(reader, "part of a dump");
	else if (pasted_is_data(words.text, words.len))
		unread_line(reader, words);
}

/* Reads a message of the symbol engine, or a line that only looks like one. */
static void chatter_line(struct printed_reader *reader, struct words words)
{
	bool is_frame = reader->place != BETWEEN && memchr(words.text, '!', words.len);

	if (is_frame || (reader->place == BETWEEN && pasted_is_data(words.text, words.len)))
		other_line(reader, words);
}

static void bad_total(struct printed_reader *reader, const char *why)
{
	reader->has_bad_total = true;
	refuse_line(reader, why);
}

static void total_line(struct printed_reader *reader, const struct total_text *total)
{
	bool as_hex = total_holds(total, AS_HEX);

	row_end(reader);
	if (reader->has_total) {
		refuse_line(reader, "a second total line");
	} else if (!weigh(&reader->signs, as_hex, total_holds(total, AS_DECIMAL))) {
		bad_total(reader, "its numbers contradict each other");
	} else {
		reader->total = *total;
		reader->has_total = true;
		if (as_hex)
			see(&reader->signs, total->part, total->has_overhead ? 3 : 1);
	}
}

/* ---------------------------------------------------------------- comments */

/* Returns true if a comment shows that one of our own reports is not purely in UMDH's form: the
 * report has groups, a trend, inverted or ambiguous stacks, or lacks some stacks. */
static bool is_beyond_umdh(struct words comment)
{
	static const char *const starts[] = {"// frames: outermost first",
		"//     ambiguous: one of ", "// What all blocks add up to",
		"// Totals of the selected stacks"};
	size_t at = strlen("// ");

	comment = words_trim(comment);
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (words_start(comment, starts[i]))
			return true;
	}
	if (line_is_ours(comment))
		return !words_end(comment, ": heap growth by stack");
	/* "// 5 more stacks are not shown; they add up to ..." */
	while (at < comment.len && comment.text[at] >= '0' && comment.text[at] <= '9')
		at++;
	return words_end(comment, ", CUT SHORT: sums cover only the complete part") ||
	       words_end(comment, ", CUT SHORT: sums are of what is there") ||
	       (at < comment.len && words_start((struct words){comment.text + at, comment.len - at},
					    " more stack"));
}

static void comment_line(struct printed_reader *reader, struct words words)
{
	static const char hex[] = "// BLOCKS are those in NEW. Numbers are hexadecimal",
			  decimal[] = "// BLOCKS are those in NEW. Numbers are decimal";

	if (reader->has_row && line_is_header(words)) {
		fail_second(reader, "the head of a comparison");
	} else if (!reader->has_row) {
		reader->has_header |= line_is_header(words);
		reader->is_ours |= line_is_ours(words);
		reader->signs.is_said[AS_HEX] |= words_start(words, hex);
		reader->signs.is_said[AS_DECIMAL] |= words_start(words, decimal);
	}
	if (reader->is_ours && is_beyond_umdh(words))
		fail(reader, ERR_NOT_DUMP, not_plain);
}

/* ---------------------------------------------------------------- the file */

/* Returns true if the last line is incomplete: it has no line end and is not a consistent total
 * line. After the total line, any text may follow, such as a console's prompt. */
static bool is_partial(
	const struct printed_reader *reader, enum line_kind kind, const struct total_text *total)
{
	if (!reader->lines.no_newline || kind == LINE_BLANK)
		return false;
	if (kind == LINE_COMMENT || kind == LINE_CHATTER || kind == LINE_OTHER)
		return !reader->has_total;
	return kind != LINE_TOTAL || !total->has_overhead ||
	       (!total_holds(total, AS_HEX) && !total_holds(total, AS_DECIMAL));
}

/* A line with only a TAB does not end a stack. A published sample contains such a line, and
 * pasted_add() writes such lines. */
static void blank_line(struct printed_reader *reader, struct words words)
{
	if (words.len == 1 && *words.text == '\t')
		return;
	if (reader->place == IN_STACK)
		row_end(reader);
	else if (reader->place == COUNTS_NEXT)
		reader->place = STACK_NEXT;
	else if (reader->place == IN_BAD_STACK)
		reader->place = BETWEEN;
}

/* Refuses a line that is too long, because the rest of it could be read as data. A comment of any
 * length is allowed. */
static void long_line(struct printed_reader *reader, const struct line *line)
{
	if (words_start((struct words){line->text, line->len}, "//"))
		return;
	if (line->len <= DUMP_LINE_MAX)
		/* refuse the whole file: the rest of this line would be read as lines of its own */
		reader->skips = DUMP_SKIPS_MAX;
	refuse_inside(reader, "the line is too long for a comparison");
}

static void read_line(struct printed_reader *reader, const struct line *line)
{
	struct words words = {line->text, line->len};
	struct row_text row;
	struct total_text total;
	enum line_kind kind = line_parse(line->text, line->len, &row, &total);

	if (is_partial(reader, kind, &total)) {
		reader->cut = "ends in the middle of a line";
		return;
	}
	if (memchr(line->text, '\0', line->len)) {
		refuse_inside(reader, "bytes that are not text");
		return;
	}
	switch (kind) {
	case LINE_BLANK: blank_line(reader, words); break;
	case LINE_COMMENT: comment_line(reader, words); break;
	case LINE_CHATTER: chatter_line(reader, words); break;
	case LINE_BYTES: row_begin(reader, &row); break;
	case LINE_COUNTS: row_counts(reader, &row); break;
	case LINE_BAD_ROW: bad_row(reader); break;
	case LINE_TOTAL: total_line(reader, &total); break;
	case LINE_BAD_TOTAL: bad_total(reader, "not a complete total line"); break;
	case LINE_FRAME: row_frame(reader, words); break;
	case LINE_OTHER: other_line(reader, words); break;
	}
}

/* Reads bytes of the file. Packed data that is cut short ends at the cut. */
static int64_t read_source(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct printed_reader *reader = ctx;
	int64_t got = source_read(reader->source, bytes, len, err);

	if (got != -ERR_CUT)
		return got;
	reader->packed_end = true;
	return 0;
}

/* Ends the last row of a file if no total line follows it. */
static void end_of_rows(struct printed_reader *reader)
{
	bool has_stack = reader->place == IN_STACK;

	if (reader->packed_end)
		reader->cut = "the end of the packed data is missing";
	if (!reader->cut && is_open(reader) && !has_stack)
		reader->cut = "ends in the middle of a row";
	if (!reader->cut && reader->has_header && reader->has_row && !reader->has_total &&
		!reader->has_bad_total)
		reader->cut = "the total line is missing";
	if (reader->place == COUNTS_NEXT)
		/* the row is unusable: the missing line contains OLD's number of blocks */
		row_drop(reader);
	reader->row.is_own |= reader->cut != NULL;
	row_end(reader);
}

#define LACKS_ROWS "the rows do not add up to the total line: some are missing"

static void finish_reading(struct printed_reader *reader, unsigned base)
{
	struct comparison *comparison = reader->comparison;
	int reading = base == 10 ? AS_DECIMAL : AS_HEX;
	bool is_whole;

	if (!base)
		reading = choose_base(reader, &comparison->is_guess);
	if (comparison->is_guess)
		warn(reader, "nothing in it shows whether its numbers are hexadecimal or decimal; "
			     "they are read as hexadecimal, UMDH's default; --input-base "
			     "hex|decimal sets the base");
	read_rows_finish(&reader->rows, reading, comparison, refuse, reader);
	is_whole = !reader->has_total || read_total_finish(&reader->total, reading, comparison);
	comparison->is_cut = reader->cut != NULL;
	/* Rows need not add up to UMDH's total line, because it also counts blocks that have no
	 * stack and no row. */
	comparison->is_partial = reader->cut || reader->skips ||
				 (!is_whole && (reader->is_ours || !comparison->lacks_rows));
	comparison->may_lack_rows = !reader->has_total;
	if (reader->rows.has_code_page)
		warn(reader, NAMES_NOT_UTF8);
	if (comparison->lacks_counts)
		warn(reader, "rows do not record the old number of blocks; where bytes were in use "
			     "before, the new number is assumed");
	if (!reader->cut && !reader->has_total)
		warn(reader, "no total line: the file may be cut short");
	else if (!is_whole && !reader->skips)
		warn(reader, reader->is_ours ? LACKS_ROWS :
					       LACKS_ROWS ", or it counts blocks without a stack");
}

static void read_all(struct printed_reader *reader, unsigned base)
{
	struct dump_source from = {read_source, reader, source_name(reader->source)};
	struct line line;
	int more = 0;

	lines_init(&reader->lines, &from, &reader->err);
	while (!reader->rc && (more = lines_next(&reader->lines, &line)) > 0) {
		if (line.is_long)
			long_line(reader, &line);
		else
			read_line(reader, &line);
	}
	if (more < 0)
		reader->rc = more;
	if (!reader->rc)
		end_of_rows(reader);
	if (reader->unread_count)
		refuse_unread(reader);
	if (!reader->has_row && !reader->has_total) {
		if (!reader->lines.number)
			fail(reader, ERR_EMPTY, "");
		else if (!reader->has_header && !reader->packed_end)
			fail(reader, ERR_NOT_DUMP, "nor is it a comparison");
		reader->cut = "nothing follows its header";
	}
	if (!reader->rc && reader->has_row && !reader->rows.count)
		fail(reader, ERR_NOT_DUMP, "a comparison, but none of its rows can be read");
	if (!reader->rc)
		finish_reading(reader, base);
	if (reader->cut)
		fail(reader, ERR_CUT, reader->cut);
}

int comparison_read(struct comparison *comparison, struct source *source, unsigned base,
	const struct read_words *words, struct err *err)
{
	const char *name = source_name(source);
	struct printed_reader reader = {.comparison = comparison, .source = source, .words = words};

	*comparison = (struct comparison){.dump_count = 2};
	arena_init(&comparison->arena);
	read_rows_init(&reader.rows, &comparison->arena);
	reader.rows.by_id = words->by_id;
	comparison->read_from = arena_text(&comparison->arena, name, strlen(name));
	read_all(&reader, base);
	lines_release(&reader.lines);
	read_rows_release(&reader.rows);
	if (reader.rc && err && reader.err.code)
		*err = reader.err;
	return reader.rc;
}
