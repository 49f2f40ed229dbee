/* Reports: a view as text for people or programs, with bars for trends. */
#ifndef DIFF_REPORT_REPORT_H
#define DIFF_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/dump/model.h"
#include "core/io/out.h"
#include "diff/query/view.h"
#include "diff/read/read_use.h"
#include "diff/trend/trend.h"

/*
 * Spark lines: a series as one line of small bars, each as high as its number is between the lowest
 * and the highest of the series.
 *
 * A line has as many bars as there are snapshots, as long as these fit in its width; where there are
 * more, neighbours are put together and their mean is shown. '|' stands between the parts of a
 * series. All lines of one trend look alike, whatever numbers they show.
 */

enum spark_style {
	SPARK_AUTO, /* UTF8 where that can be shown, else ASCII */
	SPARK_UTF8,
	SPARK_ASCII,
	SPARK_NONE,
};

#define SPARK_WIDTH 60 /* columns at most */

struct spark {
	enum spark_style style;
	const struct trend_axis *axis; /* borrowed */
	size_t count; /* of columns */
	struct spark_column {
		size_t first, count; /* snapshots that are put together; none: a new part begins */
	} columns[SPARK_WIDTH];
};

/* Lays the lines of a trend out, in width columns (1 to SPARK_WIDTH) at most. Where not even one for
 * each part has room, parts are not told apart. */
void spark_make(
	struct spark *spark, const struct trend_axis *axis, enum spark_style style, size_t width);

/* Prints the line of the requested bytes sums[0..axis->count), or of the blocks where that is what is judged:
 * spark->count columns; of SPARK_NONE nothing. */
void spark_put(struct out *out, const struct spark *spark, const struct block_totals *sums);

/*
 * Reports: one function and one file for each form. They write; what is wrong with the output is
 * kept in out.
 */

struct report_style {
	bool hex; /* numbers in text; offsets and addresses always are, everything else never is */
	enum spark_style spark; /* in text; AUTO is ASCII */
	unsigned columns; /* of text, but UMDH's; 0: 80 */
	bool is_reverse; /* of folded stacks NEW comes before OLD */
	bool is_coloured; /* text, for a terminal */
	bool is_tree; /* text as a call tree */
	bool no_stacks; /* text without them: */
	bool is_whole_table; /* the table has a line for each row that is shown */
};

struct chart;

/* What is reported: one view, or of a trend one for each series, the first to begin first. */
struct report {
	const struct view *views;
	size_t view_count; /* at least 1 */
	struct report_style style;
	struct strip *strip,
		*start_up; /* frames that name nobody; those of what starts a program */
	const char *const
		*left_out; /* paths of files that were found or given, and are in no view */
	size_t left_out_count;
	const struct chart
		*charts[2]; /* of a recording's window, for a page: over time, and sizes; or NULL */
};

/* A recording's use over time, or the sizes of what was allocated in it: one of both, the other is NULL. */
struct chart {
	const struct dump_sums *sums; /* what it is of */
	const struct record_facts *facts;
	const struct use_over_time *over_time;
	const struct use_sizes *sizes;
	struct report_style style;
	bool is_filtered; /* it is of some stacks or heaps only */
};

/* What can be asked for by name; ends with an entry without one. */
struct report_format {
	const char *name;
	void (*write)(struct out *out, const struct report *report);
	bool is_of_one; /* it has no room for more than one view */
	bool is_of_dumps; /* it shows what stacks have in each dump: no groups, no sum of dumps */
	bool has_window; /* it shows what view_window() finds */
	bool has_blocks; /* and view_blocks() */
	void (*write_chart)(struct out *out, const struct chart *chart); /* NULL: it has none */
	size_t shown_max; /* so many rows unless more are asked for; 0: all */
	size_t span_max; /* so many parts of a window are good to read in it */
	bool is_packed; /* by gzip, which is part of the form */
};
extern const struct report_format report_formats[];

/* For people: a table, what it adds up to, and the largest stacks; or a call tree. */
void report_text(struct out *out, const struct report *report);

/* UMDH's comparison; a table when grouped. Of a trend one for each series. */
void report_umdh(struct out *out, const struct report *report);

/* For programs: man/hdiff-json.5. */
void report_json(struct out *out, const struct report *report);

/* For databases, a line for each stack in each dump: man/hdiff-json.5. */
void report_jsonl(struct out *out, const struct report *report);

/* For spreadsheets: RFC 4180; man/hdiff-csv.5. */
void report_csv(struct out *out, const struct report *report);

/* For viewers of stacks. Of a trend the first snapshot against the last. */

/* "frame;frame;frame OLD NEW", for drawing flame graphs of a difference, or of one dump "... BYTES";
 * man/hdiff-csv.5. */
void report_folded(struct out *out, const struct report *report);
/* profile.proto, of which gzip is part; man/hdiff.1 has this and the next ones. */
void report_pprof(struct out *out, const struct report *report);
void report_speedscope(struct out *out, const struct report *report);
void report_dhat(struct out *out, const struct report *report);
/* A flame graph as a picture. */
void report_flame(struct out *out, const struct report *report);

/* A page for a browser: a table, and with scripts a flame graph. */
void report_html(struct out *out, const struct report *report);

/* What was said of a series that was held against limits of growth: lines; each empty when there is nothing. */
struct growth_verdict {
	struct buf over, unknown;
};

/* What a build server is told. Looks for the names of the stacks that grew most. */
struct junit {
	struct view *views;
	const struct growth_verdict *verdicts; /* one for each view */
	size_t view_count;
	struct strip *strip; /* frames that name nobody */
	bool is_unknown; /* whether limits hold; what is over one still is */
};

/* JUnit's XML: a test case for each series. */
void report_junit(struct out *out, const struct junit *junit);

/* Charts: as bars, for spreadsheets, as pictures, and as a page with one. */
void chart_text(struct out *out, const struct chart *chart);
void chart_csv(struct out *out, const struct chart *chart);
void chart_svg(struct out *out, const struct chart *chart);
void chart_html(struct out *out, const struct chart *chart);

#endif
