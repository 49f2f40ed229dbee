/* The parts of a view: selection, order, groups of trends. */
#ifndef DIFF_QUERY_QUERY_PARTS_H
#define DIFF_QUERY_QUERY_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "diff/query/group.h"
#include "diff/query/view.h"
#include "diff/trend/trend.h"

/* In which order a view's rows are. */

/* Sorts the rows; those alike stay in the order of the default. By name they must have theirs. 0 or
 * -ERR_NOMEM. */
int view_sort_rows(struct view *view, enum view_sort sort);

/* Which rows of a comparison a view has: filters first, then suppressions. */

/* Narrows the rows of a view and sums up what is left: see view_ask(), whose part this is. */
int view_select(struct view *view, struct naming *naming, const struct view_request *request,
	struct err *err);

/* Of a trend: sums up what the view's rows add up to at each snapshot, with rows that did not change
 * unless is_filtered, and judges that. suppressed: what is taken off, by snapshot; NULL: nothing. 0 or
 * -ERR_NOMEM. */
int view_sum_series(struct view *view, const struct block_totals *suppressed, bool is_filtered);

/* What comes first of trends, those of rows and those of groups alike. */

/* Keys of a trend, the first that differs decides, and the larger one comes first. */
#define TREND_KEYS 6

/* Of SORT_VERDICT: the verdict, what it grows by at least, what it grows by in bytes and in blocks, net
 * growth in bytes and in blocks; of too few snapshots the net growth alone. Of SORT_SLOPE: what it grows by,
 * then the net growth; all the same of any other sort. */
void trend_keys(const struct trend *trend, enum view_sort sort, uint64_t keys[TREND_KEYS]);

/* As qsort() wants it. */
int trend_keys_order(const uint64_t a[TREND_KEYS], const uint64_t b[TREND_KEYS]);

/* Compares as the signed number does. */
uint64_t view_signed_key(int64_t value);

/* Groups of a trend: what a group adds up to at each snapshot. */

/* Adds a row's series to that of the group, to self, to total, or to both. 0 or -ERR_NOMEM. */
int group_add_series(struct view *view, struct view_group_row *group, const struct row *row,
	bool to_self, bool to_total);

/* Judges the series of all groups. 0 or -ERR_NOMEM. */
int groups_judge(struct view *view);

#endif
