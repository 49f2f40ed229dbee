/*
 * What a series of sums, one for each snapshot, says of a stack: whether it leaks, and how fast.
 *
 * A series has parts, one for each process that it is made of: a restart starts at nothing again, so
 * only what happens within a part counts. Nothing here knows of stacks, files or reports.
 */
#ifndef DIFF_TREND_TREND_H
#define DIFF_TREND_TREND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dump/model.h"

/* The least doubtful leak first. How a series is judged is told in man/hdiff-trend.7. */
enum trend_verdict {
	TREND_GROWS, /* it rises from beginning to end, and goes on rising */
	TREND_GREW_ONCE, /* it rose, and is flat since */
	TREND_RETURNS, /* it rises and falls */
	TREND_STEADY,
	TREND_SHRINKS,
	TREND_TOO_FEW, /* no part has three snapshots */
};

#define TREND_VERDICTS 6

/* Of one part there must be so many snapshots for a verdict: two are no more than a difference. */
#define TREND_LEAST 3

/* When the snapshots of a series were taken: what all stacks of a comparison have in common. */
struct trend_axis {
	/* In order. NULL: not all snapshots tell their time, or all tell the same; then they count as if
	 * they were one hour apart, and rates are not shown. */
	const int64_t *times_ms;
	const uint32_t *parts; /* of each snapshot, from 0, never falling; NULL: there is but one */
	size_t count;
};

/* Whether a snapshot is the first of its part. */
static inline bool axis_begins(const struct trend_axis *axis, size_t snapshot)
{
	return !snapshot || (axis->parts && axis->parts[snapshot] != axis->parts[snapshot - 1]);
}

struct trend {
	enum trend_verdict verdict;
	/* Growth per hour by the slope of Theil and Sen, and between what it lies with 95 percent
	 * confidence; with fewer than five snapshots the least and the greatest slope of two. Always
	 * finite, low <= slope <= high. */
	double bytes_per_hour, low_bytes_per_hour, high_bytes_per_hour;
	double blocks_per_hour;
	/* The last less the first, of each part, added up; no more than INT64_MAX either way. */
	int64_t net_bytes, net_blocks;
};

/* "grows", "grew-once", "returns", "steady", "shrinks", "too-few"; in words a hyphen is a blank. */
const char *trend_verdict_name(enum trend_verdict verdict);

/* What judging needs, to be used for many series of one axis, by one thread at a time. */
struct trend_judge;
struct trend_judge *trend_judge_new(const struct trend_axis *axis); /* borrows it */
void trend_judge_free(struct trend_judge *judge);

/* Judges the series of[0..axis->count). */
void trend_judge(struct trend_judge *judge, const struct block_totals *totals, struct trend *trend);

#endif
