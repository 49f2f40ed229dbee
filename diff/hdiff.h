/* hdiff's options, its inputs, its messages about files, the limits of growth, and the run. */
#ifndef DIFF_HDIFF_H
#define DIFF_HDIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/opt.h"
#include "diff/match/match.h"
#include "diff/query/naming.h"
#include "diff/query/strip.h"
#include "diff/query/view.h"
#include "diff/read/dump_sums.h"
#include "diff/read/stack_store.h"
#include "diff/report/report.h"
#include "symbolize/symbolize.h"

/* A time given as an option: a date such as "2026-11-20T10:00", or a span before the newest
 * snapshot. */

struct moment {
	enum { MOMENT_NONE, MOMENT_AT, MOMENT_BEFORE_NEWEST } kind;
	int64_t ms; /* since 1970-01-01 UTC, or before the newest snapshot */
};

/* Parses a date or time like date_span_parse(), or a span (core/base/parse.h). A time without
 * milliseconds becomes the first moment of the time it covers, or the last one if `is_end`. Returns
 * 0. If `text` is neither a time nor a span, returns -ERR_USAGE and leaves `*moment` unchanged. */
int moment_parse(const char *text, bool is_end, struct moment *moment);

/* Converts a moment to ms since 1970-01-01 UTC. `kind` must not be MOMENT_NONE. */
int64_t moment_ms(const struct moment *moment, int64_t newest_ms);

/* Keyword values of options. The error for an unknown value lists them. */

/* NULL ends a list */
struct word {
	const char *name;
	int value;
};
extern const struct word sort_words[], spark_words[], group_words[], match_words[], fate_words[],
	colour_words[], base_words[];

enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/*
 * hdiff's options.
 *
 * One table feeds the parser, --help and the test against the man page. One initializer contains
 * all defaults. Strings point into argv, which must outlive the options. */

/* Option table; ends with an entry whose id is 0. */
extern const struct opt hdiff_options[];

/* Values of an option that can be repeated. */
struct option_list {
	const char **items;
	size_t count, cap;
};

struct options {
	bool help, version;
	/* input */
	struct option_list paths;
	bool force, no_symbols;
	bool sum; /* add up all dumps instead of comparing them */
	/* recordings */
	bool list, extract; /* list or extract instead of comparing */
	bool is_verbose; /* full list of an ETW log */
	const char *process; /* in an ETW log: a pid or an image's name; NULL: the only process */
	enum chart_kind {
		CHART_NONE,
		CHART_OVER_TIME,
		CHART_SIZES
	} chart; /* chart shown instead of rows */
	struct recording_part part; /* FATE_LIVE without a moment: no option chose a part */
	/* dumps of a series; any of these options makes them a trend */
	bool across_restarts;
	size_t warm_up; /* number of dumps left out at the start of each process */
	struct moment since, until;
	size_t series; /* number of the only series shown; 0: all */
	int input_base; /* base of the numbers in a printed comparison: 16, 10; 0: detect */
	struct symbol_arguments symbols; /* where names are looked up */
	/* which stacks are equal */
	enum match_mode match;
	uint64_t *heaps;
	size_t heap_count, heap_cap;
	bool only_lost;
	bool shows_sizes, shows_age; /* show sizes, or ages, for the blocks of each stack */
	/* which rows are shown, and how */
	struct option_list includes, excludes, modules, suppress_files, strip_files;
	uint64_t min_bytes, min_blocks;
	unsigned trend_verdicts; /* bit mask of the verdicts shown; 0: all */
	enum view_group group;
	enum view_sort sort;
	bool is_inverted;
	size_t shown_max;
	bool is_shown_asked; /* `shown_max` was given; otherwise the format decides */
	enum { STRIP_DEFAULT, STRIP_YES, STRIP_NO } strip; /* STRIP_DEFAULT strips groups only */
	/* output */
	struct report_style style; /* `style.spark` is the option's value and may be SPARK_AUTO */
	const struct report_format *format;
	bool is_umdh, no_pager; /* is_umdh: UMDH's form, because UMDH's switches were used */
	int colour;
	const char *output; /* NULL: standard output */
	const char *junit; /* JUnit file for a build server, or NULL */
	bool overwrite; /* may replace even dumps and recordings */
	/* Limits for the sum of all rows that grew, for each such row, and for the sum of all
	 * rows. */
	struct growth_limit {
		uint64_t bytes, blocks; /* UINT64_MAX: no limit */
	} grown_max, row_max, net_max;
	/* In a trend: at most `rate_max_bytes` in `rate_max_hours`, which is 1 or 24. 0: no
	 * limit. */
	uint64_t rate_max_bytes;
	unsigned rate_max_hours;
};

