/*
 * Trends: the verdict on a series of sums, one per snapshot, and the rate of growth.
 *
 * A series has one part per process. If a process is restarted, its sums begin at zero again, so
 * only changes within a part count. This module knows nothing about stacks, files or reports. */
#ifndef DIFF_TREND_TREND_H
#define DIFF_TREND_TREND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dump/model.h"

/* Most certain leak first. man/hdiff-trend.7 describes how a series is judged. */
enum trend_verdict {
	TREND_GROWS, /* rises from beginning to end, and still rises */
	TREND_GREW_ONCE, /* rose, and has been flat since then */
	TREND_RETURNS, /* rises and falls */
	TREND_STEADY,
	TREND_SHRINKS,
	TREND_TOO_FEW, /* no part has three snapshots */
};

#define TREND_VERDICTS 6

/* Minimum number of snapshots in one part for a verdict. Two snapshots show only a difference. */
#define TREND_LEAST 3

/* Times of the snapshots of a series, for all stacks of a comparison. */
struct trend_axis {
	/* Times in ascending order. NULL if times are missing or all equal. In that case, snapshots
	 * count as one hour apart, and rates are not shown. */
	const int64_t *times_ms;
	/* indexed by snapshot: number of its part, ascending from 0; NULL: a single part */
	const uint32_t *parts;
	size_t count;
};

/* Returns true if a snapshot is the first of its part. */
static inline bool axis_begins(const struct trend_axis *axis, size_t snapshot)
{
	return !snapshot || (axis->parts && axis->parts[snapshot] != axis->parts[snapshot - 1]);
}

struct trend {
	enum trend_verdict verdict;
	/* Growth per hour: the slope of Theil and Sen, with its bounds at 95 percent confidence.
	 * With fewer than five snapshots, the bounds are the least and the greatest slope between
	 * two snapshots. All three numbers are finite, and low <= slope <= high. */
	double bytes_per_hour, low_bytes_per_hour, high_bytes_per_hour;
	double blocks_per_hour;
	/* Last snapshot minus first snapshot, added up over all parts and limited to
	 * +/-INT64_MAX. */
	int64_t net_bytes, net_blocks;
};

/* Returns "grows", "grew-once", "returns", "steady", "shrinks" or "too-few". Text reports print the
 * hyphen as a blank. */
const char *trend_verdict_name(enum trend_verdict verdict);

/* State for judging many series that have the same axis. Only one thread at a time may use it. */
struct trend_judge;
struct trend_judge *trend_judge_new(const struct trend_axis *axis); /* borrows `axis` */
void trend_judge_free(struct trend_judge *judge);

/* Judges the series totals[0..axis->count). */
void trend_judge(struct trend_judge *judge, const struct block_totals *totals, struct trend *trend);

#endif
