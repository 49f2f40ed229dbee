/*
 * How a series is told by levels with steps up between them, whenever those were.
 */
#ifndef DIFF_STAIRS_H
#define DIFF_STAIRS_H

#include "diff/trend/trend_plan.h"

struct stairs {
	bool *starts; /* of each snapshot: a level begins there, as in each part's first */
	size_t steps; /* up, without those from part to part */
	double rest; /* sum of squares that the levels leave */
};

/* When to climb no higher. */
struct stairs_end {
	size_t most; /* steps */
	double factor; /* by which each step must leave less than those before it, 1 or more */
	double slight; /* a rest that small is none */
};

/* Takes steps, each where it leaves least beside those before it. stairs->starts: the caller's, as many
 * as there are snapshots. */
void stairs_climb(struct stairs *stairs, const struct trend_plan *plan, const double *values,
	const struct stairs_end *end);

/* What the levels leave of each snapshot. */
void stairs_rests(const struct stairs *stairs, const struct trend_plan *plan, const double *values,
	double *rests);

/*
 * Whether the steps have become rarer or come to an end. What steps at any time does the one in ten
 * series, by Laplace's test of whether steps are early on average (Cox and Lewis 1966), and the other in
 * twenty: all are in so early a part of the time that they are there by chance once in so many.
 */
bool stairs_have_ended(const struct stairs *stairs, const struct trend_plan *plan);

#endif
