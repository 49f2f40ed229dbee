#include <stdlib.h>

#include "core/base/err.h"
#include "diff/trend/trend_parts.h"

#define MS_PER_DAY 86400000
/* A day and a half, but for the last step of an hour. */
#define HOURS_LEAST 35.0
#define SNAPSHOTS_LEAST 24
/* A wave of which the snapshots show less than this part of its half, since they always come at the same
 * hours, is none. */
#define SHOWN_LEAST 0.2

struct turn {
	double sine, cosine;
};

/* Of twice the angle. */
static struct turn doubled(struct turn of)
{
	return (struct turn){2 * of.sine * of.cosine, of.cosine * of.cosine - of.sine * of.sine};
}

/* The library's differ in the last bits from one system to the next, and then a verdict could. */
static struct turn turn_of_day(int64_t time_ms)
{
	int64_t ms = (time_ms % MS_PER_DAY + MS_PER_DAY) % MS_PER_DAY;
	double x = (double)ms / MS_PER_DAY * 6.283185307179586 / 256, square = x * x;
	struct turn turn = {x * (1 - square / 6 * (1 - square / 20)),
		1 - square / 2 * (1 - square / 12 * (1 - square / 30))};

	for (int i = 0; i < 8; i++)
		turn = doubled(turn);
	return turn;
}

static void take_off(double *from, const double *what, double times, size_t count)
{
	for (size_t i = 0; i < count; i++)
		from[i] -= times * what[i];
}

static bool can_be(const struct trend_plan *plan, const struct trend_axis *axis)
{
	for (size_t part = 0; axis->times_ms && part < plan->part_count; part++) {
		size_t from = plan->part_from[part], to = plan->part_from[part + 1];

		if (to - from >= SNAPSHOTS_LEAST && plan->hours[to - 1] >= HOURS_LEAST)
			return true;
	}
	return false;
}

int waves_init(struct waves *waves, const struct trend_plan *plan, const struct trend_axis *axis)
{
	*waves = (struct waves){0};
	if (!can_be(plan, axis))
		return 0;
	waves->numbers = calloc(plan->count, WAVES_MOST * sizeof(*waves->numbers));
	if (!waves->numbers)
		return -ERR_NOMEM;
	waves_set(waves, plan, axis);
	return 0;
}

void waves_release(struct waves *waves)
{
	free(waves->numbers);
	*waves = (struct waves){0};
}

static void fill(struct waves *waves, const struct trend_axis *axis)
{
	for (size_t i = 0; i < axis->count; i++) {
		struct turn day = turn_of_day(axis->times_ms[i]), half = doubled(day);

		waves->at[0][i] = day.sine;
		waves->at[1][i] = day.cosine;
		waves->at[2][i] = half.sine;
		waves->at[3][i] = half.cosine;
	}
}

/* Whether the snapshots show it beside those before it. */
static bool make_right(struct waves *waves, const struct trend_plan *plan, double *wave)
{
	double square, root;

	trend_plan_centre(plan, wave);
	waves_take_out(waves, wave, wave);
	square = product(wave, wave, plan->count);
	if (square < SHOWN_LEAST * (double)plan->count / 2)
		return false;
	/* Newton's, from above: the library's might be another one on each system. */
	root = square + 1;
	for (int i = 0; i < 60; i++)
		root = (root + square / root) / 2;
	for (size_t i = 0; i < plan->count; i++)
		wave[i] /= root;
	return true;
}

void waves_set(struct waves *waves, const struct trend_plan *plan, const struct trend_axis *axis)
{
	waves->count = 0;
	waves->snapshots = plan->count;
	if (!waves->numbers || !can_be(plan, axis))
		return;
	for (size_t i = 0; i < WAVES_MOST; i++)
		waves->at[i] = waves->numbers + i * plan->count;
	fill(waves, axis);
	for (size_t i = 0; i < WAVES_MOST; i++) {
		double *wave = waves->at[i];

		if (!make_right(waves, plan, wave))
			continue;
		waves->at[i] = waves->at[waves->count];
		waves->at[waves->count++] = wave;
	}
}

