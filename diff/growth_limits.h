/*
 * Limits of growth: what a build job wants to know of a series.
 *
 * From the first dump to the last: what is selected must not grow by more bytes, or blocks, than are
 * allowed. Per hour or day, of a trend: nor may what is selected and judged to grow, be it row by row
 * or as a whole. Where that cannot be judged a line says so; of a trend also where a dump is damaged and
 * no limit is passed.
 */
#ifndef DIFF_GROWTH_LIMITS_H
#define DIFF_GROWTH_LIMITS_H

#include "core/buf.h"
#include "diff/ask/strip.h"
#include "diff/naming.h"
#include "diff/options.h"

struct growth_limits {
	const struct options *options;
	struct strip *strip; /* frames that name nobody */
	/* One line, borrowed for the call. */
	void (*say)(void *ctx, const struct buf *words);
	void *ctx;
	const char
		*growth_unknown; /* why the dumps do not tell growth, whatever they hold; or NULL */
	/* What came out of all that was checked. */
	bool is_over;
	size_t ends_judged,
		ends_unknown; /* series held against growth from first to last; that have none */
	size_t judged, too_few; /* series held against a rate; those that have too few snapshots */
	bool lacks_times; /* a rate was asked for where there are none */
	bool is_damaged; /* a series that is over no limit has a damaged dump */
};

/* Checks one view, and says what is over a limit and what cannot be judged. Looks for the names of
 * the row that grows fastest when that is over. 0 or -ERR_NOMEM. */
int growth_check(struct growth_limits *limits, const struct view *view, struct naming *naming);

/* When all views were checked: whether a limit cannot be said to hold, as nothing was judged. */
bool growth_is_unknown(const struct growth_limits *limits);

#endif
