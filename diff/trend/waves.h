/*
 * What comes and goes with the day: waves of 24 and of 12 hours, in the time that all parts share.
 *
 * They are laid beside every course (see shapes.h), so that no course wins by following the load of a
 * day. Only where one part goes over a day and a half: in less, a wave of a day and a leak are alike.
 */
#ifndef DIFF_WAVES_H
#define DIFF_WAVES_H

#include "diff/trend/trend_plan.h"

#define WAVES_MOST 4

struct waves {
	double *at
		[WAVES_MOST]; /* of each snapshot; about 0 in each part, at right angles, of length 1 */
	size_t count; /* 0: none are looked for */
	size_t snapshots;
	double *numbers; /* of these */
};

/* Takes no memory where there can be none. 0 or -ERR_NOMEM, and then nothing is to be released. */
int waves_init(struct waves *waves, const struct trend_plan *plan, const struct trend_axis *axis);
void waves_release(struct waves *waves);

/* The plan has become that of another axis, of no more snapshots and no longer parts. */
void waves_set(struct waves *waves, const struct trend_plan *plan, const struct trend_axis *axis);

/* Takes out of values what in like is a wave; both may be the same. */
void waves_take_out(const struct waves *waves, const double *like, double *values);

#endif
