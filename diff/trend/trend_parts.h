/*
 * The points of a series in time, and what any two of them say.
 */
#ifndef DIFF_TREND_TREND_PARTS_H
#define DIFF_TREND_TREND_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/trend/trend.h"

/* At most so many points to a part: a thousand snapshots have half a million pairs, and 64 means of 16 of
 * them tell as much. */
#define POINTS_MAX 64

/*
 * What all series of one axis have in common, and room to judge one of them. A point is a snapshot; where a
 * part has more than POINTS_MAX of them, or several of one time, it is neighbours put together.
 */
struct timeline {
	size_t part_count, count; /* count: of points */
	size_t *part_from; /* the first point of each part, and count */
	size_t *snapshot_from; /* the first snapshot of each point, and how many there are */
	size_t longest, most_points; /* the part that has most points, and how many */
	double *hours; /* of each point, since its part began */
	double *per_hour; /* of any two points of a part: 1 by the hours between them */
	double *slopes; /* scratch, as many */
	bool *moves; /* of each part: it is used to judge the series at hand */
};

void timeline_init(struct timeline *timeline, const struct trend_axis *axis);
void timeline_release(struct timeline *timeline);

/* What pairs of points say, of the parts that move. */
struct slopes {
	/* Of Mann (1945) and Kendall (1975): how many pairs rise less how many fall, and the variance of
	 * that if every order were as likely, equal values considered. */
	double score, variance;
	/* Of Theil (1950) and Sen (1968): the median of the slopes per hour, and Sen's bounds of 95 percent.
	 * With too few pairs for bounds, the least and the greatest slope. */
	double middle, low, high;
};

void slopes_find(struct timeline *timeline, const double *values, struct slopes *slopes);

/* The same of the last third of each part, of four points at least; without bounds. */
void slopes_find_end(struct timeline *timeline, const double *values, struct slopes *slopes);

/* Whether chance has a score so high less often than the standard deviations say. */
bool slopes_rise(const struct slopes *slopes, double deviations);

/* Whether there are points enough for any score to be that high. */
bool slopes_can_rise(const struct timeline *timeline, double deviations);

/* The verdict on values of each point; level: what 0 stands for. scratch: twice as many. */
enum trend_verdict verdict_find(struct timeline *timeline, const double *values, double *scratch,
	double level, const struct slopes *slopes);

#endif
