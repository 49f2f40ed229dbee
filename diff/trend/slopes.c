/* Slopes between the points of a series: merges snapshots into points, and computes Mann and
 * Kendall's score and the median slope with its bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "diff/trend/trend_parts.h"

#define MS_PER_HOUR 3600000.0
/* 95 percent of the values of a normal distribution are at most this many standard deviations from
 * the mean. */
#define BOUND 1.959964
/* Minimum number of points at the end of a part. Fewer points are too often in order by chance. */
#define END_LEAST 4

/* Returns the hours between two snapshots, or 0 if the clock was set back. */
static double hours_between(const struct trend_axis *axis, size_t from, size_t to)
{
	if (!axis->times_ms)
		return (double)(to - from);
	if (axis->times_ms[to] <= axis->times_ms[from])
		return 0;
	return (double)((uint64_t)axis->times_ms[to] - (uint64_t)axis->times_ms[from]) /
	       MS_PER_HOUR;
}

/* Merges neighbouring snapshots into points. If there are many snapshots, the number of snapshots
 * per point alternates between two values. With a constant number, a sawtooth of a similar period
 * would become a slow wave. The last snapshot is a separate point, so that blocks freed at the end
 * are noticed. */
static void add_part(
	struct timeline *timeline, const struct trend_axis *axis, size_t from, size_t to)
{
	size_t steps = to - from - 1, most = steps < POINTS_MAX ? steps : POINTS_MAX - 1;
	size_t first = timeline->count;
	double latest = 0;

	for (size_t point = 1, i = from; i < to; point++) {
		size_t begin = i;
		double sum = 0, mean;

		for (; i < to; i++) {
			double hours = hours_between(axis, from, i);

			if (i > begin && i >= from + point * steps / most && hours > latest)
				break;
			latest = hours > latest ? hours : latest;
			sum += latest;
		}
		/* After rounding, the mean must not reach the time of the next point. */
		mean = sum / (double)(i - begin);
		timeline->snapshot_from[timeline->count] = begin;
		timeline->hours[timeline->count++] = mean < latest ? mean : latest;
	}
	if (timeline->count - first > timeline->most_points) {
		timeline->most_points = timeline->count - first;
		timeline->longest = timeline->part_count;
	}
	timeline->part_from[timeline->part_count++] = first;
}

static size_t points_of(const struct timeline *timeline, size_t part)
{
	return timeline->part_from[part + 1] - timeline->part_from[part];
}

static size_t pairs_of(size_t points)
{
	return points * (points - 1) / 2;
}

static void add_pairs(struct timeline *timeline)
{
	size_t count = 1, pair = 0;

	for (size_t part = 0; part < timeline->part_count; part++)
		count += pairs_of(points_of(timeline, part));
	timeline->per_hour = xcalloc(count, sizeof(*timeline->per_hour));
	timeline->slopes = xcalloc(count, sizeof(*timeline->slopes));
	for (size_t part = 0; part < timeline->part_count; part++) {
		size_t to = timeline->part_from[part + 1];

		for (size_t i = timeline->part_from[part]; i < to; i++) {
			for (size_t k = i + 1; k < to; k++)
				timeline->per_hour[pair++] =
					1 / (timeline->hours[k] - timeline->hours[i]);
		}
	}
}

void timeline_init(struct timeline *timeline, const struct trend_axis *axis)
{
	size_t most = axis->count + 1;

	*timeline = (struct timeline){
		.part_from = xcalloc(most, sizeof(*timeline->part_from)),
		.snapshot_from = xcalloc(most, sizeof(*timeline->snapshot_from)),
		.hours = xcalloc(most, sizeof(*timeline->hours)),
		.moves = xcalloc(most, sizeof(*timeline->moves)),
	};
	for (size_t from = 0, to; from < axis->count; from = to) {
		for (to = from + 1; to < axis->count && !axis_begins(axis, to);)
			to++;
		add_part(timeline, axis, from, to);
	}
	timeline->part_from[timeline->part_count] = timeline->count;
	timeline->snapshot_from[timeline->count] = axis->count;
	add_pairs(timeline);
}

void timeline_release(struct timeline *timeline)
{
	free(timeline->part_from);
	free(timeline->snapshot_from);
	free(timeline->hours);
	free(timeline->per_hour);
	free(timeline->slopes);
	free(timeline->moves);
	*timeline = (struct timeline){0};
}

/* Moves values below the pivot to the front, and with `with_equal` also values equal to the pivot.
 * Returns the number of these values. To be fast, has no branch that is hard to predict. */
static size_t partition(double *values, size_t count, double pivot, bool with_equal)
{
	size_t below = 0;

	for (size_t i = 0; i < count; i++) {
		double value = values[i];

		values[i] = values[below];
		values[below] = value;
		below += (value < pivot) | (with_equal & (value <= pivot));
	}
	return below;
}

/* Returns one of the values, chosen pseudo-randomly. The choice is reproducible, but crafted input
 * can hardly exploit it. */
