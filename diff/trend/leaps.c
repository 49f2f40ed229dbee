#include "diff/trend/leaps.h"

#include "diff/trend/stairs.h"
#include "diff/trend/trend_memory.h"

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
