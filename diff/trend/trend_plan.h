/*
 * What all series of one axis have in common: its parts, and its times in hours.
 *
 * A part of one snapshot says nothing of growth. Times are told from the first snapshot of the part,
 * for what a process does when it is young it does after each start.
 */
#ifndef DIFF_TREND_PLAN_H
#define DIFF_TREND_PLAN_H

#include "diff/trend/trend.h"

struct trend_plan {
	size_t count; /* of snapshots */
	size_t part_count;
	size_t *part_from; /* part_count + 1 of them: the first snapshot of each, and count */
	double *hours; /* of each snapshot since the first of its part */
	size_t most; /* snapshots in the longest part */
	size_t longest; /* which begins with this one */
	size_t steps; /* from one snapshot to the next of the same part */
	double span; /* hours of the part that took longest */
};

/* 0 or -ERR_NOMEM, and then nothing is to be released. */
int trend_plan_init(struct trend_plan *plan, const struct trend_axis *axis);

/* Makes it that of another axis, of no more snapshots than the one that it was made for. */
void trend_plan_set(struct trend_plan *plan, const struct trend_axis *axis);
void trend_plan_release(struct trend_plan *plan);

/* Takes from the values of each part their mean. */
void trend_plan_centre(const struct trend_plan *plan, double *values);

#endif