/* Parses argv without argv[0]. The caller must release `options` even after an error. Returns 0, or
 * -ERR_USAGE with the offending argument. Arguments after --help or --version are not checked. */
int options_parse(struct options *options, int argc, char **argv, struct err *err);
void options_release(struct options *options);

bool options_strip(const struct options *options);

/* Returns true if output goes to standard output. */
bool options_is_shown(const struct options *options);

/* Return true if growth from the first dump to the last has a limit; every such limit has bytes.
 * The second function also counts limits of a rate. */
bool options_limit_ends(const struct options *options);
bool options_has_limit(const struct options *options);

/* If an option was given that only a trend allows, returns its spelling, otherwise NULL. */
const char *options_of_trend(const struct options *options);

/* If an option was given that only a recording allows, returns its spelling, otherwise NULL. */
const char *options_of_recording(const struct options *options);

/* Returns true if an option makes even two dumps a trend. */
bool options_request_trend(const struct options *options);

void options_usage(FILE *to);

/*
 * hdiff's inputs: dumps to compare or add up, or a printed comparison.
 *
 * One or two named files are compared. Two dumps of one process are put in the order of their
 * times, if both have a pid and a time. These are a trend: more than two dumps; two found dumps
 * (diff/input_parts.h) of different processes; any dumps if an option requires a trend. The dumps
 * of a trend are sorted by time and split into series, one per process. In a trend or a sum, files
 * that are damaged or not dumps are left out. If a dump is outside --since and --until, only its
 * head is read.
 *
 * Each defect of a file is reported in a line. A named file that is cut short is used up to the
 * cut, without its malformed lines. `is_partial` is set if data of a named file is missing. In a
 * sum, it is also set if data of a found dump is missing. */

/* Dumps that are compared with each other. These are two dumps or, in a trend, those of one process
 * or of several processes with the same image. */
struct series {
	size_t first, count; /* range in inputs.dumps */
	size_t number, series_count; /* from 1, among all series of a trend; 0: not a trend */
	struct trend_axis axis; /* only in a trend */
	int64_t *times_ms; /* array that `axis` points to, or NULL */
	uint32_t *parts;
	struct comparison comparison;
};

struct file_list;

struct inputs {
	const struct options *options;
	FILE *say; /* receives a line for each defect of a file */
	struct dump_sums *dumps; /* grouped by series, each in order of time */
	size_t dump_count;
	struct stack_store *store; /* stacks shared by the dumps, if there are many dumps */
	struct series *series; /* at least one, on success */
	size_t series_count;
	bool is_partial;
	bool is_few; /* a single file or two named ones; warnings are printed at once */
	bool is_printed; /* a printed comparison: its rows were read, and no stacks are matched */
	const char *printed_name; /* set while the comparison is read */
	const char *growth_unknown; /* why these dumps cannot show growth, or NULL */
	const char **left_out; /* paths of unused files, without files that were named twice */
	size_t left_out_count, left_out_cap;
	struct arena paths; /* storage of `left_out` */
};

/* Adds a copy of `path` to `left_out`. */
void inputs_leave_out(struct inputs *inputs, const char *path);

