/* The verdict on a series of numbers, as described in man/hdiff-trend.7. */
#include "diff/trend/trend_parts.h"

/* Limits of scores, in standard deviations. A series without a trend exceeds SIGNIFICANT by chance
 * in one of a thousand cases. The end of such a series exceeds END_SIGNIFICANT in one of twenty
 * cases. */
#define SIGNIFICANT 3.09
#define END_SIGNIFICANT 1.645
/* Minimum slope at the end of a series for a leak that follows a step or ramp. With this slope, the
 * series would rise by this fraction of its range over the whole time. A slower rise may come from
 * a cache that is nearly full. */
#define STILL 0.125
/* A ramp may be a cache that fills if it ends within this fraction of the time. A longer rise is
 * indistinguishable from a leak. */
#define FILLED 0.75
/* Many steps and ramps compete with a single line, and one of them may fit better by chance.
 * Therefore, a line is not rejected just because its residual is larger than the residual of the
 * best step or ramp. The residual must be larger by more than the fraction GAIN / (points -
 * CHOSEN). This fraction is large for few points, because many steps and ramps fit few points. */
#define GAIN 10
#define CHOSEN 4
/* A rise is not due to chance if a line, step or ramp explains this fraction of the sum of squares,
 * and there are at least PLAIN_LEAST points. */
#define PLAIN 0.9
#define PLAIN_LEAST 6
/* The range of a series is negligible if it is below this fraction of the highest value. */
#define NEGLIGIBLE 0.1

/* A series while it is judged, and its figures. To judge a falling series, all values are
 * negated. */
struct reading {
	struct timeline *timeline;
	const double *values;
	double *scratch; /* one element per value */
	struct slopes slopes;
	double range; /* greatest difference between two values of one part */
	bool is_spread; /* the range is not negligible */
	double count; /* number of points in parts whose values change */
	/* steps between neighbouring points of these parts: all, rising and falling */
	size_t steps, rising, falling;
};

static void count_steps(struct reading *reading)
{
	const struct timeline *timeline = reading->timeline;

	reading->count = 0;
	reading->steps = reading->rising = reading->falling = 0;
	for (size_t part = 0; part < timeline->part_count; part++) {
		size_t from = timeline->part_from[part], to = timeline->part_from[part + 1];

		if (!timeline->moves[part])
			continue;
		reading->count += (double)(to - from);
		reading->steps += to - from - 1;
		for (size_t i = from + 1; i < to; i++) {
			reading->rising += reading->values[i] > reading->values[i - 1];
			reading->falling += reading->values[i] < reading->values[i - 1];
		}
	}
}

/* A possible course of a series: a ramp or a step. A ramp rises from the start of each part until
 * `hours` have passed, and is constant after that. A step is constant, except that it jumps once
 * when `hours` have passed. A ramp that lasts for the whole time is a line. Each course is fitted
 * by least squares, with a separate level for each part. */
struct course {
	double hours;
	bool is_step;
	/* `square` is the sum of the course multiplied by itself, `values` the sum of the course
	 * multiplied by the values. Both are sums over all points, after the mean of each part is
	 * subtracted. */
	double square, values;
	double explained; /* how much of the sum of squares the course explains */
};

/* Sums over those points of a part that are before a knot, see init_courses(). */
struct before {
	double count, hours, squares; /* `squares` is the sum of the squared hours */
	double values, products; /* values minus their mean, and their products with the hours */
};

struct courses {
	double square; /* sum of squares of the values, after the mean of each part is subtracted */
	struct course ramps[POINTS_MAX], steps[POINTS_MAX];
	size_t count; /* number of ramps, and also of steps */
	const struct course *line; /* the last ramp */
	const struct course *stays; /* best step, or ramp that ends early enough (FILLED) */
};

/* Creates a ramp and a step for each knot. A knot is the time at which the ramp ends and the step
 * jumps. The times are those of the points in the part with the most points. */
