#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "diff/trend/trend_parts.h"

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

#define FEW 12
#define MANY 300
#define SAMPLE 31
#define MARGIN 3

static void sort_few(double *values, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		double value = values[i];
		size_t to = i;

		for (; to && values[to - 1] > value; to--)
			values[to] = values[to - 1];
		values[to] = value;
	}
}

/* Shell's method with Ciura's gaps (2001): qsort's is another one on each system, and slower. */
void ranks_sort(double *values, size_t count)
{
	static const size_t gaps[] = {16001, 7111, 3161, 1405, 701, 301, 132, 57, 23, 10, 4, 1};

	for (size_t g = 0; g < sizeof(gaps) / sizeof(*gaps); g++) {
		size_t gap = gaps[g];

		for (size_t i = gap; i < count; i++) {
			double value = values[i];
			size_t to = i;

			for (; to >= gap && values[to - gap] > value; to -= gap)
				values[to] = values[to - gap];
			values[to] = value;
		}
	}
}

/* Those below the pivot to the front, without a branch that cannot be foreseen. */
static size_t put_below(double *values, size_t count, double pivot)
{
	size_t below = 0;

	for (size_t i = 0; i < count; i++) {
		double value = values[i];

		values[i] = values[below];
		values[below] = value;
		below += value < pivot;
	}
	return below;
}

static size_t put_equal(double *values, size_t count, double pivot)
{
	size_t equal = 0;

	for (size_t i = 0; i < count; i++) {
		double value = values[i];

		values[i] = values[equal];
		values[equal] = value;
		equal += value <= pivot;
	}
	return equal;
}

/* Places that no one who makes a series would guess easily, but always the same. */
static double any_of(const double *values, size_t count, uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return values[(*seed >> 33) % count];
}

static double pivot_of(const double *values, size_t count, uint64_t *seed)
{
	double of[] = {any_of(values, count, seed), any_of(values, count, seed),
		any_of(values, count, seed)};

	sort_few(of, 3);
	return of[1];
}

static void select_end(double *values, size_t count, size_t rank)
{
	size_t found = 0;
	double value;

	for (size_t i = 1; i < count; i++) {
		if (rank ? values[i] > values[found] : values[i] < values[found])
			found = i;
	}
	value = values[found];
	values[found] = values[rank];
	values[rank] = value;
}

static void select_one(double *values, size_t count, size_t rank, uint64_t *seed)
{
	while (count > FEW && rank && rank + 1 < count) {
		double pivot = pivot_of(values, count, seed);
		size_t off = put_below(values, count, pivot);

		if (rank < off) {
			count = off;
			continue;
		}
		/* Many may be equal, and then they go all at once. */
		if (off < count / 8) {
			off += put_equal(values + off, count - off, pivot);
			if (rank < off)
				return;
		}
		values += off;
		count -= off;
		rank -= off;
	}
	if (count > FEW)
		select_end(values, count, rank);
	else
		sort_few(values, count);
}

/* The middle one parts the rest in two, and each of the others is in one of them alone. */
static void select_all(double *values, size_t count, const size_t *ranks, size_t rank_count,
	size_t before, uint64_t *seed)
{
	size_t middle = rank_count / 2;
	size_t rank;

	if (!rank_count)
		return;
	rank = ranks[middle] - before;
	select_one(values, count, rank, seed);
	while (middle + 1 < rank_count && ranks[middle + 1] == rank + before)
		middle++;
	if (middle + 1 < rank_count)
		select_all(values + rank + 1, count - rank - 1, ranks + middle + 1,
			rank_count - middle - 1, before + rank + 1, seed);
	for (middle = rank_count / 2; middle && ranks[middle - 1] == rank + before;)
		middle--;
	select_all(values, rank, ranks, middle, before, seed);
}

/*
 * Of very many, a sample tells between what the ranks most likely are (Floyd and Rivest 1975): what
 * is below and above goes at once. Gives what is left, and how many were below it.
 */
static size_t narrow(double *values, size_t *count, size_t low, size_t high, uint64_t *seed)
{
	double sample[SAMPLE];
	size_t from = low * SAMPLE / *count, to = high * SAMPLE / *count + 1 + MARGIN;
	size_t below = 0, within;

	for (size_t i = 0; i < SAMPLE; i++)
		sample[i] = any_of(values, *count, seed);
	sort_few(sample, SAMPLE);
	if (from >= MARGIN)
		below = put_below(values, *count, sample[from - MARGIN]);
	if (below > low)
		return 0;
	*count -= below;
	if (to >= SAMPLE)
		return below;
	within = put_equal(values + below, *count, sample[to]);
	if (within > high - below)
		*count = within;
	return below;
}

void ranks_select(double *values, size_t count, const size_t *ranks, size_t rank_count)
{
	uint64_t seed = 0x9e3779b97f4a7c15u;
	size_t below = 0;

	if (count >= MANY)
		below = narrow(values, &count, ranks[0], ranks[rank_count - 1], &seed);
	select_all(values + below, count, ranks, rank_count, below, &seed);
}

/* Of two runs next to each other, both sorted. */
static double merge(const double *values, double *to, size_t first, size_t count)
{
	double falls = 0;
	size_t a = 0, b = first;

	for (size_t i = 0; i < count; i++) {
		if (a < first && (b == count || values[a] <= values[b])) {
			to[i] = values[a++];
			continue;
		}
		to[i] = values[b++];
		falls += (double)(first - a);
	}
	return falls;
}

double ranks_count_falls(double *values, double *scratch, size_t count)
{
	double falls = 0;

	for (size_t run = 1; run < count; run *= 2) {
		for (size_t from = 0; from < count; from += 2 * run) {
			size_t left = count - from, both = left < 2 * run ? left : 2 * run;

			falls +=
				merge(values + from, scratch + from, run < both ? run : both, both);
		}
		memcpy(values, scratch, count * sizeof(*values));
	}
	return falls;
}
