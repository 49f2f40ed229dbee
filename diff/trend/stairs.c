#include "diff/trend/stairs.h"

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
