/*
 * The slope of Theil and Sen, and the test of Mann and Kendall, over pairs of snapshots.
 *
 * A pair is two snapshots of one part at different times. Its slope is what the value rose by per
 * hour; the slope of a series is the median of them all (Theil 1950, Sen 1968). S is the number of
 * pairs that rise less that of those that fall (Mann 1945, Kendall 1975), added up over the parts
 * as over the seasons of Hirsch, Slack and Smith (1982).
 *
 * All pairs are used up to PAIRS_ALL snapshots. Beyond, of a part only pairs whose distance is a
 * multiple of a stride, so that there are about as many as PAIRS_ALL snapshots have. The variance of
 * S under "no trend: every order is as likely" is exact for any choice of pairs, ties included: with
 * m pairs of a part of n snapshots, d_i pairs that end in i less those that begin there, and groups
 * of t equal values,
 *
 *     var = m q + r (sum d_i^2 - 2 m),   q = 1 - sum t(t-1) / n(n-1),
 *     3 r = 1 - sum t(t-1)(t-2) / n(n-1)(n-2)
 *
 * which with all pairs is Kendall's formula. It follows from what two pairs with a snapshot in
 * common tell of each other: a third, or minus a third when one ends where the other begins.
 */
#ifndef DIFF_SLOPE_PAIRS_H
#define DIFF_SLOPE_PAIRS_H

#include "diff/trend/trend_plan.h"

#define PAIRS_ALL 64

struct slope_pairs {
	const struct trend_plan *plan;
	struct pair_run *runs;
	size_t run_count;
	double *per_hour; /* 1 by the hours between the two of each pair */
	size_t count;
	struct pair_part *parts;
	bool is_all; /* no two snapshots of a part are left out */
	double *slopes, *sorted; /* scratch */
};

struct slopes {
	/* S and its variance; beyond PAIRS_ALL snapshots those of all pairs, also of equal times, where the pairs
	 * that are used say that it may rise or fall. */
	double score, variance;
	double middle, low, high; /* per hour */
};

int slope_pairs_init(struct slope_pairs *pairs, const struct trend_plan *plan);
void slope_pairs_release(struct slope_pairs *pairs);

/* The plan has become another one, of no more snapshots. */
void slope_pairs_set(struct slope_pairs *pairs);

/*
 * All of them. The bounds are Sen's, of 95 percent; where there are too few pairs for any such
 * bounds (fewer than five snapshots), they are the least and the greatest slope of a pair. Without
 * pairs all is 0.
 */
void slope_pairs_judge(struct slope_pairs *pairs, const double *values, struct slopes *slopes);

/* The median alone. */
double slope_pairs_middle(struct slope_pairs *pairs, const double *values);

#endif