void waves_take_out(const struct waves *waves, const double *like, double *values)
{
	double times[WAVES_MOST];

	for (size_t i = 0; i < waves->count; i++)
		times[i] = product(like, waves->at[i], waves->snapshots);
	for (size_t i = 0; i < waves->count; i++)
		take_off(values, waves->at[i], times[i], waves->snapshots);
}

#define MOST 12
/* Three levels of five snapshots: in fewer there are always some that fit. */
#define LEAST 15
/* Twice the logarithm of the likelihood ratio that each must be worth. */
#define GAIN_LEAP 11.0
/* Too few to tell whether they become rarer. */
#define FEW 3
/* Of the squares a line leaves 1 / (n + 1)^2 beside n equal steps at equal distances: two are no line,
 * three are. */
#define AS_A_LINE 0.1

/* Whether the stairs are better than the course by as many leaps as they have more. */
static bool are_better(struct leaps *leaps, struct shapes *shapes, const double *values,
	const struct shapes_fit *fit, const struct stairs *stairs)
{
	double simple = fit->is_leak ? fit->leak.rest : fit->stay.rest;
	double gain = GAIN_LEAP * (double)(stairs->steps - !fit->is_leak);

	leaps->memory = 1;
	if (simple <= stairs->rest * shapes_factor(shapes, gain) + fit->slight)
		return false;
	if (stairs->rest <= fit->slight)
		return true;
	stairs_rests(stairs, shapes->plan, values, leaps->rests);
	leaps->memory = trend_memory_of(shapes->plan, leaps->rests);
	gain *= leaps->memory;
	return simple > stairs->rest * shapes_factor(shapes, gain) + fit->slight;
}

static bool is_line(const struct shapes_fit *fit, const struct stairs *stairs)
{
	return fit->is_leak &&
	       fit->line_rest - stairs->rest < AS_A_LINE * (fit->level_rest - stairs->rest);
}

bool leaps_find(struct leaps *leaps, struct shapes *shapes, const double *values,
	const struct shapes_fit *fit)
{
	struct stairs_end end = {MOST, shapes_factor(shapes, GAIN_LEAP), fit->slight};
	struct stairs stairs = {.starts = leaps->starts};

	if (shapes->plan->count < LEAST)
		return false;
	stairs_climb(&stairs, shapes->plan, values, &end);
	if (stairs.steps < 2 || !are_better(leaps, shapes, values, fit, &stairs))
		return false;
	leaps->is_leak = stairs.steps <= FEW ? is_line(fit, &stairs) :
					       !stairs_have_ended(&stairs, shapes->plan);
	return true;
}

/* One in ten, one-sided: standard deviations. */
#define EARLY_SQUARED (1.2816 * 1.2816)
/* One in twenty. */
#define SOON_OVER 0.05

/* Values from..to have one level; which step up between two of them takes most off the squares. */
struct level {
	size_t from, to;
	double mean;
};

struct step_up {
	size_t at;
	double gain;
};

static struct level level_from(const struct stairs *stairs, const struct trend_plan *plan,
	const double *values, size_t from)
{
	struct level level = {from, from + 1, values[from]};

	for (; level.to < plan->count && !stairs->starts[level.to]; level.to++)
		level.mean += values[level.to];
	level.mean /= (double)(level.to - from);
	return level;
}

static void try_level(const double *values, const struct level *level, struct step_up *best)
{
	double all = (double)(level->to - level->from), sum = 0;

	for (size_t i = level->from + 1; i < level->to; i++) {
		double before = (double)(i - level->from), gain;

		sum += values[i - 1] - level->mean;
		if (sum >= 0)
			continue;
		gain = sum * sum * all / (before * (all - before));
		if (gain > best->gain)
			*best = (struct step_up){i, gain};
	}
}

void stairs_rests(const struct stairs *stairs, const struct trend_plan *plan, const double *values,
	double *rests)
{
	struct level level;

	for (size_t from = 0; from < plan->count; from = level.to) {
		level = level_from(stairs, plan, values, from);
		for (size_t i = from; i < level.to; i++)
			rests[i] = values[i] - level.mean;
	}
}

