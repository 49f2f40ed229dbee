/* Reports: a view as text for people or programs, with spark lines for trends. */
#ifndef DIFF_REPORT_REPORT_H
#define DIFF_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/dump/model.h"
#include "core/io/out.h"
#include "diff/query/view.h"
#include "diff/read/read_use.h"
#include "diff/report/spark.h"

/* Reports: one function and one file for each form. Output errors are stored in `out`. */

struct mark_parts;

struct report_style {
	/* hexadecimal numbers in UMDH's form and in charts as text */
	bool hex;
	enum spark_style spark; /* in text; SPARK_AUTO is ASCII */
	unsigned columns; /* width of the text; 0 means 80; UMDH's form ignores it */
	bool is_reverse; /* folded stacks: NEW before OLD */
	bool is_coloured;
	bool is_tree;
	bool no_stacks;
	bool shows_heaps; /* heaps in place of rows */
	/* with `no_stacks`: the table lists all rows shown, not only the largest */
	bool is_whole_table;
};

struct chart;

/* Input of a report: a single view or, in a trend, one view for each series, in the order in which
 * the series start. */
struct report {
	const struct view *views;
	size_t view_count; /* at least 1 */
	struct report_style style;
	struct strip *strip, *start_up; /* frames of allocators; frames that start a program */
	const char *const *left_out; /* paths of input files that are in no view */
	size_t left_out_count;
	/* only in a page about a window of a recording: usage over time, and sizes of allocations;
	 * each may be NULL */
	const struct chart *charts[2];
	/* parts between the marks of a recording, or NULL; then the view is of that recording */
	const struct mark_parts *parts;
	size_t parts_max; /* maximum number of parts shown */
};

/* Usage over time, or sizes of allocations, in a recording. Either `over_time` or `sizes` is
 * NULL. */
struct chart {
	const struct dump_sums *sums; /* the recording's sums */
	const struct record_facts *facts;
	const struct use_over_time *over_time;
	const struct use_sizes *sizes;
	struct report_style style;
	bool is_filtered; /* only some stacks or heaps are included */
};

/* Report formats. An entry without a name ends the table. */
struct report_format {
	const char *name;
	void (*write)(struct out *out, const struct report *report);
	bool is_of_one; /* can show only one view */
	/* shows the sums of each dump; not possible for groups or for a sum of dumps */
	bool is_of_dumps;
	bool has_window; /* shows the results of view_window() */
	bool has_blocks; /* shows the results of view_blocks() */
	bool needs_blocks; /* cannot show that numbers of blocks are unknown */
	bool has_heaps; /* has --heaps */
	void (*write_chart)(struct out *out, const struct chart *chart); /* NULL: no charts */
	void (*write_marks)(struct out *out, const struct report *report); /* NULL: no --by-mark */
	size_t shown_max; /* default number of rows; 0: all */
	size_t span_max; /* maximum number of spans that are readable in a chart over time */
	bool is_packed; /* gzip is part of the format */
	bool is_for_people; /* has colours, a pager, --tree and --no-stacks */
	bool can_reverse; /* has --reverse */
	bool includes_charts; /* includes charts of a recording's window */
	enum list_form { LIST_NONE, LIST_TEXT, LIST_JSON } list; /* form of --list */
};
extern const struct report_format report_formats[];

/* For people: either a table, its sums, and the largest stacks; or a call tree. */
void report_text(struct out *out, const struct report *report);

/* UMDH's form. A grouped view is written as a table. In a trend, writes one report per series. */
void report_umdh(struct out *out, const struct report *report);

/* For programs: man/hdiff-json.5. */
void report_json(struct out *out, const struct report *report);

/* For databases, one line for each stack in each dump: man/hdiff-json.5. */
void report_jsonl(struct out *out, const struct report *report);

/* For spreadsheets: RFC 4180; man/hdiff-csv.5. */
void report_csv(struct out *out, const struct report *report);

/* For viewers of stacks. A trend is shown as the change from the first snapshot to the last. */

/* Writes "frame;frame;frame OLD NEW" for flame graphs of a difference, or "... BYTES" for one dump:
 * man/hdiff-csv.5. */
void report_folded(struct out *out, const struct report *report);
/* Writes profile.proto in gzip. man/hdiff.1 describes this form and the next ones. */
void report_pprof(struct out *out, const struct report *report);
void report_speedscope(struct out *out, const struct report *report);
void report_dhat(struct out *out, const struct report *report);
/* Draws a flame graph as an SVG picture. */
void report_flame(struct out *out, const struct report *report);

/* Writes a page for browsers: a table and, if scripts are allowed, a flame graph. */
void report_html(struct out *out, const struct report *report);

/* Writes a summary for GitHub's and GitLab's pages. */
void report_markdown(struct out *out, const struct report *report);

/* Writes the parts between marks: as a table, as JSON, and as CSV. */
void report_marks_text(struct out *out, const struct report *report);
void report_marks_json(struct out *out, const struct report *report);
void report_marks_csv(struct out *out, const struct report *report);

/* Messages about one series and its growth limits. Each message consists of lines, or is empty. */
struct growth_verdict {
	struct buf over, unknown;
	bool is_sum_over; /* a limit other than that of single stacks was exceeded */
};

/* Appends a line for each stack that exceeds the limit of single stacks or, if another limit is
 * exceeded, for each of the stacks that grew most. Looks up their names. */
void report_annotations(struct buf *lines, struct view *view, const struct growth_verdict *verdict,
	uint64_t row_bytes, uint64_t row_blocks, struct strip *strip);

/* Input of the JUnit report. report_junit() looks up the names of the stacks that grew most. */
struct junit {
	struct view *views;
	const struct growth_verdict *verdicts; /* indexed by view or, with `parts`, by part */
	const struct mark_parts *parts; /* test cases in place of views, or NULL */
	size_t view_count;
	struct strip *strip; /* frames of allocators */
	/* it is unknown whether limits were exceeded; limits that are known to be exceeded still
	 * count */
	bool is_unknown;
};

/* Writes JUnit's XML: a test case for each series, or for each mark. */
void report_junit(struct out *out, const struct junit *junit);

/* Charts: as bars in text, as CSV, and as SVG. */
void chart_text(struct out *out, const struct chart *chart);
void chart_csv(struct out *out, const struct chart *chart);
void chart_svg(struct out *out, const struct chart *chart);

#endif
