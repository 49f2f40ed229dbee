/* A row's trend must not depend on processes in which the row does not change. Rows are judged in
 * batches, and no row is skipped. */
#include "tests/unit/t.h"

#include "diff/match/row_series.h"
#include "tests/unit/trend_made.h"

/* Series of part_count processes with `each` snapshots. Some processes do not use the row. */
struct life {
	size_t part_count, each;
	uint64_t moving; /* one bit per process: the row changes in it */
	double rest; /* amount in the other processes, and at the start of the moving ones */
	double noise;
};

static double of_life(struct made *made, const struct life *life, size_t part, size_t at)
{
	double leak = (double)at / 10;

	if (!(life->moving >> part & 1))
		return life->rest;
	return life->rest + 0.1 + leak + life->noise * made_noise(made);
}

static void fill_life(struct made *made, const struct life *life)
{
	made_times(made, life->part_count * life->each, true);
	for (size_t i = 0; i < made->count; i++) {
		made->parts[i] = (uint32_t)(i / life->each);
		made_write(made, i, of_life(made, life, i / life->each, i % life->each));
	}
}

static void leave_out(struct made *made, const struct life *life)
{
	size_t count = 0;

	for (size_t i = 0; i < made->count; i++) {
		if (!(life->moving >> made->parts[i] & 1))
			continue;
		made->times_ms[count] = made->times_ms[i];
		made->parts[count] = made->parts[i];
		made->of[count++] = made->of[i];
	}
	made->count = count;
}

static bool is_near(double a, double b)
{
	return a - b <= 1 && b - a <= 1;
}

/* Asserts that two trends are equal, apart from rounding. */
static void assert_same(const struct trend *a, const struct trend *b)
{
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->net_bytes, b->net_bytes);
	assert_true(is_near(a->bytes_per_hour, b->bytes_per_hour));
	assert_true(is_near(a->low_bytes_per_hour, b->low_bytes_per_hour));
	assert_true(is_near(a->high_bytes_per_hour, b->high_bytes_per_hour));
}

TEST(leak_of_some_processes_grows)
{
	static const struct life lives[] = {
		{2, 24, 0x1, 0, 0},
		{2, 24, 0x2, 0, 0},
		{2, 24, 0x1, 0.5, 0},
		{3, 16, 0x3, 0, 0},
		{3, 16, 0x4, 0, 0},
		{3, 4, 0x3, 0, 0},
		{3, 4, 0x5, 1, 0},
		{12, 4, 0x111, 0, 0},
		{2, 24, 0x1, 0, 0.02},
		{3, 16, 0x3, 0, 0.02},
		{4, 12, 0x7, 0, 0.02},
		{4, 12, 0x3, 0, 0.02},
		{10, 20, 0x85, 0, 0.05},
		{2, 500, 0x1, 0, 0.05},
	};
	static struct made made;

	for (size_t i = 0; i < sizeof(lives) / sizeof(*lives) * 20; i++) {
		const struct life *life = &lives[i / 20];
		struct trend with, without;

		made.seed = i;
		fill_life(&made, life);
		with = made_judge(&made);
		leave_out(&made, life);
		without = made_judge(&made);
		if (with.verdict != TREND_GROWS)
			fail_msg("%zu parts of %zu, rest %g: %s", life->part_count, life->each,
				life->rest, trend_verdict_name(with.verdict));
		assert_same(&with, &without);
		/* 0.1 units every half hour */
		assert_true(with.bytes_per_hour > 0.19 * MADE_UNIT);
		assert_true(with.bytes_per_hour < 0.21 * MADE_UNIT);
	}
}

static uint64_t any_parts(struct made *made)
{
	uint64_t few = made_number(made);

	return few & made_number(made) & 0xff;
}

/* One judge for many series. Each series has a different set of unchanging processes. */
TEST(judge_remembers_nothing)
{
	static struct made made;
	static int64_t times_ms[200];
	static uint32_t parts[200];
	struct trend_axis axis = {times_ms, parts, 200};
	struct life life = {8, 25, 0xff, 0, 0.05};
	struct trend_judge *judge;

	fill_life(&made, &life);
	memcpy(times_ms, made.times_ms, sizeof(times_ms));
	memcpy(parts, made.parts, sizeof(parts));
	judge = trend_judge_new(&axis);
	assert_non_null(judge);
	for (size_t i = 0; i < 300; i++) {
		struct trend with, without;

		life.moving = any_parts(&made);
		fill_life(&made, &life);
		trend_judge(judge, made.of, &with);
		if (life.moving) {
			assert_int_equal(with.verdict, TREND_GROWS);
			leave_out(&made, &life);
		}
		without = made_judge(&made);
		assert_same(&with, &without);
	}
	trend_judge_free(judge);
}