/* On the ground: but the level of each part. */
static void begin(struct stairs *stairs, const struct trend_plan *plan, const double *values)
{
	struct level level;

	for (size_t i = 0; i < plan->count; i++)
		stairs->starts[i] = false;
	for (size_t part = 0; part < plan->part_count; part++)
		stairs->starts[plan->part_from[part]] = true;
	stairs->steps = 0;
	stairs->rest = 0;
	for (size_t from = 0; from < plan->count; from = level.to) {
		level = level_from(stairs, plan, values, from);
		for (size_t i = from; i < level.to; i++)
			stairs->rest += (values[i] - level.mean) * (values[i] - level.mean);
	}
}

static struct step_up find_step(
	const struct stairs *stairs, const struct trend_plan *plan, const double *values)
{
	struct step_up best = {0};
	struct level level;

	for (size_t from = 0; from < plan->count; from = level.to) {
		level = level_from(stairs, plan, values, from);
		try_level(values, &level, &best);
	}
	return best;
}

void stairs_climb(struct stairs *stairs, const struct trend_plan *plan, const double *values,
	const struct stairs_end *end)
{
	begin(stairs, plan, values);
	while (stairs->steps < end->most && stairs->rest > end->slight) {
		struct step_up step = find_step(stairs, plan, values);
		double rest = stairs->rest > step.gain ? stairs->rest - step.gain : 0;

		if (!(step.gain > 0) || rest * end->factor > stairs->rest)
			break;
		stairs->starts[step.at] = true;
		stairs->rest = rest;
		stairs->steps++;
	}
}

/* When the steps were, each between two snapshots. */
struct step_times {
	double late,
		variance; /* after the middle of the time, added up, and what chance makes of it */
	double last; /* of 1 */
};

static struct step_times time_steps(const struct stairs *stairs, const struct trend_plan *plan)
{
	struct step_times times = {0};

	for (size_t part = 0; part < plan->part_count; part++) {
		size_t from = plan->part_from[part], to = plan->part_from[part + 1];
		double half = plan->hours[to - 1] / 2;

		for (size_t i = from + 1; half > 0 && i < to; i++) {
			double at = (plan->hours[i - 1] + plan->hours[i]) / 2;

			if (!stairs->starts[i])
				continue;
			times.late += at - half;
			times.variance += half * half / 3;
			times.last = at / half / 2 > times.last ? at / half / 2 : times.last;
		}
	}
	return times;
}

bool stairs_have_ended(const struct stairs *stairs, const struct trend_plan *plan)
{
	struct step_times times = time_steps(stairs, plan);
	double chance = 1;

	for (size_t i = 0; i < stairs->steps; i++)
		chance *= times.last;
	return chance < SOON_OVER ||
	       (times.late < 0 && times.late * times.late > EARLY_SQUARED * times.variance);
}

#define RAMPS 24
#define DELAYED 20
#define SATURATIONS 16
#define LATES 8
#define FILLS (RAMPS + SATURATIONS + DELAYED)

/* A ramp must have ended, and a saturation be at 95 percent, when so much of the time is over. */
#define RAMP_MOST 0.75
#define SATURATION_MOST 0.34
#define SATURATION_LEAST 0.03
#define LATE_MOST 0.8

/* Twice the logarithm of the likelihood ratio that a course with more to choose must be better by. */
#define GAIN_STAY 11.0
#define GAIN_BOTH 12.0
#define GAIN_LEVEL 16.0
/* Of each snapshot: what is more is as good as certain. */
#define GAIN_MOST 30.0
/* The part of the range that a fit may miss on average: no program is as simple as a course. */
#define SLIGHT 0.01

struct shape {
	double *at; /* of each snapshot, each part about 0 */
	double square, line; /* its products with itself and the line */
};

/* The library's differs in the last bits from one system to the next, and then a verdict could. */
static double power_of_e(double x)
{
	double small = x / 4096, result = 1 + small * (1 + small / 2 * (1 + small / 3));

	for (int i = 0; i < 12; i++)
		result *= result;
	return result;
}

/* What is beside the levels of the parts, and the waves. */
static void set_aside(const struct shapes *shapes, double *values)
{
	trend_plan_centre(shapes->plan, values);
	if (shapes->waves)
		waves_take_out(shapes->waves, values, values);
}

