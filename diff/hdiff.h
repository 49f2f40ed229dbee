/* hdiff itself: its options, its inputs, the limits it judges by, and the run. */
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

/* A time as it is asked for: "2026-11-20T10:00", or how long before the newest snapshot. */

struct moment {
	enum { MOMENT_NONE, MOMENT_AT, MOMENT_BEFORE_NEWEST } kind;
	int64_t ms; /* since 1970-01-01 UTC; or before the newest snapshot */
};

/*
 * Reads a day or a time as date_span_parse() does, or a span, both in core/base/parse.h. Of a time that is not told to the millisecond it is
 * the first moment, or the last one when is_end. 0, or -ERR_USAGE: no such text; then *moment is
 * untouched.
 */
int moment_parse(const char *text, bool is_end, struct moment *moment);

/* When that is, by the newest snapshot's time. kind is not MOMENT_NONE. */
int64_t moment_ms(const struct moment *moment, int64_t newest_ms);

/* Words that options take for values: what each stands for, and which there are when it is none. */

/* A list of them ends with one without a name. */
struct word {
	const char *name;
	int value;
};
extern const struct word sort_words[], spark_words[], group_words[], match_words[], fate_words[],
	colour_words[], base_words[];

enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/*
 * What hdiff can be asked for, and what was asked for.
 *
 * One table feeds the parser, --help and the test against the man page; one initializer has all
 * defaults. Texts are those of argv, which must outlive the options.
 */

/* The options; ends with an entry whose id is 0. */
extern const struct opt hdiff_options[];

/* The values of an option that can be repeated. */
struct option_list {
	const char **items;
	size_t count, cap;
};

struct options {
	bool help, version;
	/* input */
	struct option_list paths;
	bool force, no_symbols;
	bool sum; /* of all dumps, in place of a comparison */
	/* of a recording */
	bool list, extract; /* in place of a comparison */
	bool is_verbose; /* of a log's list */
	const char *process; /* of an ETW log: a pid or an image's name; NULL: the only one */
	enum chart_kind {
		CHART_NONE,
		CHART_OVER_TIME,
		CHART_SIZES
	} chart; /* in place of its rows */
	struct recording_part part; /* FATE_LIVE without a moment: nothing was said of it */
	/* which dumps make a series; each of them makes it a trend */
	bool across_restarts;
	size_t warm_up; /* of each process, that are left out */
	struct moment since, until;
	size_t series; /* its number, the only one that is shown; 0: all */
	int input_base; /* of the numbers in a comparison that is read: 16, 10; 0: find out */
	struct symbol_arguments symbols; /* how names are looked for */
	/* which stacks are the same */
	enum match_mode match;
	uint64_t *heaps;
	size_t heap_count, heap_cap;
	bool only_lost;
	bool shows_sizes, shows_age; /* of the blocks of each stack */
	/* which are shown, and how */
	struct option_list includes, excludes, modules, suppress_files, strip_files;
	uint64_t min_bytes, min_blocks;
	unsigned trend_verdicts; /* a bit for each that is wanted; 0: all */
	enum view_group group;
	enum view_sort sort;
	bool is_inverted;
	size_t shown_max;
	bool is_shown_asked; /* else as many as the format shows */
	enum { STRIP_DEFAULT, STRIP_YES, STRIP_NO } strip; /* default: groups are stripped */
	/* output */
	struct report_style style; /* spark: as it was asked for, AUTO too */
	const struct report_format *format;
	bool is_umdh, no_pager; /* UMDH's switches were given, so its form */
	int colour; /* COLOUR_* */
	const char *output; /* NULL: standard output */
	const char *junit; /* a file for a build server, or NULL */
	bool overwrite; /* dumps and recordings, too */
	struct growth_limit {
		uint64_t bytes, blocks; /* UINT64_MAX: no limit */
	} grown_max, row_max, net_max; /* of all rows that grew, of one, of the sum of all */
	/* Of a trend: at most rate_max_bytes in rate_max_hours, 1 or 24; 0: none. */
	uint64_t rate_max_bytes;
	unsigned rate_max_hours;
};

/* Reads argv; argv[0] is skipped. Release options in any case. 0, or -ERR_USAGE with the argument that
 * is wrong. After --help or --version the rest is not looked at. */
int options_parse(struct options *options, int argc, char **argv, struct err *err);
void options_release(struct options *options);

bool options_strip(const struct options *options);

/* Whether what is written goes to standard output. */
bool options_is_shown(const struct options *options);

/* Returns true if growth from the first dump to the last has a limit (a limit always has bytes); growth of any kind. */
bool options_limit_ends(const struct options *options);
bool options_has_limit(const struct options *options);

/* What only a trend has and was asked for, as it is spelt, or NULL: it is refused of anything else. */
const char *options_of_trend(const struct options *options);

/* What only a recording has and was asked for, as it is spelt. */
const char *options_of_recording(const struct options *options);

/* Whether something is asked for that makes a trend even of two dumps. */
bool options_ask_trend(const struct options *options);

/* Prints what --help prints. */
void options_usage(FILE *to);

/*
 * What hdiff is given: dumps to be compared or added up, or a comparison that was printed.
 *
 * One or two files by name are compared, two of one process, where they tell it and their times, in
 * that order. More, or those of folders and patterns (diff/input_parts.h), are put in the order
 * of their own times and, when there are more than two of them, or those found are of two processes,
 * or something is asked for that only a trend has, split into series, one for each process. Of many,
 * what is no dump or damaged is left out, and of what is outside of --since and --until no more than
 * the head is read.
 *
 * What a file lacks is said, a line for each thing. A file given by name that is cut short is used as
 * far as it goes, and lines that break the rules are left out, or, of many, all of it: is_partial then
 * tells that not all is there, and whoever uses the numbers must know.
 */

