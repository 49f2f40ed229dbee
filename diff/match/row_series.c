/* Series of rows: snapshots at the ends of parts, their sums, and the trends of many series.
 * Several threads judge the series. */
#include "diff/match/row_series.h"

#include <stdbool.h>

#include <stdatomic.h>

#include "core/base/memory.h"
#include "core/base/os.h"

bool axis_ends(const struct trend_axis *axis, size_t snapshot)
{
	return snapshot + 1 == axis->count || axis_begins(axis, snapshot + 1);
}

size_t axis_longest(const struct trend_axis *axis)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < axis->count; i++) {
		run = axis_begins(axis, i) ? 1 : run + 1;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* Bounds exist if the true slope lies outside all observed slopes with a probability of at most 5
 * percent. After the trend is removed, all orders of the snapshots are equally likely. The true
 * slope lies outside only in 2 of these orders: if all parts rise throughout, or if all parts fall
 * throughout. A part of n snapshots has n! orders. The numbers of orders of several parts are
 * multiplied. */
bool axis_has_bounds(const struct trend_axis *axis)
{
	double orders = 1, n = 0;

	for (size_t i = 0; i < axis->count && orders * 0.05 < 2; i++) {
		n = axis_begins(axis, i) ? 1 : n + 1;
		orders *= n;
	}
	return orders * 0.05 >= 2;
}

bool axis_time_passes(const struct trend_axis *axis)
{
	size_t longest = axis_longest(axis), first = 0;
	size_t enough = longest < AXIS_TREND_MIN ? longest : AXIS_TREND_MIN;

	for (size_t i = 0; axis->times_ms && i < axis->count; i++) {
		first = axis_begins(axis, i) ? i : first;
		if (axis_ends(axis, i) && i + 1 - first >= enough &&
			axis->times_ms[i] > axis->times_ms[first])
			return true;
	}
	return false;
}

/* Adds, limiting the result to INT64_MAX. The sums of one snapshot are below this limit
 * (dump_sums.h), but sums over many processes may exceed it. */
static uint64_t plus(uint64_t a, uint64_t b)
{
	return b > INT64_MAX - a ? INT64_MAX : a + b;
}

static struct block_totals ends_sum(const struct trend_axis *axis, const struct block_totals *sums,
	bool (*is_wanted)(const struct trend_axis *axis, size_t snapshot))
{
	struct block_totals sum = {0};

	for (size_t i = 0; i < axis->count; i++) {
		if (!is_wanted(axis, i))
			continue;
		sum.block_count = plus(sum.block_count, sums[i].block_count);
		sum.requested_bytes = plus(sum.requested_bytes, sums[i].requested_bytes);
		sum.overhead_bytes = plus(sum.overhead_bytes, sums[i].overhead_bytes);
	}
	return sum;
}

struct block_totals series_first(const struct trend_axis *axis, const struct block_totals *sums)
{
	return axis->parts ? ends_sum(axis, sums, axis_begins) : sums[0];
}

struct block_totals series_last(const struct trend_axis *axis, const struct block_totals *sums)
{
	return axis->parts ? ends_sum(axis, sums, axis_ends) : sums[axis->count - 1];
}

/* Lowest and highest value of the part so far. */
struct judge_range {
	uint64_t low, high;
};

static void range_extend(struct judge_range *range, uint64_t value, bool is_first, uint64_t *swing)
{
	if (is_first || value < range->low)
		range->low = value;
	if (is_first || value > range->high)
		range->high = value;
	if (range->high - range->low > *swing)
		*swing = range->high - range->low;
}

struct block_totals series_swing(const struct trend_axis *axis, const struct block_totals *sums)
{
	struct judge_range bytes = {0}, blocks = {0};
	struct block_totals swing = {0};

	for (size_t i = 0; i < axis->count; i++) {
		bool is_first = axis_begins(axis, i);

		range_extend(&bytes, sums[i].requested_bytes, is_first, &swing.requested_bytes);
		range_extend(&blocks, sums[i].block_count, is_first, &swing.block_count);
	}
	return swing;
}

bool series_by_blocks(const struct trend_axis *axis, const struct block_totals *sums)
{
	struct block_totals swing = sums ? series_swing(axis, sums) : (struct block_totals){0};

	return !swing.requested_bytes && swing.block_count;
}

#define THREADS_MAX 8
#define SERIES_AT_ONCE 256

struct judging {
	const struct trend_axis *axis;
	size_t count;
	void (*judge_one)(void *ctx, size_t index, struct trend_judge *judge);
	void *ctx;
	atomic_size_t next;
};

static void judge_some(void *ctx, unsigned number)
{
	struct judging *judging = ctx;
	struct trend_judge *judge = trend_judge_new(judging->axis);
	size_t from;

	(void)number;
	while ((from = atomic_fetch_add(&judging->next, SERIES_AT_ONCE)) < judging->count) {
		for (size_t i = from; i < from + SERIES_AT_ONCE && i < judging->count; i++)
			judging->judge_one(judging->ctx, i, judge);
	}
	trend_judge_free(judge);
}

void series_judge_all(const struct trend_axis *axis, size_t count,
	void (*judge_one)(void *ctx, size_t index, struct trend_judge *judge), void *ctx)
{
	struct judging judging = {.axis = axis, .count = count, .judge_one = judge_one, .ctx = ctx};
	size_t pieces = count / SERIES_AT_ONCE + 1;
	unsigned threads = thread_cores();

	threads = threads < THREADS_MAX ? threads : THREADS_MAX;
	threads = threads < pieces ? threads : (unsigned)pieces;
	thread_run(threads, judge_some, &judging);
}

static void judge_row(void *ctx, size_t index, struct trend_judge *judge)
{
	struct comparison *comparison = ctx;

	trend_judge(judge, comparison->rows[index].totals, &comparison->trends[index]);
}

void series_judge_rows(struct comparison *comparison)
{
	comparison->trends = xcalloc(comparison->row_count, sizeof(*comparison->trends));
	series_judge_all(comparison->axis, comparison->row_count, judge_row, comparison);
}