static void finish_shape(struct shapes *shapes, struct shape *shape)
{
	const struct trend_plan *plan = shapes->plan;

	set_aside(shapes, shape->at);
	shape->square = product(shape->at, shape->at, plan->count);
	shape->line = product(shape->at, shapes->line, plan->count);
}

static void make_line(struct shapes *shapes)
{
	const struct trend_plan *plan = shapes->plan;

	for (size_t i = 0; i < plan->count; i++)
		shapes->line[i] = plan->hours[i];
	set_aside(shapes, shapes->line);
	shapes->line_square = product(shapes->line, shapes->line, plan->count);
}

/* What the waves have of the steps. */
static void set_steps_aside(struct shapes *shapes, size_t from, size_t to)
{
	for (size_t k = 0; k < (shapes->waves ? shapes->waves->count : 0); k++) {
		double sum = 0;

		for (size_t i = to; i-- > from;) {
			sum += shapes->waves->at[k][i];
			shapes->step_square[i] -= sum * sum;
		}
	}
}

static void make_steps(struct shapes *shapes)
{
	const struct trend_plan *plan = shapes->plan;

	for (size_t part = 0; part < plan->part_count; part++) {
		size_t from = plan->part_from[part], to = plan->part_from[part + 1];
		double all = (double)(to - from), sum = 0;

		for (size_t i = to; i-- > from;) {
			double after = (double)(to - i);

			sum += shapes->line[i];
			shapes->step_line[i] = sum;
			shapes->step_square[i] = after * (all - after) / all;
		}
		set_steps_aside(shapes, from, to);
		shapes->step_square[from] = 0;
	}
}

static void make_ramp(struct shapes *shapes, struct shape *shape, double start, double knot)
{
	for (size_t i = 0; i < shapes->plan->count; i++) {
		double hours = shapes->plan->hours[i];

		shape->at[i] = hours < start ? start : hours < knot ? hours : knot;
	}
	finish_shape(shapes, shape);
}

static void make_saturation(struct shapes *shapes, struct shape *shape, double hours)
{
	for (size_t i = 0; i < shapes->plan->count; i++)
		shape->at[i] = 1 - 1 / power_of_e(shapes->plan->hours[i] / hours);
	finish_shape(shapes, shape);
}

static void make_late(struct shapes *shapes, struct shape *shape, double start)
{
	for (size_t i = 0; i < shapes->plan->count; i++) {
		double hours = shapes->plan->hours[i];

		shape->at[i] = hours > start ? hours - start : 0;
	}
	finish_shape(shapes, shape);
}

/* From each tenth of the time to each later one, up to seven tenths. */
static void make_delayed(struct shapes *shapes, struct shape *shape)
{
	double tenth = shapes->plan->span / 10;

	for (int start = 1; start <= 5; start++) {
		for (int knot = start + 1; knot <= 7; knot++)
			make_ramp(shapes, shape++, start * tenth, knot * tenth);
	}
}

static void make_shapes(struct shapes *shapes)
{
	double span = shapes->plan->span, hours = span * SATURATION_LEAST;

	for (size_t i = 0; i < FILLS; i++)
		shapes->fills[i].at = shapes->numbers + i * shapes->plan->count;
	for (size_t i = 0; i < LATES; i++)
		shapes->lates[i].at = shapes->numbers + (FILLS + i) * shapes->plan->count;
	for (size_t i = 0; i < RAMPS; i++)
		make_ramp(shapes, &shapes->fills[i], 0, span * RAMP_MOST * (double)(i + 1) / RAMPS);
	for (size_t i = 0; i < SATURATIONS; i++) {
		make_saturation(shapes, &shapes->fills[RAMPS + i], hours);
		hours *= 1.1757; /* (0.34 / 0.03) ^ (1 / 15) */
	}
	make_delayed(shapes, &shapes->fills[RAMPS + SATURATIONS]);
	for (size_t i = 0; i < LATES; i++)
		make_late(shapes, &shapes->lates[i], span * LATE_MOST * (double)(i + 1) / LATES);
	shapes->fill_count = FILLS;
	shapes->late_count = LATES;
}

