#include "diff/trend/slope_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "diff/trend/ranks.h"

/* The square of what 95 percent of a normal distribution lie within, in standard deviations. */
#define BOUND_SQUARED (1.959964 * 1.959964)

/* A score of so many standard deviations, squared, may be significant. */
#define DOUBTFUL 4

/* Pairs (from + i, from + i + apart), 0 <= i < count. */
struct pair_run {
	size_t from, apart, count;
};

struct pair_part {
	double pair_count;
	double balance; /* sum d_i^2, see the header */
};

static size_t stride_of(size_t part_count, size_t count)
{
	size_t most = part_count > 2 ? (part_count - 1) / 2 : 1;
	size_t all = (size_t)PAIRS_ALL * (PAIRS_ALL - 1);
	size_t stride = ((part_count - 1) * count + all - 1) / all;

	stride = stride < most ? stride : most;
	return stride ? stride : 1;
}

/* What is asked of the pairs of a plan, one after the other in runs. */
struct pair_walk {
	struct slope_pairs *pairs;
	size_t run_count, count;
};

static void add_run(struct pair_walk *walk, size_t from, size_t apart, size_t count)
{
	struct slope_pairs *pairs = walk->pairs;

	const double *hours = pairs->plan->hours + from;

	if (!count)
		return;
	pairs->runs[walk->run_count++] = (struct pair_run){from, apart, count};
	for (size_t i = 0; i < count; i++)
		pairs->per_hour[walk->count++] = 1 / (hours[i + apart] - hours[i]);
}

/* Pairs of equal times say nothing, and end a run. */
static void add_distance(
	struct pair_walk *walk, const struct trend_plan *plan, size_t part, size_t apart)
{
	size_t begin = plan->part_from[part], end = plan->part_from[part + 1] - apart;

	for (size_t i = begin; i < end; i++) {
		if (plan->hours[i + apart] > plan->hours[i])
			continue;
		add_run(walk, begin, apart, i - begin);
		begin = i + 1;
	}
	add_run(walk, begin, apart, end - begin);
}

static void walk_pairs(struct pair_walk *walk, const struct trend_plan *plan)
{
	for (size_t part = 0; part < plan->part_count; part++) {
		size_t count = plan->part_from[part + 1] - plan->part_from[part];
		size_t stride = stride_of(count, plan->count);

		for (size_t apart = stride; apart < count; apart += stride)
			add_distance(walk, plan, part, apart);
	}
}

static void balance_part(struct slope_pairs *pairs, size_t part, double *balance)
{
	const struct trend_plan *plan = pairs->plan;
	size_t from = plan->part_from[part], to = plan->part_from[part + 1];
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += balance[i] * balance[i];
	pairs->parts[part].balance = sum;
}

static void weigh_parts(struct slope_pairs *pairs)
{
	const struct trend_plan *plan = pairs->plan;
	double *balance = pairs->sorted;
	size_t part = 0;

	memset(balance, 0, plan->count * sizeof(*balance));
	memset(pairs->parts, 0, plan->part_count * sizeof(*pairs->parts));
	for (size_t r = 0; r < pairs->run_count; r++) {
		const struct pair_run *run = &pairs->runs[r];

		while (run->from >= plan->part_from[part + 1])
			part++;
		pairs->parts[part].pair_count += (double)run->count;
		for (size_t i = run->from; i < run->from + run->count; i++) {
			balance[i] -= 1;
			balance[i + run->apart] += 1;
		}
	}
	pairs->is_all = true;
	for (part = 0; part < plan->part_count; part++) {
		double n = (double)(plan->part_from[part + 1] - plan->part_from[part]);

		balance_part(pairs, part, balance);
		pairs->is_all &= pairs->parts[part].pair_count >= n * (n - 1) / 2;
	}
}

/* Of any plan of that many snapshots or fewer: where some are left out, no more than two begin in each
 * snapshot, or PAIRS_ALL (PAIRS_ALL - 1) by the count of all. */
static size_t most_pairs(size_t count)
{
	if (count <= PAIRS_ALL)
		return count * count / 2;
	return (size_t)PAIRS_ALL * PAIRS_ALL + 4 * count;
}

int slope_pairs_init(struct slope_pairs *pairs, const struct trend_plan *plan)
{
	size_t most = most_pairs(plan->count);

	*pairs = (struct slope_pairs){.plan = plan};
	pairs->runs = calloc(most + 1, sizeof(*pairs->runs));
	pairs->per_hour = calloc(most + 1, sizeof(*pairs->per_hour));
	pairs->slopes = calloc(most + 1, sizeof(*pairs->slopes));
	pairs->parts = calloc(plan->part_count + 1, sizeof(*pairs->parts));
	pairs->sorted = calloc(plan->count + 1, sizeof(*pairs->sorted));
	if (!pairs->runs || !pairs->per_hour || !pairs->slopes || !pairs->parts || !pairs->sorted) {
		slope_pairs_release(pairs);
		return -ERR_NOMEM;
	}
	slope_pairs_set(pairs);
	return 0;
}

void slope_pairs_set(struct slope_pairs *pairs)
{
	struct pair_walk walk = {.pairs = pairs};

	walk_pairs(&walk, pairs->plan);
	pairs->run_count = walk.run_count;
	pairs->count = walk.count;
	weigh_parts(pairs);
}

void slope_pairs_release(struct slope_pairs *pairs)
{
	free(pairs->runs);
	free(pairs->per_hour);
	free(pairs->slopes);
	free(pairs->parts);
	free(pairs->sorted);
	*pairs = (struct slope_pairs){0};
}

