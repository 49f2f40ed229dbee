/* What reports share: numbers, words, frames, and the writers of JSON and CSV. */
#ifndef DIFF_REPORT_REPORT_PARTS_H
#define DIFF_REPORT_REPORT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/base/parse.h"
#include "core/io/out.h"
#include "diff/query/view.h"
#include "diff/read/frame.h"
#include "diff/report/report.h"

/*
 * Numbers with a fraction, as text that is the same on every system.
 *
 * C libraries differ in how they print such numbers, so this is worked out in integers: the number
 * itself, to the last digit before the point, rounded to thousandths (halves away from 0). No zeros at
 * the end of a fraction, no point without one, no exponent, no "-0".
 */

#define FRACTION_TEXT_BYTES 320 /* for every double */

/* Returns text; NULL when value is no number, or none that ends. */
const char *fraction_text(double value, char text[FRACTION_TEXT_BYTES]);

/*
 * What reports of every form say alike: growth, what is known, words for what has no stack, and
 * names fit for files of lines.
 */

/* A difference of two sums of 64 bits. */
struct growth {
	char sign; /* '+' also for 0, or '-' */
	uint64_t amount;
};

struct growth growth_of(uint64_t new, uint64_t old);

/* Of all blocks what is neither selected nor suppressed. The total of a comparison that was read may
 * tell no more than growth: then so does this. */
struct change report_left_out(const struct view *view);

/* Of the rows that are not shown, and how many; in a grouped view, of nothing: groups overlap. */
struct change report_not_shown(const struct view *view, size_t *count);

/* Whether the overhead of single rows, and of what is selected, is known. */
bool report_rows_have_overhead(const struct comparison *comparison);
bool report_has_overhead(const struct view *view);

/* Whether growth per hour can be told: times are known, and of one process there are two snapshots. */
bool report_has_rates(const struct comparison *comparison);

/* When a dump was taken: as date_text() has it, or "2026-11-20T10:25" by some clock on a wall, which is
 * all that UMDH's tell; "" when it is not known. Returns text. */
const char *report_dump_time(const struct dump_sums *dump, char text[DATE_TEXT_BYTES]);

/* The place of dump number index: "old", "between" or "new". */
const char *report_dump_role(const struct comparison *comparison, size_t index);

const char *report_row_kind(enum row_kind kind);

#define ROW_WORDS_BYTES 80

/* What to say in the place of a row's frames, when it has none. space may be used for it. */
const char *report_row_words(const struct row *row, char space[ROW_WORDS_BYTES]);

const char *report_group_kind(enum view_group group);

/* Appends text as UTF-8: a byte that is none becomes U+FFFD, and what a terminal would obey '?', but
 * for TAB, CR and LF unless one_line. 0 or -ERR_NOMEM. */
int clean_text(struct buf *buf, const char *text, bool one_line);

/* Appends "module!function", "module+OFFSET" or "ADDRESS", made clean. 0 or -ERR_NOMEM. */
int clean_frame(struct buf *buf, const struct frame *frame, bool one_line);

/* Appends upper-case hexadecimal. 0 or -ERR_NOMEM. */
int clean_hex(struct buf *buf, uint64_t value);

/* The parts of the text report: what report_text() is made of, each its own file. */

struct text_report {
	struct out *out;
	const struct comparison *comparison;
	const struct view *view;
	const struct report *asked;
	unsigned base; /* of numbers: 10 or 16 */
	unsigned delta_width, sum_width, count_width;
	struct spark spark; /* of a trend */
};

/* The dumps, and how to read what follows: comments, all of them. */
void text_head(struct text_report *report);

/* Of a trend: its series and snapshots; how to read the line before each row; and that line. */
void text_series(struct text_report *report);
void text_trend_legend(struct text_report *report);
void text_trend(
	struct text_report *report, const struct trend *trend, const struct block_totals *of);

/* What a dump says of itself that makes its numbers others than they look, behind its name. */
void text_dump_notes(struct out *out, const struct dump_sums *sums);

/* A rate, in no more digits than say something, right-justified in width. */
void text_rate(struct out *out, double rate, bool has_sign, unsigned width);

/* Growth and names, one group a line. */
void text_groups_legend(struct text_report *report);

/*
 * JSON as it is written: commas, quotes and escapes. What is wrong with the output is kept in out.
 *
 * Texts may hold any bytes: what is no UTF-8 becomes U+FFFD, and control characters (DEL and U+0080
 * to U+009F too) and the line ends U+2028 and U+2029 are escaped. So the output is UTF-8, each of
 * its lines is one that json_line() began, and no terminal obeys it.
 */

struct json {
	struct out *out;
	bool is_first; /* no comma before what comes next */
};

void json_init(struct json *json, struct out *out);

/* key is plain text, or NULL in an array and at the very beginning; kind is '{' or '['. */
void json_open(struct json *json, const char *key, char kind);

/* kind is '}' or ']'. */
void json_close(struct json *json, char kind);

/* What comes next begins a line, behind the comma if there is one. */
void json_line(struct json *json);

void json_text(struct json *json, const char *key, const char *text);
void json_hex(struct json *json, const char *key, uint64_t value); /* a text: "7FFE0308" */
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
/* As fraction_text() has it; null when value is no number. */
void json_fraction(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* new - old, a number with a sign. */
void json_growth(struct json *json, const char *key, uint64_t new, uint64_t old);

/*
 * What both JSON reports have in common: sums, totals, rows and frames as man/hdiff-json.5 has them.
 * What is wrong with the output is kept in out.
 */

void json_census(
	struct json *json, const char *key, const struct block_totals *census, bool has_overhead);

/* "old", "new" and "growth" of what the caller opened. */
void json_change(struct json *json, const struct change *change, bool has_overhead);

/* A line with the sums of what is selected, of what is not, and of everything. */
void json_totals(struct json *json, const struct view *view);

/* Nothing when ms is 0. */
void json_date(struct json *json, const char *key, int64_t ms);

/* "time" or "local_time", when it is known. */
void json_dump_time(struct json *json, const struct dump_sums *dump);

/* What else a dump says of itself: "sample_bytes" to "warnings". */
void json_dump_state(struct json *json, const struct dump_sums *dump);

/* "kind" to "ids" of a row. */
void json_row_names(struct json *json, const struct row *row);

/* "candidate_count", and "frames" or "candidates", of row number. frames is for use here. */
void json_row_frames(
	struct json *json, const struct view *view, uint32_t number, struct frames *frames);

/* A line each with how rows are made and how frames are turned. */
void json_asked(struct json *json, const struct view *view);

/* A line each with the numbers of rows and groups. */
void json_counts(struct json *json, const struct view *view);

/*
 * CSV as it is written: RFC 4180, and no text that a spreadsheet would run. What is wrong with the
 * output is kept in out.
 */

struct csv {
	struct out *out;
	struct buf field; /* for putting one together */
	bool is_first; /* of its record */
};

/* The columns that a trend adds to the CSV report, before and behind the others. */

/* The JSON report of a trend, which has a schema of its own: man/hdiff-json.5, TRENDS. */

/* For report_json(). */
void report_json_trend(struct out *out, const struct report *report);

#endif
