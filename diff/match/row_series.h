/* The series of each row: its ends and its trend. */
#ifndef DIFF_MATCH_ROW_SERIES_H
#define DIFF_MATCH_ROW_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/dump/model.h"
#include "diff/match/match.h"
#include "diff/trend/trend.h"

/* Ends of a series: its first and its last snapshot. With several parts, the first snapshots of all
 * parts are added up, and so are the last ones. The difference is the growth within the parts. */

/* Returns true if a snapshot is the last of its part. axis_begins() is the counterpart for the
 * first. */
bool axis_ends(const struct trend_axis *axis, size_t snapshot);

/* Minimum number of snapshots that one part needs for a trend. */
#define AXIS_TREND_MIN TREND_LEAST

/* Returns the number of snapshots in the longest part. */
size_t axis_longest(const struct trend_axis *axis);

/* Returns true if there are enough snapshots to bound a slope with 95 percent confidence: five in
 * one part, or more in several. Otherwise the bounds are the least and the greatest slope between
 * two snapshots. */
bool axis_has_bounds(const struct trend_axis *axis);

/* Returns true if time passes within a part that is long enough for a trend, or as long as the
 * longest part. Returns false if times are unknown. Without passing time there are no rates. */
bool axis_time_passes(const struct trend_axis *axis);

/* Add up the first (or last) element of each part of `sums[0..axis->count)`. Each number of the
 * result is at most INT64_MAX. */
struct block_totals series_first(const struct trend_axis *axis, const struct block_totals *sums);
struct block_totals series_last(const struct trend_axis *axis, const struct block_totals *sums);

/* Returns the greatest difference between two values within one part, separately for bytes and
 * blocks. Ignores overhead. */
struct block_totals series_swing(const struct trend_axis *axis, const struct block_totals *sums);

/* Returns true if a series is judged by its blocks: within each part its bytes are constant, but
 * its blocks are not. Returns false if `sums` is NULL. */
bool series_by_blocks(const struct trend_axis *axis, const struct block_totals *sums);

/* Calls `judge_one` for each index in [0, count), in any order. Runs on several threads; each
 * thread has its own judge. */
void series_judge_all(const struct trend_axis *axis, size_t count,
	void (*judge_one)(void *ctx, size_t index, struct trend_judge *judge), void *ctx);

/* Computes the trend of each row of a comparison that has an axis. Uses several threads. */
void series_judge_rows(struct comparison *comparison);

#endif
