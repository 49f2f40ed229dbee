/* The series of each row: its ends and its trend. */
#ifndef DIFF_MATCH_ROW_SERIES_H
#define DIFF_MATCH_ROW_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/dump/model.h"
#include "diff/match/match.h"
#include "diff/trend/trend.h"

/* Ends of a series: its first and last snapshot. If a series has several parts, the start is the
 * sum of the first snapshots of all parts. The end is the sum of their last snapshots. The
 * difference is the growth within the parts. */

/* Returns true if a snapshot is the last of its part. See axis_begins() for the first. */
bool axis_ends(const struct trend_axis *axis, size_t snapshot);

/* Minimum number of snapshots in one part for a trend. */
#define AXIS_TREND_MIN TREND_LEAST

/* Returns the number of snapshots in the longest part. */
size_t axis_longest(const struct trend_axis *axis);

/* Returns true if enough snapshots exist to bound a slope with 95 percent confidence. Five
 * snapshots are enough if they form one part; several parts need more in total. With fewer
 * snapshots, the bounds are the least and the greatest slope between two snapshots. */
bool axis_has_bounds(const struct trend_axis *axis);

/* Returns true if rates can be computed. For this, times must be known and time must pass within a
 * part that has enough snapshots for a trend. If all parts are too short for a trend, time must
 * pass within one of the longest parts. */
bool axis_time_passes(const struct trend_axis *axis);

/* For each part of `sums[0..axis->count)`, series_first() adds up the first elements and
 * series_last() the last elements. Numbers in the result are limited to INT64_MAX. */
struct block_totals series_first(const struct trend_axis *axis, const struct block_totals *sums);
struct block_totals series_last(const struct trend_axis *axis, const struct block_totals *sums);

/* Returns the greatest difference between two snapshots of one part, separately for bytes and for
 * blocks. Ignores overhead. */
struct block_totals series_swing(const struct trend_axis *axis, const struct block_totals *sums);

/* Returns true if a series must be judged by its number of blocks. This is the case if the number
 * of blocks varies within a part, but bytes are constant within each part. Returns false if `sums`
 * is NULL. */
bool series_by_blocks(const struct trend_axis *axis, const struct block_totals *sums);

/* Calls judge_one() for each index in [0, count), in any order and on several threads. Each thread
 * has its own judge. */
void series_judge_all(const struct trend_axis *axis, size_t count,
	void (*judge_one)(void *ctx, size_t index, struct trend_judge *judge), void *ctx);

/* Computes the trend of each row of a comparison that has an axis. Uses several threads. */
void series_judge_rows(struct comparison *comparison);

#endif
