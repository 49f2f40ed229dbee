/*
 * What grows by leaps: one that are few and over, or a leak that leaps whenever it is its time.
 */
#ifndef DIFF_LEAPS_H
#define DIFF_LEAPS_H

#include "diff/trend/shapes.h"

struct leaps {
	bool *starts; /* scratch, these two: as many as there are snapshots */
	double *rests;
	bool is_leak;
	double memory; /* of what the leaps do not explain, see trend_memory.h */
};

/*
 * Whether two or more leaps tell the series that was fitted last better than the course that the fit
 * believes. Two or three are no leak, unless they are as a line that is seen in steps; more are one as
 * long as they do not become rarer.
 */
bool leaps_find(struct leaps *leaps, struct shapes *shapes, const double *values,
	const struct shapes_fit *fit);

#endif
