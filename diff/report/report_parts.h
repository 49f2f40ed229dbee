/* Shared parts of reports: numbers, words, frames, and the parts of the text report. */
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
 * Numbers with a fraction, as text that is equal on every system.
 *
 * C libraries print such numbers differently, so the digits are computed with integers. All digits
 * before the point are written, and the fraction is rounded to thousandths (halves away from 0). No
 * trailing zeros or trailing point, no exponent, no "-0". */

#define FRACTION_TEXT_BYTES 320 /* enough for every double */

/* Returns `text`, or NULL if `value` is not finite. */
const char *report_fraction(double value, char text[FRACTION_TEXT_BYTES]);

/* Figures and texts shared by all forms of reports: growth, which numbers are known, words for rows
 * without a stack, and names that fit on a line. */

/* "12.3 MiB" or "512 B"; "4,102"; a rounded percentage. The first two functions return `text`. */
#define REPORT_SIZE_BYTES 40
#define REPORT_COUNT_BYTES 32
const char *report_size(uint64_t bytes, char text[REPORT_SIZE_BYTES]);
const char *report_count(uint64_t count, char text[REPORT_COUNT_BYTES]);
unsigned report_percent(uint64_t part, uint64_t whole);

/* Writes one digit after the point: "-11.8". Writes "> 1e17" for larger numbers. Returns `text`. */
const char *report_tenths(double value, char text[REPORT_SIZE_BYTES]);

/* Writes as much of a sanitized text as fits in `columns`. Returns the number of columns used. */
unsigned report_write_cut(struct out *out, const char *text, unsigned columns);

/* Numbers and bytes of the rows that grew and of those that shrank. `first_bytes` is the growth
 * within the first rows. */
struct report_ways {
	size_t grown_count, shrunk_count;
	uint64_t grown_bytes, shrunk_bytes, first_bytes;
};

void report_ways(const struct view *view, size_t first, struct report_ways *ways);

/* Difference of two 64-bit sums. */
struct growth {
	char sign; /* '-', or '+' (including for 0) */
	uint64_t amount;
};

struct growth growth_of(uint64_t new, uint64_t old);

/* Returns the blocks that are neither selected nor suppressed. The total of a printed comparison
 * may contain only growth. In this case the result does, too. */
struct change report_left_out(const struct view *view);

/* Returns the sum of the rows that are not shown, and stores their number in `*count`. Both are
 * zero in a grouped view, because groups overlap. */
struct change report_not_shown(const struct view *view, size_t *count);

/* Return true if the overhead of each row (second function: of the selected rows) is known. */
bool report_rows_have_overhead(const struct comparison *comparison);
bool report_has_overhead(const struct view *view);

/* Returns true if growth per hour is known: snapshots have times, and one process has at least two
 * snapshots. */
bool report_has_rates(const struct comparison *comparison);

/* For a window: return allocations per second (NAN if the window has no length), and the mean
 * lifetime in ms of blocks allocated and freed in the window. */
double report_window_rate(const struct comparison *comparison, const struct window_sums *sums);
double report_window_life(const struct window_sums *sums);

/* Returns a dump's time in the form that date_text() writes. If only UMDH's banner contains a time,
 * returns local time, "2026-11-20T10:25". Returns "" if the time is unknown. Uses `text`. */
const char *report_dump_time(const struct dump_sums *dump, char text[DATE_TEXT_BYTES]);

/* Returns the role of dump number `index`: "old", "between" or "new". */
const char *report_dump_role(const struct comparison *comparison, size_t index);

const char *report_row_kind(enum row_kind kind);

#define ROW_WORDS_BYTES 80

/* Returns the text that replaces the frames of a row without frames. May use `space`. */
const char *report_row_words(const struct row *row, char space[ROW_WORDS_BYTES]);

const char *report_group_kind(enum view_group group);

/* Appends text as UTF-8. Invalid bytes become U+FFFD, and control characters become '?'. TAB, CR
 * and LF are unchanged unless `one_line`. */
