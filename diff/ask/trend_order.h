/* What comes first of trends, those of rows and those of groups alike. */
#ifndef DIFF_TREND_ORDER_H
#define DIFF_TREND_ORDER_H

#include <stdint.h>

#include "diff/ask/view.h"
#include "diff/trend/trend.h"

/* Keys of a trend, the first that differs decides, and the larger one comes first. */
#define TREND_KEYS 6

/* Of SORT_VERDICT: the verdict, what it grows by at least, what it grows by in bytes and in blocks, net
 * growth in bytes and in blocks; of too few snapshots the net growth alone. Of SORT_SLOPE: what it grows by,
 * then the net growth; all the same of any other sort. */
void trend_keys(const struct trend *trend, enum view_sort sort, uint64_t keys[TREND_KEYS]);

/* As qsort() wants it. */
int trend_keys_order(const uint64_t a[TREND_KEYS], const uint64_t b[TREND_KEYS]);

/* Compares as the signed number does. */
uint64_t key_of_signed(int64_t value);

#endif
