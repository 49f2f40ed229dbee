/* The parts of a view: selection, order, groups of trends. */
#ifndef DIFF_QUERY_QUERY_PARTS_H
#define DIFF_QUERY_QUERY_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "diff/query/group.h"
#include "diff/query/view.h"
#include "diff/trend/trend.h"

/* In which order a view's rows are. */

/* Which rows of a comparison a view has: filters first, then suppressions. */

/* What comes first of trends, those of rows and those of groups alike. */

/* Keys of a trend, the first that differs decides, and the larger one comes first. */
#define TREND_KEYS 6

/* Of SORT_VERDICT: the verdict, what it grows by at least, what it grows by in bytes and in blocks, net
 * growth in bytes and in blocks; of too few snapshots the net growth alone. Of SORT_SLOPE: what it grows by,
 * then the net growth; all the same of any other sort. */
void trend_keys(const struct trend *trend, enum view_sort sort, uint64_t keys[TREND_KEYS]);

/* As qsort() wants it. */
int trend_keys_order(const uint64_t a[TREND_KEYS], const uint64_t b[TREND_KEYS]);

/* Groups of a trend: what a group adds up to at each snapshot. */

#endif
