#include "diff/trend/stairs.h"

#define STEPS 2

/* Values from..to have one level; which step up between two of them takes most off the squares. */
struct level {
	size_t from, to;
};

struct step_up {
	size_t at;
	double gain;
};

static double mean_of(const double *values, const struct level *level)
{
	double sum = 0;

	for (size_t i = level->from; i < level->to; i++)
		sum += values[i];
	return sum / (double)(level->to - level->from);
}

static void try_level(const double *values, const struct level *level, struct step_up *best)
{
	double mean = mean_of(values, level), all = (double)(level->to - level->from), sum = 0;

	for (size_t i = level->from + 1; i < level->to; i++) {
		double before = (double)(i - level->from), gain;

		sum += values[i - 1] - mean;
		if (sum >= 0)
			continue;
		gain = sum * sum * all / (before * (all - before));
		if (gain > best->gain)
			*best = (struct step_up){i, gain};
	}
}

static struct level level_from(const struct trend_plan *plan, const bool *starts, size_t from)
{
	struct level level = {from, from + 1};

	while (level.to < plan->count && !starts[level.to])
		level.to++;
	return level;
}

static double squares_of(const double *values, const struct level *level)
{
	double mean = mean_of(values, level), sum = 0;

	for (size_t i = level->from; i < level->to; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sum;
}

double stairs_rest(const struct trend_plan *plan, const double *values, bool *starts)
{
	struct level level;
	double rest = 0;

	for (size_t i = 0; i < plan->count; i++)
		starts[i] = false;
	for (size_t part = 0; part < plan->part_count; part++)
		starts[plan->part_from[part]] = true;
	for (int i = 0; i < STEPS; i++) {
		struct step_up best = {0};

		for (size_t from = 0; from < plan->count; from = level.to) {
			level = level_from(plan, starts, from);
			try_level(values, &level, &best);
		}
		if (best.gain > 0)
			starts[best.at] = true;
	}
	for (size_t from = 0; from < plan->count; from = level.to) {
		level = level_from(plan, starts, from);
		rest += squares_of(values, &level);
	}
	return rest;
}