static void find_slopes(struct slope_pairs *pairs, const double *values)
{
	double *slopes = pairs->slopes;
	const double *per_hour = pairs->per_hour;

	for (size_t r = 0; r < pairs->run_count; r++) {
		const double *from = values + pairs->runs[r].from;
		const double *to = from + pairs->runs[r].apart;
		size_t count = pairs->runs[r].count;

		for (size_t i = 0; i < count; i++)
			slopes[i] = (to[i] - from[i]) * per_hour[i];
		slopes += count;
		per_hour += count;
	}
}

/* Gives S, and whether no two are equal. */
static double score_of(const struct slope_pairs *pairs, bool *is_strict)
{
	size_t rising = 0, falling = 0;

	for (size_t i = 0; i < pairs->count; i++) {
		rising += pairs->slopes[i] > 0;
		falling += pairs->slopes[i] < 0;
	}
	*is_strict = pairs->is_all && rising + falling == pairs->count;
	return (double)rising - (double)falling;
}

/* What equal values take from the variance: the sums of t(t-1) and t(t-1)(t-2). */
struct ties {
	double twos, threes;
};

/* Of values that are sorted. */
static struct ties ties_of(const double *sorted, size_t count)
{
	struct ties ties = {0};
	size_t first = 0;

	for (size_t i = 1; i <= count; i++) {
		double tied = (double)(i - first);

		if (i < count && !(sorted[i] > sorted[first]))
			continue;
		ties.twos += tied * (tied - 1);
		ties.threes += tied * (tied - 1) * (tied - 2);
		first = i;
	}
	return ties;
}

static struct ties count_ties(struct slope_pairs *pairs, const double *values, size_t count)
{
	memcpy(pairs->sorted, values, count * sizeof(*values));
	ranks_sort(pairs->sorted, count);
	return ties_of(pairs->sorted, count);
}

static double part_variance(const struct pair_part *part, double n, const struct ties *ties)
{
	double q, r = 0;

	if (n < 2)
		return 0;
	q = 1 - ties->twos / (n * (n - 1));
	if (n > 2)
		r = (1 - ties->threes / (n * (n - 1) * (n - 2))) / 3;
	return part->pair_count * q + r * (part->balance - 2 * part->pair_count);
}

static double variance_of(struct slope_pairs *pairs, const double *values, bool is_strict)
{
	const struct trend_plan *plan = pairs->plan;
	double variance = 0;

	for (size_t part = 0; part < plan->part_count; part++) {
		size_t from = plan->part_from[part], count = plan->part_from[part + 1] - from;
		struct ties ties = {0};

		if (!is_strict)
			ties = count_ties(pairs, values + from, count);
		variance += part_variance(&pairs->parts[part], (double)count, &ties);
	}
	return variance;
}

static double middle_of_slopes(const struct slope_pairs *pairs)
{
	return (pairs->slopes[(pairs->count - 1) / 2] + pairs->slopes[pairs->count / 2]) / 2;
}

/* How many slopes lie beyond each bound: the most for which (count - 2 k)^2 >= 1.96^2 var. */
static size_t beyond_bound(size_t count, double variance)
{
	size_t low = 0, high = count / 2;

	while (low < high) {
		size_t k = (low + high + 1) / 2;
		double left = (double)(count - 2 * k);

		if (left * left >= BOUND_SQUARED * variance)
			low = k;
		else
			high = k - 1;
	}
	return low;
}

static void find_middle(struct slope_pairs *pairs, struct slopes *slopes)
{
	size_t beyond = beyond_bound(pairs->count, slopes->variance);
	size_t low = beyond ? beyond - 1 : 0;
	size_t ranks[] = {low, (pairs->count - 1) / 2, pairs->count / 2, pairs->count - 1 - low};

	ranks_select(pairs->slopes, pairs->count, ranks, 4);
	slopes->low = pairs->slopes[ranks[0]];
	slopes->high = pairs->slopes[ranks[3]];
	slopes->middle = middle_of_slopes(pairs);
}

/* The same of all pairs of each part: distances that suit a period see only what rises in it. */
static void ask_all(struct slope_pairs *pairs, const double *values, struct slopes *slopes)
{
	const struct trend_plan *plan = pairs->plan;

	slopes->score = slopes->variance = 0;
	for (size_t part = 0; part < plan->part_count; part++) {
		size_t from = plan->part_from[part], count = plan->part_from[part + 1] - from;
		double n = (double)count, falls;
		struct pair_part all = {n * (n - 1) / 2, n * (n * n - 1) / 3};
		struct ties ties;

		memcpy(pairs->sorted, values + from, count * sizeof(*values));
		falls = ranks_count_falls(pairs->sorted, pairs->slopes, count);
		ties = ties_of(pairs->sorted, count);
		slopes->score += all.pair_count - ties.twos / 2 - 2 * falls;
		slopes->variance += part_variance(&all, n, &ties);
	}
}

void slope_pairs_judge(struct slope_pairs *pairs, const double *values, struct slopes *slopes)
{
	bool is_strict;

	*slopes = (struct slopes){0};
	if (!pairs->count)
		return;
	find_slopes(pairs, values);
	slopes->score = score_of(pairs, &is_strict);
	slopes->variance = variance_of(pairs, values, is_strict);
	find_middle(pairs, slopes);
	if (pairs->plan->count > PAIRS_ALL &&
		slopes->score * slopes->score > DOUBTFUL * slopes->variance)
		ask_all(pairs, values, slopes);
}

double slope_pairs_middle(struct slope_pairs *pairs, const double *values)
{
	size_t ranks[] = {(pairs->count - 1) / 2, pairs->count / 2};

	if (!pairs->count)
		return 0;
	find_slopes(pairs, values);
	ranks_select(pairs->slopes, pairs->count, ranks, 2);
	return middle_of_slopes(pairs);
}
