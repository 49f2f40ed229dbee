/*
 * How well a series is told by a few steps up, whenever they were: steps can look like the load of days.
 */
#ifndef DIFF_STAIRS_H
#define DIFF_STAIRS_H

#include "diff/trend/trend_plan.h"

/* The sum of squares that levels leave, with three steps up between them besides those from part to part,
 * each where it leaves least. starts: scratch, as many as there are snapshots. */
double stairs_rest(const struct trend_plan *plan, const double *values, bool *starts);

#endif
