/* What reports share: numbers, words, frames, and the parts of the text report. */
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
const char *report_fraction(double value, char text[FRACTION_TEXT_BYTES]);

/*
 * What reports of every form say alike: growth, what is known, words for what has no stack, and
 * names fit for files of lines.
 */

/* "12.3 MiB", "512 B"; "4,102"; a share of 100, rounded. Each returns text. */
#define REPORT_SIZE_BYTES 40
#define REPORT_COUNT_BYTES 32
const char *report_size(uint64_t bytes, char text[REPORT_SIZE_BYTES]);
const char *report_count(uint64_t count, char text[REPORT_COUNT_BYTES]);
unsigned report_percent(uint64_t part, uint64_t whole);

/* With one digit behind the point: "-11.8"; "> 1e17" of what is more. */
const char *report_tenths(double value, char text[REPORT_SIZE_BYTES]);

/* Columns that a text takes, where each character takes one. */
unsigned report_columns(const char *text);

/* What fits into so many columns of a text that was made clean; how many that takes. */
unsigned report_put_cut(struct out *out, const char *text, unsigned columns);

/* Rows of a view, and bytes, by which way they went; first_bytes: those of the first rows that grew. */
struct report_ways {
	size_t grown_count, shrunk_count;
	uint64_t grown_bytes, shrunk_bytes, first_bytes;
};

void report_ways(const struct view *view, size_t first, struct report_ways *ways);

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

/* Of a window: allocations a second, NAN of one without length; and how long those that came and went in it lived
 * on the average, in ms. */
double report_window_rate(const struct comparison *comparison, const struct window_sums *sums);
double report_window_life(const struct window_sums *sums);

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
 * for TAB, CR and LF unless one_line. */
void clean_text(struct buf *buf, const char *text, bool one_line);

/* Appends "module!function", "module+OFFSET" or "ADDRESS", made clean. */
void clean_frame(struct buf *buf, const struct frame *frame, bool one_line);

/* Shortens a name, "module!function", that begins at from and is clean, if the words take more than that number of columns.
 * It may still be too long. */
void report_shorten(struct buf *words, size_t from, unsigned columns);

/* What charts share. */

/* In the order in which they are shown. */
extern const enum record_memory chart_memories[RECORD_MEMORIES];

/* The next mark of the window up to a time, or NULL; *at, the number of the next one, begins with 0. */
const struct record_mark *chart_mark(const struct chart *chart, size_t *at, uint64_t end_ms);

/* The logarithm to the base 2 and 1, so that one block has a height; 0 of 0. It is the same on every system. */
double chart_log(uint64_t value);

/* The pieces of a page as diff/report/html has them, with the style and the script in it: what is made goes
 * in between. The build makes them. */
enum page_piece {
	PAGE_TITLE, /* up to where the title goes */
	PAGE_HEAD, /* what is reported, for every reader */
	PAGE_TABLE, /* rows, for those without scripts */
	PAGE_DATA, /* the report as JSON, for the script */
	PAGE_END, /* behind it */
	PAGE_PIECES,
};
extern const char *const page_pieces[PAGE_PIECES];

/* The call tree of a view, for people: in so many columns. */
void report_tree(
	struct out *out, const struct view *view, const struct report *report, unsigned columns);

/* Text from elsewhere, of one line or of several, as XML and HTML have it, also in quotes: without what a terminal would
 * obey, what XML may not have, and markup. */
void xml_text(struct out *out, const char *text);
void xml_lines(struct out *out, const char *text);

/* A length, in tenths of a unit. */
void svg_attribute(struct out *out, const char *name, double value);

/* The parts of the UMDH report: what report_umdh() is made of, each its own file. */

struct umdh_report {
	struct out *out;
	const struct comparison *comparison;
	const struct view *view;
	const struct report *whole;
	unsigned base; /* of numbers: 10 or 16 */
	unsigned delta_width, sum_width, count_width;
	struct spark spark; /* of a trend */
};

/* The dumps, and how to read what follows: comments, all of them. */
void umdh_head(struct umdh_report *report);

/* Of a trend: its series and snapshots; how to read the line before each row; and that line. */
void umdh_series(struct umdh_report *report);
void umdh_trend_legend(struct umdh_report *report);
void umdh_trend(
	struct umdh_report *report, const struct trend *trend, const struct block_totals *totals);

/* A time in a recording: "10.250 s". */
void umdh_seconds(struct out *out, uint64_t ms);

/* Prints ", what was allocated and not freed from 1.000 s to 2.000 s": the class and the window of a recording. Prints
 * nothing for a moment. */
void umdh_fate(struct out *out, const struct dump_sums *sums);

/* What a dump says of itself that makes its numbers others than they look, behind its name. */
void umdh_dump_notes(struct out *out, const struct dump_sums *sums);

/* A dump, and a line for each thing that it lacks. */
void umdh_dump(struct out *out, const char *role, const struct dump_sums *sums);

/* The warnings of a file, a line each, all behind the same. */
void umdh_warnings(struct out *out, const char *before, const char *path,
	const char *const *warnings, size_t count);

/* Those of all dumps of a comparison, each once. */
void umdh_series_warnings(struct out *out, const char *before, const struct comparison *comparison);

/* A rate, in no more digits than say something, right-justified in width. */
void umdh_rate(struct out *out, double rate, bool has_sign, unsigned width);

/* Growth and names, one group a line. */
void umdh_groups_legend(struct umdh_report *report);

#endif
