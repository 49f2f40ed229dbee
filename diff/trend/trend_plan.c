#include "diff/trend/trend_plan.h"

#include <stdlib.h>

#include "core/err.h"

#define MS_PER_HOUR 3600000.0

static bool is_part_start(const struct trend_axis *axis, size_t at)
{
	return !at || (axis->parts && axis->parts[at] != axis->parts[at - 1]);
}

/* A clock that was put back is read as one that stood still. */
static double hours_between(const struct trend_axis *axis, size_t from, size_t to)
{
	if (!axis->times_ms)
		return (double)(to - from);
	if (axis->times_ms[to] <= axis->times_ms[from])
		return 0;
	return (double)((uint64_t)axis->times_ms[to] - (uint64_t)axis->times_ms[from]) /
	       MS_PER_HOUR;
}

static void find_parts(struct trend_plan *plan, const struct trend_axis *axis)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (is_part_start(axis, i))
			plan->part_from[plan->part_count++] = i;
	}
	plan->part_from[plan->part_count] = plan->count;
}

static void measure_part(struct trend_plan *plan, const struct trend_axis *axis, size_t part)
{
	size_t from = plan->part_from[part], to = plan->part_from[part + 1];

	plan->hours[from] = 0;
	for (size_t i = from + 1; i < to; i++) {
		double hours = hours_between(axis, from, i);

		plan->hours[i] = hours > plan->hours[i - 1] ? hours : plan->hours[i - 1];
	}
	if (to - from > plan->most) {
		plan->most = to - from;
		plan->longest = from;
	}
	if (plan->hours[to - 1] > plan->span)
		plan->span = plan->hours[to - 1];
	plan->steps += to - from - 1;
}

int trend_plan_init(struct trend_plan *plan, const struct trend_axis *axis)
{
	*plan = (struct trend_plan){0};
	plan->part_from = calloc(axis->count + 1, sizeof(*plan->part_from));
	plan->hours = calloc(axis->count + 1, sizeof(*plan->hours));
	if (!plan->part_from || !plan->hours) {
		trend_plan_release(plan);
		return -ERR_NOMEM;
	}
	trend_plan_set(plan, axis);
	return 0;
}

void trend_plan_set(struct trend_plan *plan, const struct trend_axis *axis)
{
	*plan = (struct trend_plan){
		.count = axis->count, .part_from = plan->part_from, .hours = plan->hours};
	find_parts(plan, axis);
	for (size_t part = 0; part < plan->part_count; part++)
		measure_part(plan, axis, part);
}

void trend_plan_release(struct trend_plan *plan)
{
	free(plan->part_from);
	free(plan->hours);
	*plan = (struct trend_plan){0};
}

void trend_plan_centre(const struct trend_plan *plan, double *values)
{
	for (size_t part = 0; part < plan->part_count; part++) {
		size_t from = plan->part_from[part], to = plan->part_from[part + 1];
		double sum = 0;

		for (size_t i = from; i < to; i++)
			sum += values[i];
		sum /= (double)(to - from);
		for (size_t i = from; i < to; i++)
			values[i] -= sum;
	}
}