void clean_text(struct buf *buf, const char *text, bool one_line);

/* Appends "module!function", "module+OFFSET" or "ADDRESS", sanitized. */
void clean_frame(struct buf *buf, const struct frame *frame, bool one_line);

/* Shortens a sanitized name, "module!function", that begins at `from`, if `words` needs more than
 * the given number of columns. The result may still be too long. */
void report_shorten(struct buf *words, size_t from, unsigned columns);

/* Shared parts of charts. */

/* In display order. */
extern const enum record_memory chart_memories[RECORD_MEMORIES];

/* Returns the next mark of the window up to `end_ms`, or NULL. `*at` is the number of the next mark
 * and starts at 0. */
const struct record_mark *chart_mark(const struct chart *chart, size_t *at, uint64_t end_ms);

/* Returns log2(value) + 1, so that one block has a height, or 0 for 0. The result is equal on every
 * system. */
double chart_log(uint64_t value);

/* Pieces of a page, which the build makes from diff/report/html, including the style and the
 * script. Generated content goes between the pieces. */
enum page_piece {
	PAGE_TITLE, /* up to the title */
	PAGE_HEAD, /* up to the summary, for every reader */
	PAGE_TABLE, /* up to the rows, for readers without scripts */
	PAGE_DATA, /* up to the report as JSON, for the script */
	PAGE_END, /* after the data */
	PAGE_PIECES,
};
extern const char *const page_pieces[PAGE_PIECES];

/* Writes a view's call tree as text of the given width. */
void report_tree(
	struct out *out, const struct view *view, const struct report *report, unsigned columns);

/* Write foreign text for XML and HTML, including attributes, on one line or on several. Markup is
 * escaped. Control characters and characters that XML forbids are replaced. */
void xml_text(struct out *out, const char *text);
void xml_lines(struct out *out, const char *text);

/* Writes a length, rounded to a tenth. */
void svg_attribute(struct out *out, const char *name, double value);

/* State of the UMDH report. The following functions, in several files, are parts of
 * report_umdh(). */

struct umdh_report {
	struct out *out;
	const struct comparison *comparison;
	const struct view *view;
	const struct report *whole;
	unsigned base; /* base of numbers: 10 or 16 */
	unsigned delta_width, sum_width, count_width;
	struct spark spark; /* in a trend */
};

/* Writes the list of dumps and a legend, all as comments. */
void umdh_head(struct umdh_report *report);

/* Write the list of a trend's series and snapshots; the legend of the line before each row; and
 * such a line. */
void umdh_series(struct umdh_report *report);
void umdh_trend_legend(struct umdh_report *report);
void umdh_trend(
	struct umdh_report *report, const struct trend *trend, const struct block_totals *totals);

/* Writes a time in a recording: "10.250 s". */
void umdh_seconds(struct out *out, uint64_t ms);

/* Writes ", what was allocated and not freed from 1.000 s to 2.000 s": the fate and the window of a
 * recording. Writes nothing for a moment. */
void umdh_fate(struct out *out, const struct dump_sums *sums);

/* Writes, after a dump's name, the notes that make the dump's numbers estimates or incomplete. */
void umdh_dump_notes(struct out *out, const struct dump_sums *sums);

/* Writes a dump, with a line for each of its warnings. */
void umdh_dump(struct out *out, const char *role, const struct dump_sums *sums);

/* Writes the warnings of a file, a line each. Each line starts with `before`. */
void umdh_warnings(struct out *out, const char *before, const char *path,
	const char *const *warnings, size_t count);

/* Writes the warnings of all dumps of a comparison, each warning once. */
void umdh_series_warnings(struct out *out, const char *before, const struct comparison *comparison);

/* Writes a rate with its significant digits, right-justified in `width` columns. */
void umdh_rate(struct out *out, double rate, bool has_sign, unsigned width);

/* Writes the legend of groups: growth and name, one group per line. */
void umdh_groups_legend(struct umdh_report *report);

#endif