int shapes_init(struct shapes *shapes, const struct trend_plan *plan, const struct waves *waves)
{
	size_t count = plan->count + 1;

	*shapes = (struct shapes){.plan = plan, .waves = waves};
	shapes->numbers = calloc(count, (FILLS + LATES + 5) * sizeof(*shapes->numbers));
	shapes->fills = calloc(FILLS + LATES, sizeof(*shapes->fills));
	if (!shapes->numbers || !shapes->fills) {
		shapes_release(shapes);
		return -ERR_NOMEM;
	}
	shapes->lates = shapes->fills + FILLS;
	shapes->line = shapes->numbers + (FILLS + LATES) * count;
	shapes->step_square = shapes->line + count;
	shapes->step_line = shapes->step_square + count;
	shapes->centred = shapes->step_line + count;
	shapes->tails = shapes->centred + count;
	shapes_set(shapes);
	return 0;
}

void shapes_set(struct shapes *shapes)
{
	const struct trend_plan *plan = shapes->plan;

	shapes->strongest = shapes_factor(shapes, GAIN_LEVEL);
	shapes->fill_count = shapes->late_count = 0;
	make_line(shapes);
	make_steps(shapes);
	if (plan->span > 0)
		make_shapes(shapes);
}

void shapes_release(struct shapes *shapes)
{
	free(shapes->numbers);
	free(shapes->fills);
	*shapes = (struct shapes){0};
}

static void keep_better(struct course *best, const struct course *course)
{
	if (course->rest < best->rest)
		*best = *course;
}

/* A shape's products with the values, itself and the line. */
struct products {
	double values, square, line;
};

/* What is tried for a series. */
struct trial {
	struct shapes *shapes;
	struct shapes_fit *fit;
	struct course both; /* the best of a course that stays with a line on top */
	double square, line; /* products of the values with themselves and the line */
};

static void try_stay(struct trial *trial, struct course course, const struct products *of)
{
	if (!(of->square > 0) || !(of->values > 0))
		return;
	course.times = of->values / of->square;
	course.rest = trial->square - course.times * of->values;
	keep_better(&trial->fit->stay, &course);
}

static void try_both(struct trial *trial, struct course course, const struct products *of)
{
	double square = trial->shapes->line_square;
	double determinant = square * of->square - of->line * of->line;

	if (!(determinant > 1e-9 * square * of->square))
		return;
	course.times = (of->values * square - trial->line * of->line) / determinant;
	course.line_times = (trial->line * of->square - of->values * of->line) / determinant;
	if (!(course.times > 0) || !(course.line_times > 0))
		return;
	course.rest = trial->square - course.times * of->values - course.line_times * trial->line;
	course.is_both = true;
	keep_better(&trial->both, &course);
}

static void try_steps(struct trial *trial)
{
	struct shapes *shapes = trial->shapes;
	const struct trend_plan *plan = shapes->plan;

	for (size_t i = 1; i < plan->count; i++) {
		struct products of = {
			shapes->tails[i], shapes->step_square[i], shapes->step_line[i]};
		struct course course = {.kind = SHAPE_STEP, .which = i};

		try_stay(trial, course, &of);
		try_both(trial, course, &of);
	}
}

static void try_fills(struct trial *trial)
{
	struct shapes *shapes = trial->shapes;

	for (size_t i = 0; i < shapes->fill_count; i++) {
		const struct shape *shape = &shapes->fills[i];
		struct products of = {product(shape->at, shapes->centred, shapes->plan->count),
			shape->square, shape->line};
		struct course course = {.kind = SHAPE_FILL, .which = i};

		try_stay(trial, course, &of);
		try_both(trial, course, &of);
	}
}

static void try_line(struct trial *trial)
{
	struct course course = {.kind = SHAPE_LEVEL};

	if (!(trial->shapes->line_square > 0) || !(trial->line > 0))
		return;
	course.line_times = trial->line / trial->shapes->line_square;
	course.rest = trial->square - course.line_times * trial->line;
	trial->fit->line_rest = course.rest;
	keep_better(&trial->fit->leak, &course);
}

