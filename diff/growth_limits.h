/*
 * Limits of growth, for build jobs.
 *
 * From the first dump to the last: limits of bytes and blocks for the sum of all rows that grew,
 * for each such row, and for the sum of all rows. Per hour or day, in a trend: a limit for the
 * selected rows that are judged to grow, or for the whole selection if it grows faster. If a limit
 * cannot be judged, a line reports it. In a trend, a line also reports damaged dumps if no limit is
 * exceeded. */
#ifndef DIFF_GROWTH_LIMITS_H
#define DIFF_GROWTH_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "diff/options.h"
#include "diff/query/strip.h"
#include "diff/query/view.h"
#include "diff/report/report.h"

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

#endif
