#include "diff/trend/ranks.h"

#include <string.h>

#include <stdint.h>

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