static void init_courses(struct courses *courses, const struct timeline *timeline)
{
	const double *hours = timeline->hours + timeline->part_from[timeline->longest];

	courses->square = 0;
	courses->count = timeline->most_points;
	for (size_t i = 0; i < courses->count; i++) {
		courses->ramps[i] = (struct course){.hours = hours[i]};
		courses->steps[i] = (struct course){.hours = hours[i], .is_step = true};
	}
}

static void add_before(struct before *before, double hours, double value)
{
	before->count++;
	before->hours += hours;
	before->squares += hours * hours;
	before->values += value;
	before->products += hours * value;
}

static void add_to_ramp(struct course *ramp, const struct before *before, double count)
{
	double behind = count - before->count, sum = before->hours + behind * ramp->hours;

	ramp->square += before->squares + behind * ramp->hours * ramp->hours - sum * sum / count;
	ramp->values += before->products - before->values * ramp->hours;
}

static void add_to_step(struct course *step, const struct before *before, double count)
{
	step->square += (count - before->count) * before->count / count;
	step->values -= before->values;
}

static void add_part(struct courses *courses, const struct reading *reading, size_t part)
{
	const struct timeline *timeline = reading->timeline;
	const double *hours = timeline->hours + timeline->part_from[part];
	const double *values = reading->values + timeline->part_from[part];
	size_t count = timeline->part_from[part + 1] - timeline->part_from[part], next = 0;
	struct before before = {0};
	double mean = 0;

	for (size_t i = 0; i < count; i++)
		mean += values[i] / (double)count;
	for (size_t i = 0; i < count; i++)
		courses->square += (values[i] - mean) * (values[i] - mean);
	for (size_t knot = 0; knot < courses->count; knot++) {
		for (; next < count && hours[next] < courses->ramps[knot].hours; next++)
			add_before(&before, hours[next], values[next] - mean);
		add_to_ramp(&courses->ramps[knot], &before, (double)count);
		add_to_step(&courses->steps[knot], &before, (double)count);
	}
}

static void measure_course(struct course *course)
{
	course->explained = 0;
	if (course->square > 0 && course->values > 0)
		course->explained = course->values * course->values / course->square;
}

static void find_courses(const struct reading *reading, struct courses *courses)
{
	init_courses(courses, reading->timeline);
	for (size_t part = 0; part < reading->timeline->part_count; part++) {
		if (reading->timeline->moves[part])
			add_part(courses, reading, part);
	}
	courses->line = &courses->ramps[courses->count - 1];
	courses->stays = &courses->steps[0];
	for (size_t i = 0; i < courses->count; i++) {
		struct course *ramp = &courses->ramps[i], *step = &courses->steps[i];

		measure_course(ramp);
		measure_course(step);
		if (step->explained > courses->stays->explained)
			courses->stays = step;
		if (ramp->explained > courses->stays->explained &&
			ramp->hours <= FILLED * courses->line->hours)
			courses->stays = ramp;
	}
}

static double course_at(const struct course *course, double hours)
{
	if (course->is_step)
		return hours >= course->hours;
	return hours < course->hours ? hours : course->hours;
}

/* Subtracts a course from the series, and returns true if the end of the result still rises. This
 * is the case for a leak after a warm-up or a step. */
static bool end_rises_beside(const struct reading *reading, const struct course *course)
{
	struct timeline *timeline = reading->timeline;
	double *residuals = reading->scratch, times;
	double span = timeline->hours[timeline->part_from[timeline->longest + 1] - 1];
	struct slopes end;

	times = course->square > 0 ? course->values / course->square : 0;
	for (size_t i = 0; i < timeline->count; i++)
		residuals[i] = reading->values[i] - times * course_at(course, timeline->hours[i]);
	slopes_find_end(timeline, residuals, &end);
	return slopes_rise(&end, END_SIGNIFICANT) && end.middle * span >= STILL * reading->range;
}

/* Returns true if a rise is a leak. If a line fits well enough, a leak must still rise at the end.
 * Otherwise, the best course that levels off is subtracted, and the end of the result must rise. */
