/*
 * What judging the series of one axis needs that all of them have in common.
 */
#ifndef DIFF_TREND_KIT_H
#define DIFF_TREND_KIT_H

#include "diff/trend/shapes.h"
#include "diff/trend/slope_pairs.h"

struct trend_kit {
	struct trend_plan plan;
	struct slope_pairs pairs;
	struct shapes shapes;
	/* Beside waves, where there are any. */
	struct waves waves;
	struct shapes calm_shapes;
	double *calm;
	bool *starts; /* scratch */
};

/* What is inside points to the rest: it must stay where it is. 0 or -ERR_NOMEM, and then nothing is to
 * be released. */
int trend_kit_init(struct trend_kit *kit, const struct trend_axis *axis);
void trend_kit_release(struct trend_kit *kit);

/* Makes it that of another axis, of some parts of the one that it was made for. */
void trend_kit_set(struct trend_kit *kit, const struct trend_axis *axis);

/* The values without the load of the day, until the next call; NULL: there is none. */
const double *trend_kit_calm(struct trend_kit *kit, const double *values);

#endif
