#include "diff/trend/waves.h"

#include <stdlib.h>

#include "core/err.h"
#include "diff/trend/product.h"

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
