#include "diff/trend/trend_memory.h"

#include "diff/trend/product.h"

/* The square of what the correlation of neighbours must be, in standard deviations, to be believed. */
#define MEMORY_SQUARED (1.96 * 1.96)
/* So many snapshots apart nothing is looked for any more. */
#define MEMORY_MOST 100
#define WALK_SQUARED (3.09 * 3.09)

/* The correlation of what is so many snapshots of a part apart, times the sum of squares. */
static double product_apart(const struct trend_plan *plan, const double *rests, size_t apart)
{
	double sum = 0;

	for (size_t part = 0; part < plan->part_count; part++) {
		size_t from = plan->part_from[part], count = plan->part_from[part + 1] - from;

		if (count > apart)
			sum += product(rests + from, rests + from + apart, count - apart);
	}
	return sum;
}

double trend_memory_of(const struct trend_plan *plan, const double *rests)
{
	double square = product(rests, rests, plan->count);
	double both = product_apart(plan, rests, 1), memory = 1;

	if (both <= 0 || both * both * (double)plan->steps < MEMORY_SQUARED * square * square)
		return 1;
	for (size_t apart = 1; both > 0 && apart < MEMORY_MOST; apart++) {
		memory += 2 * both / square;
		both = product_apart(plan, rests, apart + 1);
	}
	return memory;
}

bool trend_memory_is_walk(const struct trend_plan *plan, const double *values)
{
	double square = 0, both = 0, sum = 0;

	for (size_t part = 0; part < plan->part_count; part++) {
		for (size_t i = plan->part_from[part] + 1; i < plan->part_from[part + 1]; i++)
			sum += values[i] - values[i - 1];
	}
	sum /= (double)plan->steps;
	for (size_t part = 0; part < plan->part_count; part++) {
		double last = 0;

		for (size_t i = plan->part_from[part] + 1; i < plan->part_from[part + 1]; i++) {
			double step = values[i] - values[i - 1] - sum;

			both += step * last;
			square += step * step;
			last = step;
		}
	}
	if (both * both * (double)plan->steps > MEMORY_SQUARED * square * square)
		return false;
	sum *= (double)plan->steps;
	return sum <= 0 || sum * sum < WALK_SQUARED * square;
}
