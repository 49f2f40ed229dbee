/*
 * Which simple course of things describes a series best: one that goes on rising, or one that rose
 * and stays.
 *
 * Courses that go on rising: a line; flat, then a line; and a course that stays, with a line on top
 * (a leak after a warm-up). Courses that stay: a step between any two snapshots; a ramp from the
 * first snapshot to a knot at three quarters of the time at most; the saturation 1 - exp(-t/T), T a
 * third of the time at most. Each is fitted by least squares, with a level of its own for each part,
 * and what remains is compared: a course with more to choose must leave less by a factor that
 * stands for a likelihood ratio, exp(gain / snapshots).
 */
#ifndef DIFF_SHAPES_H
#define DIFF_SHAPES_H

#include "diff/trend/waves.h"

struct shapes {
	const struct trend_plan *plan;
	const struct waves *waves; /* that are beside all courses; NULL: none */
	double *line; /* hours, each part about 0 */
	double line_square;
	double *step_square, *step_line; /* of a step before each snapshot */
	struct shape *fills, *lates;
	size_t fill_count, late_count;
	double *numbers; /* of these */
	double *centred, *tails; /* scratch: values about 0, and their sums to the part's end */
	double strongest; /* factor */
};

enum shape_kind {
	SHAPE_LEVEL, /* nothing */
	SHAPE_STEP,
	SHAPE_FILL, /* ramp or saturation, from the start of a part */
	SHAPE_LATE, /* flat, then a line */
};

/* A course: a line and one more shape, each so many times. */
struct course {
	enum shape_kind kind;
	size_t which; /* the snapshot after a step; fills[], lates[] */
	double times, line_times;
	bool is_both; /* a shape that stays, with a line on top */
	double rest; /* sum of squares */
};

struct shapes_fit {
	struct course leak; /* the best that goes on rising */
	struct course stay; /* the best that rose and stays */
	bool is_leak; /* the first is the one to believe */
	double level_rest, line_rest; /* what a level leaves, and a line */
	double slight; /* a rest that small is none */
};

/* Borrows both. */
int shapes_init(struct shapes *shapes, const struct trend_plan *plan, const struct waves *waves);

/* The plan has become another one, of no more snapshots, and the waves those of it. */
void shapes_set(struct shapes *shapes);
void shapes_release(struct shapes *shapes);

/* range: greatest less least of the values. */
void shapes_fit(struct shapes *shapes, const double *values, double range, struct shapes_fit *fit);

/* What a course leaves of the series that was fitted last: of each snapshot, until the next call. */
const double *shapes_rests(struct shapes *shapes, const struct course *course);

/* What a rest must be so many times smaller by for a likelihood ratio of exp(gain / 2). */
double shapes_factor(const struct shapes *shapes, double gain);

/* Whether a course leaves so much less than a simpler one that leaves this. With memory there are fewer
 * snapshots than it seems. */
bool shapes_is_better(struct shapes *shapes, const struct shapes_fit *fit,
	const struct course *course, double simple, double gain);

/* The memory of what a course leaves of the series that was fitted last: see trend_memory.h. */
double shapes_memory(
	struct shapes *shapes, const struct shapes_fit *fit, const struct course *course);

#endif
