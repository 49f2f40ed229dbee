#include "diff/trend/shapes.h"

#include <stdlib.h>

#include "core/err.h"
#include "diff/trend/trend_memory.h"
#include "diff/trend/product.h"

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
