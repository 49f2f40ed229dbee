/* The series of each row: its ends, and what it says. */
#ifndef DIFF_MATCH_ROW_SERIES_H
#define DIFF_MATCH_ROW_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/dump/model.h"
#include "diff/match/match.h"
#include "diff/trend/trend.h"

/*
 * What a series begins and ends with: its first snapshot and its last one, and where it has parts,
 * the first and the last of each, added up, so that the difference is what grew within them.
 */

/* Whether a snapshot is the last of its part; axis_begins(): the first. */
bool axis_ends(const struct trend_axis *axis, size_t snapshot);

/* What is said of a trend must have so many snapshots of one part. */
#define AXIS_TREND_MIN TREND_LEAST

/* How many snapshots the longest part has. */
size_t axis_longest(const struct trend_axis *axis);

/* Whether there are snapshots enough for bounds of a slope that hold with 95 percent confidence: five of one
 * part, or more of several. Else they are the least and the greatest slope of two. */
bool axis_has_bounds(const struct trend_axis *axis);

/* Whether time passes within a part, and that one that is long enough for a trend, if there is one; false
 * also when times are not known. Without that there are no rates. */
bool axis_time_passes(const struct trend_axis *axis);

/* Sums over the parts of a series sums[0..axis->count); each number is INT64_MAX at most. */
struct block_totals series_first(const struct trend_axis *axis, const struct block_totals *sums);
struct block_totals series_last(const struct trend_axis *axis, const struct block_totals *sums);

/* How far apart the lowest and the highest number of one part are, of the part where that is most;
 * each kind of number by itself. Overhead is not looked at. */
struct block_totals series_swing(const struct trend_axis *axis, const struct block_totals *sums);

/* Whether a series is judged by its blocks: within each part its bytes are always the same, and its blocks are
 * not. sums is NULL: it has neither. */
bool series_by_blocks(const struct trend_axis *axis, const struct block_totals *sums);

/* Judging many series of one axis: by several threads, each with a judge of its own. */

/* Calls judge_one for 0..count, in no order and several at once. */
void series_judge_all(const struct trend_axis *axis, size_t count,
	void (*judge_one)(void *ctx, size_t index, struct trend_judge *judge), void *ctx);

/* What the series of each row says. */

/* Fills in the trend of each row of a comparison that has an axis, several at once. */
void series_judge_rows(struct comparison *comparison);

#endif
