#include "diff/trend/trend_kit.h"

#include <stdlib.h>

#include "core/err.h"
#include "diff/trend/stairs.h"

/* Twice the logarithm of the likelihood ratio that waves must make the best course better by. */
#define GAIN_WAVES 30.0
/* That a course may have besides. */
#define STEPS 2

static bool init_calm(struct trend_kit *kit, const struct trend_axis *axis)
{
	if (waves_init(&kit->waves, &kit->plan, axis))
		return false;
	if (!kit->waves.numbers)
		return true;
	kit->calm = calloc(kit->plan.count, sizeof(*kit->calm));
	return kit->calm && !shapes_init(&kit->calm_shapes, &kit->plan, &kit->waves);
}

static bool init_kit(struct trend_kit *kit, const struct trend_axis *axis)
{
	kit->starts = calloc(axis->count + 1, sizeof(*kit->starts));
	if (!kit->starts)
		return false;
	return !trend_plan_init(&kit->plan, axis) && !slope_pairs_init(&kit->pairs, &kit->plan) &&
	       !shapes_init(&kit->shapes, &kit->plan, NULL) && init_calm(kit, axis);
}

int trend_kit_init(struct trend_kit *kit, const struct trend_axis *axis)
{
	*kit = (struct trend_kit){0};
	if (init_kit(kit, axis))
		return 0;
	trend_kit_release(kit);
	return -ERR_NOMEM;
}

void trend_kit_release(struct trend_kit *kit)
{
	free(kit->calm);
	free(kit->starts);
	shapes_release(&kit->calm_shapes);
	waves_release(&kit->waves);
	shapes_release(&kit->shapes);
	slope_pairs_release(&kit->pairs);
	trend_plan_release(&kit->plan);
}

void trend_kit_set(struct trend_kit *kit, const struct trend_axis *axis)
{
	trend_plan_set(&kit->plan, axis);
	slope_pairs_set(&kit->pairs);
	shapes_set(&kit->shapes);
	waves_set(&kit->waves, &kit->plan, axis);
	if (kit->waves.count)
		shapes_set(&kit->calm_shapes);
}

static double values_range(const double *values, size_t count)
{
	double least = values[0], highest = values[0];

	for (size_t i = 1; i < count; i++) {
		least = values[i] < least ? values[i] : least;
		highest = values[i] > highest ? values[i] : highest;
	}
	return highest - least;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double rest_of_stairs(struct trend_kit *kit, const double *values)
{
	struct stairs_end end = {STEPS, 1, 0};
	struct stairs stairs = {.starts = kit->starts};

	stairs_climb(&stairs, &kit->plan, values, &end);
	return stairs.rest;
}

/* What is left without waves by the best of all courses, or by one that stays and some steps more. */
static double rest_without(struct trend_kit *kit, const double *values, double range)
{
	struct shapes_fit fit;
	double rest;

	shapes_fit(&kit->shapes, values, range, &fit);
	rest = least(fit.leak.rest, fit.stay.rest);
	rest = least(rest, rest_of_stairs(kit, values));
	return least(rest, rest_of_stairs(kit, shapes_rests(&kit->shapes, &fit.stay)));
}

const double *trend_kit_calm(struct trend_kit *kit, const double *values)
{
	size_t count = kit->plan.count;
	struct shapes_fit beside;
	const struct course *course;
	double range, without;

	if (!kit->waves.count)
		return NULL;
	range = values_range(values, count);
	without = rest_without(kit, values, range);
	shapes_fit(&kit->calm_shapes, values, range, &beside);
	course = beside.is_leak ? &beside.leak : &beside.stay;
	if (!shapes_is_better(&kit->calm_shapes, &beside, course, without, GAIN_WAVES))
		return NULL;
	for (size_t i = 0; i < count; i++)
		kit->calm[i] = values[i];
	waves_take_out(&kit->waves, shapes_rests(&kit->shapes, course), kit->calm);
	return kit->calm;
}