TEST(any_parts_have_room)
{
	static struct made made;

	for (uint64_t seed = 0; seed < 60; seed++) {
		struct trend trend;
		uint32_t part = 0;

		made.seed = seed;
		made_times(&made, 1 + (size_t)(made_chance(&made) * 400), true);
		for (size_t i = 0; i < made.count; i++) {
			part += made_chance(&made) < 0.04;
			made.parts[i] = part;
			made_write(&made, i, part % 3 ? made_chance(&made) : 1);
		}
		trend = made_judge(&made);
		assert_true(trend.low_bytes_per_hour <= trend.bytes_per_hour);
		assert_true(trend.bytes_per_hour <= trend.high_bytes_per_hour);
	}
}

/* Blocks of 0 bytes accumulate in two processes, one with 1000 bytes and one with 2000. */
TEST(bytes_that_only_restart_changes_do_not_hide_blocks)
{
	static struct made made;
	struct trend trend;

	made_times(&made, 24, true);
	for (size_t i = 0; i < made.count; i++) {
		made.parts[i] = i >= 12;
		made.of[i] = (struct block_totals){1 + i % 12, i < 12 ? 1000 : 2000, 0};
	}
	trend = made_judge(&made);
	assert_int_equal(trend.verdict, TREND_GROWS);
	assert_float_equal(trend.blocks_per_hour, 2, 1e-9); /* one block each half hour */
	assert_float_equal(trend.bytes_per_hour, 0, 0);
	assert_int_equal(trend.net_blocks, 22);
}

/* ---------------------------------------------------------------- many rows */

#define SNAPSHOTS 12

/* Returns row i's bytes at each snapshot. The row rises, returns to its start, or falls, by its own
 * amount. */
static uint64_t bytes_of(size_t row, size_t snapshot)
{
	uint64_t step = 100 + row;

	switch (row % 3) {
	case 0: return step * snapshot;
	case 1: return step * (snapshot % 2);
	default: return step * (SNAPSHOTS - snapshot);
	}
}

static void check_trend(const struct trend *trend, size_t number)
{
	static const enum trend_verdict verdicts[] = {TREND_GROWS, TREND_RETURNS, TREND_SHRINKS};
	int64_t net = (int64_t)(bytes_of(number, SNAPSHOTS - 1) - bytes_of(number, 0));

	if (trend->verdict != verdicts[number % 3] || trend->net_bytes != net)
		fail_msg("row %zu: %s, %lld", number, trend_verdict_name(trend->verdict),
			(long long)trend->net_bytes);
}

static void check_rows(size_t count)
{
	struct trend_axis axis = {.count = SNAPSHOTS};
	struct comparison comparison = {.dump_count = SNAPSHOTS, .axis = &axis, .row_count = count};
	struct block_totals *sums = calloc(count * SNAPSHOTS + 1, sizeof(*sums));

	comparison.rows = calloc(count + 1, sizeof(*comparison.rows));
	assert_non_null(sums);
	assert_non_null(comparison.rows);
	for (size_t i = 0; i < count; i++) {
		comparison.rows[i].totals = &sums[i * SNAPSHOTS];
		for (size_t k = 0; k < SNAPSHOTS; k++)
			comparison.rows[i].totals[k] = (struct block_totals){1, bytes_of(i, k), 0};
	}
	series_judge_rows(&comparison);
	for (size_t i = 0; i < count; i++)
		check_trend(row_trend(&comparison, &comparison.rows[i]), i);
	free(comparison.rows);
	free(comparison.trends);
	free(sums);
}

TEST(all_rows_are_judged_however_many)
{
	for (size_t count = 250; count < 262; count++)
		check_rows(count);
	check_rows(0);
	check_rows(1);
	check_rows(512);
	check_rows(3001);
}
