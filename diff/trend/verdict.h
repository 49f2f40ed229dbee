/*
 * The verdict on a series of numbers: see man/hdiff.1, Verdicts, which tells what is done here.
 */
#ifndef DIFF_VERDICT_H
#define DIFF_VERDICT_H

#include "diff/trend/shapes.h"
#include "diff/trend/slope_pairs.h"

struct verdict_tools {
	const struct trend_plan *plan;
	struct shapes *shapes;
	double *turned, *scratch; /* as many as there are snapshots */
	bool *starts; /* so, too */
};

/* values: not all of them equal; level: what 0 stands for; slopes: of these. */
enum trend_verdict verdict_find(const struct verdict_tools *tools, const double *values,
	double level, const struct slopes *slopes);

/* TREND_RETURNS or TREND_STEADY: the verdict on values that go neither way for good. */
enum trend_verdict verdict_of_rest(
	const struct trend_plan *plan, const double *values, double level);

#endif