static bool goes_on(const struct reading *reading, const struct courses *courses)
{
	double line_rest = courses->square - courses->line->explained;
	double stays_rest = courses->square - courses->stays->explained;
	double more = reading->count - CHOSEN;
	struct slopes end;

	if (more > 0 && line_rest > stays_rest * (1 + GAIN / more))
		return end_rises_beside(reading, courses->stays);
	slopes_find_end(reading->timeline, reading->values, &end);
	return end.score > 0;
}

/* Returns true if the rise of the series is unlikely to be due to chance. */
static bool has_risen(const struct reading *reading, const struct courses *courses)
{
	double explained = courses->line->explained;

	explained = courses->stays->explained > explained ? courses->stays->explained : explained;
	return slopes_rise(&reading->slopes, SIGNIFICANT) ||
	       (reading->is_spread && reading->count >= PLAIN_LEAST &&
		       explained >= PLAIN * courses->square);
}

/* Returns true if the last value of the series exceeds the mean of its first third. If not, the
 * rise was undone. For several parts, their last values and their means are added up. */
static bool is_higher(const struct reading *reading)
{
	const struct timeline *timeline = reading->timeline;
	double higher = 0;

	for (size_t part = 0; part < timeline->part_count; part++) {
		size_t from = timeline->part_from[part], to = timeline->part_from[part + 1];
		size_t third = to - from < 3 ? 1 : (to - from) / 3;

		if (!timeline->moves[part])
			continue;
		higher += reading->values[to - 1];
		for (size_t i = from; i < from + third; i++)
			higher -= reading->values[i] / (double)third;
	}
	return higher > 0;
}

/* Returns TREND_GROWS or TREND_GREW_ONCE for a series that rises, or TREND_STEADY if a rise is not
 * certain. If there are too few points for a test, returns TREND_GROWS only for a series that rises
 * at every step. */
static enum trend_verdict judge_rise(struct reading *reading)
{
	struct courses courses = {0};
	bool is_few;

	count_steps(reading);
	if (!reading->rising || !is_higher(reading))
		return TREND_STEADY;
	find_courses(reading, &courses);
	is_few = !slopes_can_rise(reading->timeline, SIGNIFICANT);
	if (is_few ? reading->rising == reading->steps : has_risen(reading, &courses))
		return goes_on(reading, &courses) ? TREND_GROWS : TREND_GREW_ONCE;
	return !reading->falling || has_risen(reading, &courses) ? TREND_GREW_ONCE : TREND_STEADY;
}

static void find_range(struct reading *reading, double level)
{
	const struct timeline *timeline = reading->timeline;
	double highest = 0;

	for (size_t part = 0; part < timeline->part_count; part++) {
		double low = reading->values[timeline->part_from[part]], high = low;

		for (size_t i = timeline->part_from[part]; i < timeline->part_from[part + 1]; i++) {
			low = reading->values[i] < low ? reading->values[i] : low;
			high = reading->values[i] > high ? reading->values[i] : high;
		}
		highest = high > highest ? high : highest;
		reading->range = high - low > reading->range ? high - low : reading->range;
	}
	reading->is_spread = reading->range > NEGLIGIBLE * (level + highest);
}

enum trend_verdict verdict_find(struct timeline *timeline, const double *values, double *scratch,
	double level, const struct slopes *slopes)
{
	struct reading reading = {.timeline = timeline, .values = values, .slopes = *slopes};
	double *turned = scratch + timeline->count;
	enum trend_verdict verdict;

	reading.scratch = scratch;
	find_range(&reading, level);
	verdict = judge_rise(&reading);
	if (verdict != TREND_STEADY)
		return verdict;
	for (size_t i = 0; i < timeline->count; i++)
		turned[i] = -values[i];
	reading.values = turned;
	reading.slopes.score = -slopes->score;
	if (judge_rise(&reading) != TREND_STEADY)
		return TREND_SHRINKS;
	return reading.is_spread ? TREND_RETURNS : TREND_STEADY;
}