/* Dumps that are compared with each other: two, or of a trend those of one process, or of several
 * that have the same image. */
struct series {
	size_t first, count; /* of the dumps */
	size_t number, series_count; /* among all series of a trend, from 1; 0: it is none */
	struct trend_axis axis; /* of a trend */
	int64_t *times_ms; /* what the axis points to, or NULL */
	uint32_t *parts;
	struct comparison comparison;
};

struct file_list;

struct inputs {
	const struct options *options;
	FILE *say; /* what files lack, a line for each thing */
	struct dump_sums *dumps; /* series by series, each in its order */
	size_t dump_count;
	struct stack_store *store; /* of many dumps: the stacks that they have in common */
	struct series *series; /* at least one, when all was well */
	size_t series_count;
	bool is_partial;
	bool is_few; /* dumps by name, of which remarks are printed at once */
	bool is_printed; /* a comparison, whose rows are there: there is nothing to match */
	const char *printed_name; /* while it is read */
	const char *growth_unknown; /* why no growth can be told from these dumps, or NULL */
	const char *
		*left_out; /* paths of files that are not used, but those that were given twice */
	size_t left_out_count, left_out_cap;
	struct arena paths; /* what these are in */
};

/* Remembers that a file is left out. */
void inputs_leave_out(struct inputs *inputs, const char *path);

/* Reads the files, of which the dumps become series. Inputs are zero before but for options and say, and are
 * released in any case. 0 or an error; -ERR_USAGE also when printed comparisons are beside other files. */
int inputs_read(struct inputs *inputs, const struct file_list *list, struct err *err);

/* Matches the stacks of each series' dumps. */
void inputs_match(struct inputs *inputs);
void inputs_release(struct inputs *inputs);

/* What is said of the files that hdiff is given: a line each, whatever their names and texts hold. */

/* "hdiff: " and the words, made harmless. */
void say_line(FILE *say, const char *format, ...) PRINTF_LIKE(2, 3);

/* "hdiff: PLACE: warning: WHAT TEXT". */
void say_warning(FILE *say, const char *place, const char *what, const char *text);

/* That a file is not used, and why. */
void say_left_out(FILE *say, const char *place, const char *why);
void say_damaged(FILE *say, const char *place, const struct err *why);

/* What a dump lacks that is used. */
void say_warnings(FILE *say, const char *name, const struct dump_sums *sums);

/* What the dumps of a series lack, each thing once. */
void say_series_warnings(FILE *say, const struct dump_sums *dumps, size_t count);

/* That it is cut short. */
void say_cut(FILE *say, const struct err *err);

/* What else is done with a recording: each fills err, and says what the recording lacks. */

/* Writes what is in it. */
int run_list(const struct options *options, FILE *say, struct err *err);

/* Writes a moment of it as a dump, by stack. */
int run_extract(const struct options *options, FILE *say, struct err *err);

/* A chart of the stacks that the view of the recording in file has; NULL: *err says why not. */
struct chart_reading *chart_read(const struct options *options, const struct view *view,
	enum chart_kind kind, const char *file, struct err *err);
const struct chart *chart_of(const struct chart_reading *reading);
void chart_free(struct chart_reading *reading); /* of NULL nothing */

/* Writes the chart that is asked for, of the stacks that the view of the recording in file has. */
int run_chart(
	const struct options *options, const struct view *view, const char *file, struct err *err);

/*
 * Limits of growth: what a build job wants to know of a series.
 *
 * From the first dump to the last: the rows that grew must not grow by more bytes, or blocks, than are
 * allowed, added up and each; nor may the sum of all rows. Per hour or day, of a trend: nor may what is selected and judged to grow, be it row by row
 * or as a whole. Where that cannot be judged a line says so; of a trend also where a dump is damaged and
 * no limit is passed.
 */

struct growth_limits {
	const struct options *options;
	struct strip *strip; /* frames that name nobody */
	FILE *say;
	const char
		*growth_unknown; /* why the dumps do not tell growth, whatever they hold; or NULL */
	/* What came out of all that was checked. */
	bool is_over;
	size_t ends_judged,
		ends_unknown; /* series held against growth from first to last; that have none */
	size_t judged, too_few; /* series held against a rate; those that have too few snapshots */
	bool lacks_times; /* a rate was asked for where there are none */
	bool is_damaged; /* a series that is over no limit has a damaged dump */
	struct growth_verdict *verdict; /* of the view at hand; it gets what is said */
};

/* Checks one view, and says what is over a limit and what cannot be judged, to the verdict, too, which is
 * empty before. Looks for the names of the row that grows fastest when that is over. */
void growth_check(struct growth_limits *limits, struct view *view, struct growth_verdict *verdict);

/* When all views were checked: whether a limit cannot be said to hold, as nothing was judged. */
bool growth_is_unknown(const struct growth_limits *limits);

/* hdiff without its main(): what tests call. */

/* Does what the arguments (argv[0] is skipped) ask for; words go to say, one line for an error.
 * Returns the exit status: 0 done, 1 growth over a limit, 2 trouble. */
int hdiff_run(int argc, char **argv, FILE *say);

#endif
