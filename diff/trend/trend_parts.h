/*
 * The product of two series.
 */
#ifndef DIFF_TREND_TREND_PARTS_H
#define DIFF_TREND_TREND_PARTS_H

#include <stddef.h>

#include "diff/trend/trend.h"

static inline double product(const double *a, const double *b, size_t count)
{
	double sums[4] = {0};
	size_t i = 0;

	for (; i + 4 <= count; i += 4) {
		for (size_t k = 0; k < 4; k++)
			sums[k] += a[i + k] * b[i + k];
	}
	for (; i < count; i++)
		sums[0] += a[i] * b[i];
	return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/*
 * Order in numbers: all of them, or only those of some ranks. None of them is NaN.
 */

void ranks_sort(double *values, size_t count);

/* Sorts values, of which it gives how many pairs fell: the first greater than the second. scratch: as many
 * as there are values. */
double ranks_count_falls(double *values, double *scratch, size_t count);

/*
 * Moves values until each of ranks[], which rise and are below count, has the value that it would
 * have if they were sorted. The same numbers always are moved in the same way.
 */
void ranks_select(double *values, size_t count, const size_t *ranks, size_t rank_count);

/*
 * What all series of one axis have in common: its parts, and its times in hours.
 *
 * A part of one snapshot says nothing of growth. Times are told from the first snapshot of the part,
 * for what a process does when it is young it does after each start.
 */

struct trend_plan {
	size_t count; /* of snapshots */
	size_t part_count;
	size_t *part_from; /* part_count + 1 of them: the first snapshot of each, and count */
	double *hours; /* of each snapshot since the first of its part */
	size_t most; /* snapshots in the longest part */
	size_t longest; /* which begins with this one */
	size_t steps; /* from one snapshot to the next of the same part */
	double span; /* hours of the part that took longest */
};

/* 0 or -ERR_NOMEM, and then nothing is to be released. */
int trend_plan_init(struct trend_plan *plan, const struct trend_axis *axis);

/* Makes it that of another axis, of no more snapshots than the one that it was made for. */
void trend_plan_set(struct trend_plan *plan, const struct trend_axis *axis);
void trend_plan_release(struct trend_plan *plan);

/* Takes from the values of each part their mean. */
void trend_plan_centre(const struct trend_plan *plan, double *values);

/*
 * The slope of Theil and Sen, and the test of Mann and Kendall, over pairs of snapshots.
 *
 * A pair is two snapshots of one part at different times. Its slope is what the value rose by per
 * hour; the slope of a series is the median of them all (Theil 1950, Sen 1968). S is the number of
 * pairs that rise less that of those that fall (Mann 1945, Kendall 1975), added up over the parts
 * as over the seasons of Hirsch, Slack and Smith (1982).
 *
 * All pairs are used up to PAIRS_ALL snapshots. Beyond, of a part only pairs whose distance is a
 * multiple of a stride, so that there are about as many as PAIRS_ALL snapshots have. The variance of
 * S under "no trend: every order is as likely" is exact for any choice of pairs, ties included: with
 * m pairs of a part of n snapshots, d_i pairs that end in i less those that begin there, and groups
 * of t equal values,
 *
 *     var = m q + r (sum d_i^2 - 2 m),   q = 1 - sum t(t-1) / n(n-1),
 *     3 r = 1 - sum t(t-1)(t-2) / n(n-1)(n-2)
 *
 * which with all pairs is Kendall's formula. It follows from what two pairs with a snapshot in
 * common tell of each other: a third, or minus a third when one ends where the other begins.
 */

#define PAIRS_ALL 64

struct slope_pairs {
	const struct trend_plan *plan;
	struct pair_run *runs;
	size_t run_count;
	double *per_hour; /* 1 by the hours between the two of each pair */
	size_t count;
	struct pair_part *parts;
	bool is_all; /* no two snapshots of a part are left out */
	double *slopes, *sorted; /* scratch */
};

struct slopes {
	/* S and its variance; beyond PAIRS_ALL snapshots those of all pairs, also of equal times, where the pairs
	 * that are used say that it may rise or fall. */
	double score, variance;
	double middle, low, high; /* per hour */
};

int slope_pairs_init(struct slope_pairs *pairs, const struct trend_plan *plan);
void slope_pairs_release(struct slope_pairs *pairs);

/* The plan has become another one, of no more snapshots. */
void slope_pairs_set(struct slope_pairs *pairs);

/*
 * All of them. The bounds are Sen's, of 95 percent; where there are too few pairs for any such
 * bounds (fewer than five snapshots), they are the least and the greatest slope of a pair. Without
 * pairs all is 0.
 */
void slope_pairs_judge(struct slope_pairs *pairs, const double *values, struct slopes *slopes);

/* The median alone. */
double slope_pairs_middle(struct slope_pairs *pairs, const double *values);

/*
 * What comes and goes with the day: waves of 24 and of 12 hours, in the time that all parts share.
 *
 * They are laid beside every course (see shapes.h), so that no course wins by following the load of a
 * day. Only where one part goes over a day and a half: in less, a wave of a day and a leak are alike.
 */

#define WAVES_MOST 4

struct waves {
	double *at
		[WAVES_MOST]; /* of each snapshot; about 0 in each part, at right angles, of length 1 */
	size_t count; /* 0: none are looked for */
	size_t snapshots;
	double *numbers; /* of these */
};

/* Takes no memory where there can be none. 0 or -ERR_NOMEM, and then nothing is to be released. */
int waves_init(struct waves *waves, const struct trend_plan *plan, const struct trend_axis *axis);
void waves_release(struct waves *waves);

/* The plan has become that of another axis, of no more snapshots and no longer parts. */
void waves_set(struct waves *waves, const struct trend_plan *plan, const struct trend_axis *axis);

/* Takes out of values what in like is a wave; both may be the same. */
void waves_take_out(const struct waves *waves, const double *like, double *values);

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

/*
 * What judging the series of one axis needs that all of them have in common.
 */

struct trend_kit {
	struct trend_plan plan;
	struct slope_pairs pairs;
	struct shapes shapes;
	/* Beside waves, where there are any. */
	struct waves waves;
	struct shapes calm_shapes;
	double *calm;
	bool *starts; /* scratch */
};

/* What is inside points to the rest: it must stay where it is. 0 or -ERR_NOMEM, and then nothing is to
 * be released. */
int trend_kit_init(struct trend_kit *kit, const struct trend_axis *axis);
void trend_kit_release(struct trend_kit *kit);

/* Makes it that of another axis, of some parts of the one that it was made for. */
void trend_kit_set(struct trend_kit *kit, const struct trend_axis *axis);

/* The values without the load of the day, until the next call; NULL: there is none. */
const double *trend_kit_calm(struct trend_kit *kit, const double *values);

/*
 * What grows by leaps: one that are few and over, or a leak that leaps whenever it is its time.
 */

struct leaps {
	bool *starts; /* scratch, these two: as many as there are snapshots */
	double *rests;
	bool is_leak;
	double memory; /* of what the leaps do not explain, see trend_memory.h */
};

/*
 * Whether two or more leaps tell the series that was fitted last better than the course that the fit
 * believes. Two or three are no leak, unless they are as a line that is seen in steps; more are one as
 * long as they do not become rarer.
 */
bool leaps_find(struct leaps *leaps, struct shapes *shapes, const double *values,
	const struct shapes_fit *fit);

/*
 * How a series is told by levels with steps up between them, whenever those were.
 */

struct stairs {
	bool *starts; /* of each snapshot: a level begins there, as in each part's first */
	size_t steps; /* up, without those from part to part */
	double rest; /* sum of squares that the levels leave */
};

/* When to climb no higher. */
struct stairs_end {
	size_t most; /* steps */
	double factor; /* by which each step must leave less than those before it, 1 or more */
	double slight; /* a rest that small is none */
};

/* Takes steps, each where it leaves least beside those before it. stairs->starts: the caller's, as many
 * as there are snapshots. */
void stairs_climb(struct stairs *stairs, const struct trend_plan *plan, const double *values,
	const struct stairs_end *end);

/* What the levels leave of each snapshot. */
void stairs_rests(const struct stairs *stairs, const struct trend_plan *plan, const double *values,
	double *rests);

/*
 * Whether the steps have become rarer or come to an end. What steps at any time does the one in ten
 * series, by Laplace's test of whether steps are early on average (Cox and Lewis 1966), and the other in
 * twenty: all are in so early a part of the time that they are there by chance once in so many.
 */
bool stairs_have_ended(const struct stairs *stairs, const struct trend_plan *plan);

/*
 * What rises under a sawtooth: its valleys do, whatever the teeth do to the rest.
 */

/*
 * Whether in the longest part the values go up and down at least four times and both the valleys and
 * the peaks rise: all of them where there are fewer than eight, else significantly by the test of
 * Mann and Kendall. The valleys must rise by more than twice what two snapshots typically differ by:
 * teeth that are no multiple of the time between snapshots are met a little lower or higher each
 * time. scratch: as many as there are snapshots.
 */
bool valleys_rise(const struct trend_plan *plan, const double *values, double *scratch);

/*
 * The parts of a series in which its value changes at all.
 *
 * A process in which it never does, since it does not use the stack or uses it once when it starts,
 * says nothing of whether another one leaks: with four snapshots or more it is left out, and what is
 * left is judged as if it were all. Many stacks have the same parts, those of a module that was built
 * anew for instance, so what judging them needs is kept for some choices of parts.
 */

#define MOVING_KEPT 4

struct moving_choice {
	struct trend_kit kit;
	bool *moves; /* of each part of the whole */
	bool is_made;
};

struct moving_parts {
	const struct trend_axis *axis;
	const struct trend_plan *whole;
	struct moving_choice kept[MOVING_KEPT];
	size_t next; /* which gives way to a new one */
	bool *moves; /* scratch */
	int64_t *times_ms;
	uint32_t *parts;
};

/* Borrows both. 0 or -ERR_NOMEM, and then nothing is to be released. Takes no memory where there is but
 * one part. */
int moving_parts_init(
	struct moving_parts *moving, const struct trend_axis *axis, const struct trend_plan *whole);
void moving_parts_release(struct moving_parts *moving);

/*
 * NULL: no part is to be left out; the whole is to be judged. Else what is needed for the parts that are
 * not, good until the next call; moving_parts_take() moves their values to the front.
 */
struct trend_kit *moving_parts_find(struct moving_parts *moving, const double *values);
void moving_parts_take(const struct moving_parts *moving, double *values);

/*
 * What a series remembers of itself: then its snapshots say less than as many that know nothing of each
 * other.
 */

/*
 * By how much the variance of S (see slope_pairs.h) grows because what is left beside a course, about 0
 * in each part, has memory: 1 + 2 sum r_k over the correlations r_k of what is k snapshots apart, up to
 * the first that is not positive; 1 where r_1 is not significant. After Hamed and Rao (1998), with
 * Geyer's end of the sum (1992).
 */
double trend_memory_of(const struct trend_plan *plan, const double *rests);

/* Whether values go on from where they were by steps that know nothing of each other, and have risen by
 * no more than such a random walk without drift does. */
bool trend_memory_is_walk(const struct trend_plan *plan, const double *values);

/*
 * The verdict on a series of numbers: see man/hdiff.1, Verdicts, which tells what is done here.
 */

struct verdict_tools {
	const struct trend_plan *plan;
	struct shapes *shapes;
	double *turned, *scratch; /* as many as there are snapshots */
	bool *starts; /* so, too */
};

/* values: not all of them equal; level: what 0 stands for; slopes: of these. */
enum trend_verdict verdict_find(const struct verdict_tools *tools, const double *values,
	double level, const struct slopes *slopes);

/* TREND_RETURNS or TREND_STEADY: the verdict on values that go neither way for good. */
enum trend_verdict verdict_of_rest(
	const struct trend_plan *plan, const double *values, double level);

#endif
