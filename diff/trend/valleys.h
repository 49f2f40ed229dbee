/*
 * What rises under a sawtooth: its valleys do, whatever the teeth do to the rest.
 */
#ifndef DIFF_VALLEYS_H
#define DIFF_VALLEYS_H

#include "diff/trend/trend_plan.h"

/*
 * Whether in the longest part the values go up and down at least four times and both the valleys and
 * the peaks rise: all of them where there are fewer than eight, else significantly by the test of
 * Mann and Kendall. The valleys must rise by more than twice what two snapshots typically differ by:
 * teeth that are no multiple of the time between snapshots are met a little lower or higher each
 * time. scratch: as many as there are snapshots.
 */
bool valleys_rise(const struct trend_plan *plan, const double *values, double *scratch);

#endif
