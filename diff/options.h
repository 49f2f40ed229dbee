/*
 * What hdiff can be asked for, and what was asked for.
 *
 * One table feeds the parser, --help and the test against the man page; one initializer has all
 * defaults. Texts are those of argv, which must outlive the options.
 */
#ifndef DIFF_OPTIONS_H
#define DIFF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/opt.h"
#include "diff/inputs/moment.h"
#include "diff/match/match.h"
#include "diff/report/report.h"
#include "diff/ask/view.h"
#include "symbolize/symbolize.h"

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
	/* which are shown, and how */
	struct option_list includes, excludes, modules, suppress_files, strip_files;
	uint64_t min_bytes, min_blocks;
	unsigned trend_verdicts; /* a bit for each that is wanted; 0: all */
	enum view_group group;
	enum view_sort sort;
	bool is_inverted;
	size_t shown_max;
	enum { STRIP_DEFAULT, STRIP_YES, STRIP_NO } strip; /* default: groups are stripped */
	/* output */
	struct report_style style; /* spark: as it was asked for, AUTO too */
	const struct report_format *format;
	const char *output; /* NULL: standard output */
	/* limits of growth; UINT64_MAX: none */
	uint64_t growth_max_bytes, growth_max_blocks;
	/* Of a trend: at most rate_max_bytes in rate_max_hours, 1 or 24; 0: none. */
	uint64_t rate_max_bytes;
	unsigned rate_max_hours;
};

/* Reads argv; argv[0] is skipped. Release options in any case. 0; -ERR_USAGE with the argument that
 * is wrong; -ERR_NOMEM. After --help or --version the rest is not looked at. */
int options_parse(struct options *options, int argc, char **argv, struct err *err);
void options_release(struct options *options);

bool options_strip(const struct options *options);

/* What only a trend has and was asked for, as it is spelt, or NULL: it is refused of anything else. */
const char *options_of_trend(const struct options *options);

/* Whether something is asked for that makes a trend even of two dumps. */
bool options_ask_trend(const struct options *options);

/* Prints what --help prints. */
void options_usage(FILE *to);

#endif
