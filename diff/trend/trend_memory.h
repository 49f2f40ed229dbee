/*
 * What a series remembers of itself: then its snapshots say less than as many that know nothing of each
 * other.
 */
#ifndef DIFF_TREND_MEMORY_H
#define DIFF_TREND_MEMORY_H

#include "diff/trend/trend_plan.h"

/*
 * By how much the variance of S (see slope_pairs.h) grows because what is left beside a course, about 0
 * in each part, has memory: 1 + 2 sum r_k over the correlations r_k of what is k snapshots apart, up to
 * the first that is not positive; 1 where r_1 is not significant. After Hamed and Rao (1998), with
 * Geyer's end of the sum (1992).
 */
double trend_memory_of(const struct trend_plan *plan, const double *rests);

/* Whether values go on from where they were by steps that know nothing of each other, and have risen by
 * no more than such a random walk without drift does. */
bool trend_memory_is_walk(const struct trend_plan *plan, const double *values);

#endif
