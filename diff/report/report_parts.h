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

/* Figures and texts shared by all forms of reports: growth, which numbers are known, words for rows
 * without a stack, and names that fit on a line. */

/* Numbers and bytes of the rows that grew, and of the rows that shrank. `first_bytes` is the growth
 * of the first `first` rows, see report_ways(). */
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

struct growth growth_of(uint64_t now, uint64_t old);

/* Returns the sums of the blocks that are neither selected nor suppressed. If the total in a
 * printed comparison contains only growth, without NEW and OLD, the result also contains only
 * growth. */
struct change report_left_out(const struct view *view);

/* Returns the sum of the rows that are not shown, and stores their number in `*count`. In a grouped
 * view, the sum is zero, because groups overlap, and `*count` is the number of groups that are not
 * shown. */
struct change report_not_shown(const struct view *view, size_t *count);

/* report_rows_have_overhead() returns true if the overhead of each row is known,
 * report_has_overhead() if the overhead of the sum of the selected rows is known. */
bool report_rows_have_overhead(const struct comparison *comparison);
bool report_has_overhead(const struct view *view);

/* Returns the machine of a series if the inputs are of several, or NULL. */
const char *report_host(const struct comparison *comparison);

/* Returns true if growth per hour is known: snapshots have times, and one process has at least two
 * snapshots. */
bool report_has_rates(const struct comparison *comparison);

/* For a window of a recording. report_window_rate() returns allocations per second, or NAN if the
 * window has no length. report_window_life() returns the mean lifetime in ms of the blocks that
 * were allocated and freed in the window. */
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

/* Shared parts of charts. */

/* Kinds of memory, in the order in which charts show them. */
extern const enum record_memory chart_memories[RECORD_MEMORIES];

/* Returns the next mark in the window with a time of at most `end_ms`, or NULL. `*at` is the index
 * of the next mark in the recording. The caller sets it to 0 before the first call. */
const struct record_mark *chart_mark(const struct chart *chart, size_t *at, uint64_t end_ms);

/* Returns log2(value) + 1, or 0 for 0. Without the addition of 1, the bar for a single block would
 * have no height. The result is equal on every system. */
double chart_log(uint64_t value);

/* Pieces of a page. The build makes them from diff/report/html, including the style and the script.
 * hdiff writes generated content between the pieces. */
enum page_piece {
	PAGE_TITLE, /* up to the title */
	PAGE_HEAD, /* after the title, up to the summary, which every reader sees */
	PAGE_TABLE, /* after the summary, up to the table rows for readers without scripts */
	PAGE_DATA, /* after the table rows, up to the report as JSON, which the script reads */
	PAGE_END, /* after the data */
	PAGE_PIECES,
};
extern const char *const page_pieces[PAGE_PIECES];

/* Writes a view's call tree as text of the given width. */
void report_tree(
	struct out *out, const struct view *view, const struct report *report, unsigned columns);

/* Writes an attribute that is a length, rounded to a tenth. */
void svg_attribute(struct out *out, const char *name, double value);

#endif