static void try_lates(struct trial *trial)
{
	struct shapes *shapes = trial->shapes;

	for (size_t i = 0; i < shapes->late_count; i++) {
		const struct shape *shape = &shapes->lates[i];
		double values = product(shape->at, shapes->centred, shapes->plan->count);
		struct course course = {.kind = SHAPE_LATE, .which = i};

		if (!(shape->square > 0) || !(values > 0))
			continue;
		course.times = values / shape->square;
		course.rest = trial->square - course.times * values;
		keep_better(&trial->fit->leak, &course);
	}
}

/* Values about 0 in each part, and at each snapshot the sum of those from there to its end. */
static void take_values(struct shapes *shapes, const double *values)
{
	const struct trend_plan *plan = shapes->plan;
	double sum = 0;

	for (size_t i = 0; i < plan->count; i++)
		shapes->centred[i] = values[i];
	set_aside(shapes, shapes->centred);
	for (size_t part = plan->part_count; part-- > 0;) {
		sum = 0;
		for (size_t i = plan->part_from[part + 1]; i-- > plan->part_from[part];) {
			sum += shapes->centred[i];
			shapes->tails[i] = sum;
		}
	}
}

static double shape_at(const struct shapes *shapes, const struct course *course, size_t at)
{
	switch (course->kind) {
	case SHAPE_FILL: return shapes->fills[course->which].at[at];
	case SHAPE_LATE: return shapes->lates[course->which].at[at];
	case SHAPE_STEP: return at >= course->which; /* the level of its part is left out */
	case SHAPE_LEVEL: break;
	}
	return 0;
}

const double *shapes_rests(struct shapes *shapes, const struct course *course)
{
	const struct trend_plan *plan = shapes->plan;
	double *rests = shapes->tails;

	for (size_t i = 0; i < plan->count; i++)
		rests[i] = shapes->centred[i] - course->line_times * shapes->line[i] -
			   course->times * shape_at(shapes, course, i);
	if (course->kind == SHAPE_STEP)
		set_aside(shapes, rests);
	return rests;
}

double shapes_memory(
	struct shapes *shapes, const struct shapes_fit *fit, const struct course *course)
{
	if (course->rest <= fit->slight)
		return 1;
	return trend_memory_of(shapes->plan, shapes_rests(shapes, course));
}

double shapes_factor(const struct shapes *shapes, double gain)
{
	double count = (double)(shapes->plan->count + !shapes->plan->count);

	return power_of_e(gain < GAIN_MOST * count ? gain / count : GAIN_MOST);
}

bool shapes_is_better(struct shapes *shapes, const struct shapes_fit *fit,
	const struct course *course, double simple, double gain)
{
	if (simple <= course->rest * shapes_factor(shapes, gain) + fit->slight)
		return false;
	gain *= shapes_memory(shapes, fit, course);
	return simple > course->rest * shapes_factor(shapes, gain) + fit->slight;
}

static bool is_better(struct trial *trial, const struct course *course, double simple, double gain)
{
	return shapes_is_better(trial->shapes, trial->fit, course, simple, gain);
}

static void choose(struct trial *trial)
{
	struct shapes_fit *fit = trial->fit;
	double gain = GAIN_STAY + GAIN_BOTH;

	fit->is_leak = true;
	if (is_better(trial, &trial->both, fit->stay.rest, GAIN_BOTH) &&
		is_better(trial, &trial->both, fit->leak.rest, gain))
		fit->leak = trial->both;
	else
		fit->is_leak = !is_better(trial, &fit->stay, fit->leak.rest, GAIN_STAY);
}

void shapes_fit(struct shapes *shapes, const double *values, double range, struct shapes_fit *fit)
{
	struct trial trial = {.shapes = shapes, .fit = fit};
	size_t count = shapes->plan->count;

	take_values(shapes, values);
	trial.square = product(shapes->centred, shapes->centred, count);
	trial.line = product(shapes->centred, shapes->line, count);
	*fit = (struct shapes_fit){.level_rest = trial.square};
	fit->leak.rest = fit->stay.rest = trial.both.rest = fit->line_rest = trial.square;
	fit->slight = SLIGHT * range * SLIGHT * range * (double)count;
	try_line(&trial);
	try_lates(&trial);
	try_steps(&trial);
	try_fills(&trial);
	choose(&trial);
}
