/* The points of a series in time, and the slopes between them. */
#ifndef DIFF_TREND_TREND_PARTS_H
#define DIFF_TREND_TREND_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/trend/trend.h"

/* Maximum number of points per part. All pairs of points are examined, and a thousand snapshots
 * have half a million pairs. 64 points, each the mean of 16 snapshots, give nearly the same
 * result. */
#define POINTS_MAX 64

/* Data shared by all series of one axis, and scratch memory for judging one series. A point is
 * usually a snapshot. In a part with more than POINTS_MAX snapshots, or with equal times, a point
 * is the mean of neighbouring snapshots. */
struct timeline {
	size_t part_count, count; /* `count` is the number of points */
	size_t *part_from; /* first point of each part, then `count` */
	size_t *snapshot_from; /* first snapshot of each point, then the number of snapshots */
	size_t longest, most_points; /* part with the most points, and its number of points */
	double *hours; /* indexed by point: hours since its part began */
	double *per_hour; /* indexed by pair of points in a part: 1 / hours between them */
	double *slopes; /* scratch, one element per pair */
	bool *moves; /* indexed by part: true if the part is used to judge the current series */
};

void timeline_init(struct timeline *timeline, const struct trend_axis *axis);
void timeline_release(struct timeline *timeline);

/* Statistics on pairs of points, for parts whose values change. */
struct slopes {
	/* According to Mann (1945) and Kendall (1975). `score` is the number of rising pairs minus
	 * the number of falling pairs. `variance` is the variance that this score has if all orders
	 * are equally likely, corrected for ties. */
	double score, variance;
	/* According to Theil (1950) and Sen (1968): the median of the slopes per hour, and Sen's 95
	 * percent bounds. If there are too few pairs for such bounds, `low` and `high` are the
	 * least and the greatest slope. */
	double middle, low, high;
};

void slopes_find(struct timeline *timeline, const double *values, struct slopes *slopes);

/* Computes only `score`, `variance` and `middle`. Uses the last third of each part, but at least
 * four points. */
void slopes_find_end(struct timeline *timeline, const double *values, struct slopes *slopes);

/* Returns true if the score is above the given number of standard deviations. */
bool slopes_rise(const struct slopes *slopes, double deviations);

/* Returns true if there are enough points for slopes_rise() to return true for some series. */
bool slopes_can_rise(const struct timeline *timeline, double deviations);

/* Returns the verdict on a series, whose `values` are one per point. `level` was subtracted from
 * all values; it is the lowest number of the series. `scratch` has room for two elements per
 * value. */
enum trend_verdict verdict_find(struct timeline *timeline, const double *values, double *scratch,
	double level, const struct slopes *slopes);

#endif
