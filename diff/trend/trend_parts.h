/* The points of a series in time, and the slopes between them. */
#ifndef DIFF_TREND_TREND_PARTS_H
#define DIFF_TREND_TREND_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/trend/trend.h"

/* Most points per part: a thousand snapshots have half a million pairs, and 64 means of 16
 * snapshots give nearly the same result. */
#define POINTS_MAX 64

/* Data shared by all series of one axis, and scratch memory to judge one of them. A point is a
 * snapshot. If a part has more than POINTS_MAX snapshots, or several of one time, a point is the
 * mean of neighbours. */
struct timeline {
	size_t part_count, count; /* count: of points */
	size_t *part_from; /* first point of each part, then count */
	size_t *snapshot_from; /* first snapshot of each point, then the number of snapshots */
	size_t longest, most_points; /* part with the most points, and its number of points */
	double *hours; /* by point: hours since its part began */
	double *per_hour; /* by pair of points in a part: 1 / hours between them */
	double *slopes; /* scratch, one for each pair */
	bool *moves; /* by part: used to judge the current series */
};

void timeline_init(struct timeline *timeline, const struct trend_axis *axis);
void timeline_release(struct timeline *timeline);

/* Statistics on pairs of points, for parts that move. */
struct slopes {
	/* By Mann (1945) and Kendall (1975): number of rising pairs minus falling ones, and the
	 * variance of that if all orders were equally likely, corrected for ties. */
	double score, variance;
	/* By Theil (1950) and Sen (1968): the median of the slopes per hour, and Sen's 95 percent
	 * bounds. With too few pairs for bounds, the least and the greatest slope. */
	double middle, low, high;
};

void slopes_find(struct timeline *timeline, const double *values, struct slopes *slopes);

/* Computes slopes of the last third of each part, at least four points, without bounds. */
void slopes_find_end(struct timeline *timeline, const double *values, struct slopes *slopes);

/* Returns true if the score is above the given number of standard deviations. */
bool slopes_rise(const struct slopes *slopes, double deviations);

/* Returns true if there are enough points for any score to be that high. */
bool slopes_can_rise(const struct timeline *timeline, double deviations);

/* Returns the verdict on values, one per point. level is the number that 0 stands for. scratch has
 * room for twice as many values. */
enum trend_verdict verdict_find(struct timeline *timeline, const double *values, double *scratch,
	double level, const struct slopes *slopes);

#endif