static double any_value(const double *values, size_t count, uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return values[(*seed >> 33) % count];
}

static double pivot_of(const double *values, size_t count, uint64_t *seed)
{
	double a = any_value(values, count, seed), b = any_value(values, count, seed);
	double c = any_value(values, count, seed), low = a < b ? a : b, high = a < b ? b : a;

	return c < low ? low : c > high ? high : c;
}

/* Returns the value that would be at index `rank` if the values were sorted. Moves lower values
 * before this index and higher values after it. */
static double select_rank(double *values, size_t count, size_t rank)
{
	uint64_t seed = 0x9e3779b97f4a7c15u;

	for (;;) {
		double pivot = pivot_of(values, count, &seed);
		size_t done = partition(values, count, pivot, false);

		if (rank < done) {
			count = done;
			continue;
		}
		done += partition(values + done, count - done, pivot, true);
		if (rank < done)
			return pivot;
		values += done;
		count -= done;
		rank -= done;
	}
}

static double select_middle(double *values, size_t count)
{
	double high = select_rank(values, count, count / 2), low = values[0];

	if (count % 2)
		return high;
	for (size_t i = 1; i < count / 2; i++)
		low = values[i] > low ? values[i] : low;
	return (low + high) / 2;
}

/* Returns the sum that corrects the variance for ties: t (t - 1) (2 t + 5) for each group of t
 * equal values. */
static double ties_of(const double *values, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		double others = -1;

		for (size_t k = 0; k < count; k++)
			others += values[k] >= values[i] && values[k] <= values[i];
		sum += others * (2 * others + 7);
	}
	return sum;
}

/* Adds all pairs of the last `count` points of a part to the slopes, the score and the variance.
 * Returns the number of pairs. */
static size_t add_slopes(struct slopes *slopes, const double *values, size_t count,
	const double *per_hour, double *at)
{
	size_t rising = 0, falling = 0;
	double n = (double)count;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = i + 1; k < count; k++) {
			double slope = (values[k] - values[i]) * *per_hour++;

			*at++ = slope;
			rising += slope > 0;
			falling += slope < 0;
		}
	}
	slopes->score += (double)rising - (double)falling;
	slopes->variance += n * (n - 1) * (2 * n + 5) / 18;
	if (rising + falling < pairs_of(count))
		slopes->variance -= ties_of(values, count) / 18;
	return pairs_of(count);
}

/* Fills timeline->slopes. Returns the number of slopes. */
static size_t find_slopes(
	struct timeline *timeline, const double *values, bool is_end, struct slopes *slopes)
{
	const double *per_hour = timeline->per_hour;
	size_t count = 0;

	*slopes = (struct slopes){0};
	for (size_t part = 0; part < timeline->part_count; part++) {
		size_t n = points_of(timeline, part), end = n;

		if (is_end && n > END_LEAST)
			end = n / 3 > END_LEAST ? n / 3 : END_LEAST;
		per_hour += pairs_of(n);
		if (timeline->moves[part])
			count += add_slopes(slopes, values + timeline->part_from[part + 1] - end,
				end, per_hour - pairs_of(end), timeline->slopes + count);
	}
	return count;
}

/* Returns the number of slopes beyond each bound: the largest k with count - 2 k >= 1.96 standard
 * deviations. */
static size_t beyond_bound(size_t count, double variance)
{
	size_t beyond = 0;

	for (; beyond < count / 2; beyond++) {
		double left = (double)(count - 2 * (beyond + 1));

		if (left * left < BOUND * BOUND * variance)
			break;
	}
	return beyond;
}

void slopes_find(struct timeline *timeline, const double *values, struct slopes *slopes)
{
	size_t count = find_slopes(timeline, values, false, slopes), middle = count / 2;
	size_t beyond = beyond_bound(count, slopes->variance);
	size_t rank = beyond ? beyond - 1 : 0;
	double *at = timeline->slopes;

	if (!count)
		return;
	slopes->middle = select_middle(at, count);
	slopes->low = rank < middle ? select_rank(at, middle, rank) : slopes->middle;
	slopes->high = select_rank(at + middle, count - middle, count - 1 - rank - middle);
}

void slopes_find_end(struct timeline *timeline, const double *values, struct slopes *slopes)
{
	size_t count = find_slopes(timeline, values, true, slopes);

	if (count)
		slopes->middle = select_middle(timeline->slopes, count);
}

bool slopes_rise(const struct slopes *slopes, double deviations)
{
	double score = slopes->score - 1;

	return score > 0 && score * score >= deviations * deviations * slopes->variance;
}

bool slopes_can_rise(const struct timeline *timeline, double deviations)
{
	struct slopes most = {0};

	for (size_t part = 0; part < timeline->part_count; part++) {
		double n = (double)points_of(timeline, part);

		if (!timeline->moves[part])
			continue;
		most.score += n * (n - 1) / 2;
		most.variance += n * (n - 1) * (2 * n + 5) / 18;
	}
	return slopes_rise(&most, deviations);
}
