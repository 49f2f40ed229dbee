#include "diff/trend/valleys.h"

#include "diff/trend/ranks.h"

#define LEAST 4
#define TESTED 8
#define MOST 64
/* Fewer snapshots for each valley are noise, where there are too few valleys to test them. */
#define TOOTH 5
/* One in two thousand, one-sided. */
#define VALLEYS_SIGNIFICANT 3.29

/* The values from..to of a part, or the same upside down: up is 1 or -1. */
struct stretch {
	const double *values;
	size_t count;
	double up;
};

/* Values that are lower than those on both sides; of equal ones one. */
static size_t find_turns(const struct stretch *stretch, double *turns)
{
	size_t count = 0;
	bool falls = false;

	for (size_t i = 1; i < stretch->count; i++) {
		double step = (stretch->values[i] - stretch->values[i - 1]) * stretch->up;

		if (step > 0 && falls)
			turns[count++] = stretch->values[i - 1];
		if (step > 0 || step < 0)
			falls = step < 0;
	}
	return count;
}

/* Of very many, the lowest of each few: the test takes time by the square. */
static size_t thin_out(double *turns, size_t count, double up)
{
	size_t each = (count + MOST - 1) / MOST, kept = 0;

	if (count <= MOST)
		return count;
	for (size_t i = 0; i + each <= count; i += each) {
		double lowest = turns[i];

		for (size_t k = i; k < i + each; k++) {
			if (turns[k] * up < lowest * up)
				lowest = turns[k];
		}
		turns[kept++] = lowest;
	}
	return kept;
}

static bool all_rise(const double *turns, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (turns[i] <= turns[i - 1])
			return false;
	}
	return true;
}

/* As shapes_memory(), of the turns about a line, by the correlation of neighbours alone. */
static double memory_of(const double *turns, size_t count)
{
	double n = (double)count, sum = 0, slope = 0, both = 0, square = 0, last = 0;

	for (size_t i = 0; i < count; i++)
		sum += turns[i];
	sum /= n;
	for (size_t i = 0; i < count; i++)
		slope += (turns[i] - sum) * ((double)i - (n - 1) / 2);
	slope /= n * (n * n - 1) / 12;
	for (size_t i = 0; i < count; i++) {
		double rest = turns[i] - sum - slope * ((double)i - (n - 1) / 2);

		both += rest * last;
		square += rest * rest;
		last = rest;
	}
	if (both <= 0 || both * both * n < 1.96 * 1.96 * square * square)
		return 1;
	return (square + both) / (square - both);
}

static bool mostly_rise(const double *turns, size_t count)
{
	double n = (double)count, score = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = i + 1; k < count; k++)
			score += (turns[k] > turns[i]) - (turns[k] < turns[i]);
	}
	return score > 1 && (score - 1) * (score - 1) >= VALLEYS_SIGNIFICANT * VALLEYS_SIGNIFICANT * n * (n - 1) *
								 (2 * n + 5) / 18 *
								 memory_of(turns, count);
}

/* By how much the turns rise from the first to the last; 0: they do not. */
static double turns_rise(const struct stretch *stretch, double *turns)
{
	size_t count = find_turns(stretch, turns);

	if (count < LEAST || (count < TESTED && count * TOOTH > stretch->count))
		return 0;
	count = thin_out(turns, count, stretch->up);
	if (count < TESTED ? !all_rise(turns, count) : !mostly_rise(turns, count))
		return 0;
	return turns[count - 1] > turns[0] ? turns[count - 1] - turns[0] : 0;
}

static double typical_step(const struct stretch *stretch, double *steps)
{
	size_t rank = (stretch->count - 1) / 2;

	for (size_t i = 1; i < stretch->count; i++) {
		double step = stretch->values[i] - stretch->values[i - 1];

		steps[i - 1] = step < 0 ? -step : step;
	}
	ranks_select(steps, stretch->count - 1, &rank, 1);
	return steps[rank];
}

bool valleys_rise(const struct trend_plan *plan, const double *values, double *scratch)
{
	struct stretch stretch = {.count = plan->most, .up = 1};
	double rise;

	if (plan->most < LEAST * TOOTH)
		return false;
	stretch.values = values + plan->longest;
	rise = turns_rise(&stretch, scratch);
	if (!(rise > 0))
		return false;
	stretch.up = -1;
	return turns_rise(&stretch, scratch) > 0 && rise > 2 * typical_step(&stretch, scratch);
}