/* Reads the files and sorts their dumps into series. The caller sets the first two members of
 * `inputs` and zeroes the rest. The caller must release `inputs` even after an error. Returns 0 or
 * an error. Returns -ERR_USAGE if printed comparisons are mixed with other files. */
int inputs_read(struct inputs *inputs, const struct file_list *list, struct err *err);

void inputs_match(struct inputs *inputs);
void inputs_release(struct inputs *inputs);

/* Messages about files, one line each. Control characters in names and texts are replaced. */

/* Prints "hdiff: " and the formatted text, sanitized. */
void message_line(FILE *say, const char *format, ...) PRINTF_LIKE(2, 3);

/* Prints "hdiff: PLACE: warning: WHAT TEXT". */
void message_warning(FILE *say, const char *place, const char *what, const char *text);

void message_left_out(FILE *say, const char *place, const char *why);
void message_damaged(FILE *say, const char *place, const struct err *why);

/* Reports the defects of a dump that is used. */
void message_warnings(FILE *say, const char *name, const struct dump_sums *sums);

/* Reports the defects of the dumps in a series, each text once. */
void message_series_warnings(FILE *say, const struct dump_sums *dumps, size_t count);

void message_cut(FILE *say, const struct err *err);

/* Other actions on a recording. Each fills `err` and reports the recording's defects. */

int run_list(const struct options *options, FILE *say, struct err *err);

/* Writes the state at a moment of a recording as a dump: single blocks if the recording has their
 * addresses, otherwise the sums of each stack. */
int run_extract(const struct options *options, FILE *say, struct err *err);

/* Reads a chart of the view's stacks from the recording in `file`. Returns NULL and fills `err` on
 * failure. */
struct chart_reading *chart_read(const struct options *options, const struct view *view,
	enum chart_kind kind, const char *file, struct err *err);
const struct chart *chart_of(const struct chart_reading *reading);
void chart_free(struct chart_reading *reading); /* NULL is allowed */

/* Writes the requested chart of the view's stacks, from the recording in `file`. */
int run_chart(
	const struct options *options, const struct view *view, const char *file, struct err *err);

/*
 * Limits of growth, for build jobs.
 *
 * From the first dump to the last: limits of bytes and blocks for the sum of all rows that grew,
 * for each such row, and for the sum of all rows. Per hour or day, in a trend: a limit for the
 * selected rows that are judged to grow, or for the whole selection if it grows faster. If a limit
 * cannot be judged, a line reports it. In a trend, a line also reports damaged dumps if no limit is
 * exceeded. */

struct growth_limits {
	const struct options *options;
	struct strip *strip; /* frames of allocators and libraries to skip in names */
	FILE *say;
	const char *growth_unknown; /* why no growth can be computed from the dumps, or NULL */
	/* Results of all views checked so far. */
	bool is_over;
	/* number of series compared from first to last; number of series where this was
	 * impossible */
	size_t ends_judged, ends_unknown;
	/* number of series checked against a rate; number of series with too few snapshots */
	size_t judged, too_few;
	bool lacks_times; /* times for a rate are missing or wrong */
	bool is_damaged; /* a series that exceeds no limit has a damaged dump */
	struct growth_verdict *verdict; /* verdict of the current view; receives the messages */
};

/* Checks one view. Reports exceeded limits and limits that cannot be judged. Adds the same lines to
 * `verdict`, which must be empty. If a limit is exceeded, looks up names for the row that grows
 * fastest. */
void growth_check(struct growth_limits *limits, struct view *view, struct growth_verdict *verdict);

/* Returns true if a limit was not judged and may be exceeded. Must be called after all views were
 * checked. */
bool growth_is_unknown(const struct growth_limits *limits);

/* Runs hdiff with argv, without argv[0]. Messages go to the given stream; an error takes one line.
 * Returns the exit status: 0 success, 1 growth over a limit, 2 failure. main() and tests call
 * this. */
int hdiff_run(int argc, char **argv, FILE *say);

#endif
