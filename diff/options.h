/* hdiff's options: the table, the parsed values, and checks of their combinations. */
#ifndef DIFF_OPTIONS_H
#define DIFF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/parse.h"
#include "diff/match/match.h"
#include "diff/query/view.h"
#include "diff/read/dump_sums.h"
#include "diff/report/report.h"
#include "symbolize/symbolize.h"

/* Keyword values of options. The error for an unknown value lists them. */

/* a list ends with an element whose name is NULL */
struct word {
	const char *name;
	int value;
};
extern const struct word sort_words[], spark_words[], group_words[], match_words[], fate_words[],
	colour_words[], base_words[];

/* Parse an option's value: a keyword; verdicts such as "grows,grew-once", which become a bit mask;
 * or the name of a format. Return 0, or -ERR_USAGE with the known words in the error. */
int option_word_value(const struct word *words, const char *text, int *value, struct err *err);
int option_word_verdicts(const char *text, unsigned *verdicts, struct err *err);
int option_word_format(const char *text, const struct report_format **found, struct err *err);

enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/*
 * hdiff's options.
 *
 * One table feeds the parser, --help and the test against the man page. One initializer contains
 * all defaults. Strings are borrowed from `argv`, which must outlive the options. */

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
	bool by_mark; /* parts between marks shown instead of rows */
	struct recording_part part; /* if no option selects a part: FATE_LIVE without a moment */
	/* dumps of a series; each of these options requires a trend */
	bool across_restarts;
	size_t warm_up; /* number of dumps left out at the start of each process */
	struct moment since, until;
	size_t series; /* number of the series to show; 0: all */
	int input_base; /* base of the numbers in a printed comparison: 16, 10; 0: detect */
	struct symbol_arguments symbols; /* sources of names */
	/* criteria for equal stacks */
	enum match_mode match;
	uint64_t *heaps;
	size_t heap_count, heap_cap;
	bool only_lost;
	bool shows_sizes, shows_age; /* show sizes, or ages, for the blocks of each stack */
	bool shows_pinned; /* show the stacks that pin containers, in the last dump */
	/* selection and display of rows */
	struct option_list includes, excludes, modules, suppress_files, strip_files;
	uint64_t min_bytes, min_blocks;
	unsigned trend_verdicts; /* bit mask of the verdicts shown; 0: all */
	enum view_group group;
	enum view_sort sort;
	bool is_inverted;
	size_t shown_max;
	bool is_shown_asked; /* an option set `shown_max`; otherwise the format's default applies */
	enum { STRIP_DEFAULT, STRIP_YES, STRIP_NO } strip; /* STRIP_DEFAULT strips groups only */
	/* output */
	struct report_style style; /* `style.spark` is the option's value and may be SPARK_AUTO */
	const struct report_format *format;
	bool is_umdh, no_pager; /* is_umdh: UMDH's form, because UMDH's switches were used */
	int colour;
	const char *output; /* NULL: standard output */
	const char *junit; /* JUnit file for a build server, or NULL */
	bool annotate; /* print annotations for GitHub Actions */
	bool overwrite; /* outputs may even replace dumps and recordings */
	/* Limits of growth: `grown_max` for the sum of all rows that grew, `row_max` for each of
	 * these rows, `net_max` for the sum of all rows. */
	struct growth_limit {
		uint64_t bytes, blocks; /* UINT64_MAX: no limit */
	} grown_max, row_max, net_max;
	/* Limits of growth for figures of the process's balance. */
	struct figure_limit {
		const char *key; /* as in struct balance_row; not NUL-terminated */
		size_t key_len;
		uint64_t most; /* bytes or number of objects */
	} * figure_max;
	size_t figure_max_count, figure_max_cap;
	/* In a trend: at most `rate_max_bytes` in `rate_max_hours`, which is 1 or 24. 0: no
	 * limit. */
	uint64_t rate_max_bytes;
	unsigned rate_max_hours;
};

/* Parses `argv`, which excludes the program's name. The caller must release `options` even after an
 * error. Returns 0, or -ERR_USAGE with the offending argument. Ignores arguments after --help or
 * --version. */
int options_parse(struct options *options, int argc, char **argv, struct err *err);
void options_release(struct options *options);

bool options_strip(const struct options *options);

/* Returns true if output goes to standard output. */
bool options_is_shown(const struct options *options);

/* options_limit_ends() returns true if growth from the first dump to the last is limited.
 * options_has_limit() also returns true if the rate of growth is limited. A limit always includes
 * bytes. */
bool options_limit_ends(const struct options *options);
bool options_has_limit(const struct options *options);

/* Checks that the options can be combined. Called by options_parse(). */
int options_check(const struct options *options, struct err *err);

/* Checks that outputs are writable, distinct, and not also inputs. Called before the dumps are
 * read, which may take a long time. */
int options_check_outputs(const struct options *options, struct err *err);

/* Returns the spelling of an option that needs single blocks, or NULL if none was given. */
const char *options_of_blocks(const struct options *options);

/* Returns the spelling of an option that divides blocks by thread. */
const char *options_of_thread(const struct options *options);

/* Returns true if options select blocks, regardless of their stacks. */
bool options_select_blocks(const struct options *options);

/* Returns the spelling of the option that requests a chart. */
const char *options_of_chart(const struct options *options);

/* Returns the spelling of the first option that requires a trend, or NULL if none was given. */
const char *options_of_trend(const struct options *options);

/* Returns the spelling of the first option that requires a recording, or NULL if none was given. */
const char *options_of_recording(const struct options *options);

/* Returns true if an option makes even two dumps a trend. */
bool options_request_trend(const struct options *options);

void options_usage(FILE *to);

#endif
