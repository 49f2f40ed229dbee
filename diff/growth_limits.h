/*
 * Limits of growth, for build jobs.
 *
 * Growth from the first dump to the last has three limits. They apply to the sum of all rows that
 * grew, to each single row, and to the sum of all rows. Each limit is a number of bytes, of blocks,
 * or both.
 *
 * In a trend, growth per hour or per day can also be limited. This limit applies to the selected
 * rows with the verdict "grows". If the whole selection grows faster than those rows, the limit
 * applies to the selection.
 *
 * A limit that cannot be judged is reported. In a trend, damaged dumps are reported if no limit is
 * exceeded, because they may hide growth. */
#ifndef DIFF_GROWTH_LIMITS_H
#define DIFF_GROWTH_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "diff/options.h"
#include "diff/query/mark_parts.h"
#include "diff/query/strip.h"
#include "diff/query/view.h"
#include "diff/report/report.h"

struct growth_limits {
	const struct options *options;
	struct strip *strip; /* frames of allocators and libraries, left out of the names of rows */
	FILE *messages;
	const char *growth_unknown; /* why no growth can be computed from the dumps, or NULL */
	/* Results of all views checked so far. */
	bool is_over;
	/* number of series whose first and last dump were compared; number of series where this was
	 * impossible */
	size_t ends_judged, ends_unknown;
	/* number of series checked against the rate limit; number of series with too few
	 * snapshots */
	size_t judged, too_few;
	bool is_unlisted; /* a filter names a module or heap that no dump contains, or cannot decide */
	/* a figure that has a limit is not recorded in all dumps, or a dump was left out */
	bool lacks_data;
	bool lacks_times; /* no rate was computed, because times are missing or wrong */
	bool is_damaged; /* a series that exceeds no limit has a damaged dump */
	struct growth_verdict *verdict; /* verdict of the current view; receives the messages */
};

/* Checks one view. Reports exceeded limits and limits that cannot be judged. Also appends these
 * lines to `verdict`, which must be empty. If a limit is exceeded, looks up the names of the
 * fastest-growing row. */
void growth_check(struct growth_limits *limits, struct view *view, struct growth_verdict *verdict);

/* Checks what was kept in each part that mark_part_is_judged(). `verdicts` is indexed by part. */
void growth_check_marks(struct growth_limits *limits, struct view *view,
	const struct mark_parts *parts, struct growth_verdict *verdicts);

/* Returns true if some limit could not be judged and may be exceeded. Call this after checking all
 * views. */
bool growth_is_unknown(const struct growth_limits *limits);

#endif
