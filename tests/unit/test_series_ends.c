#include "tests/unit/t.h"

#include "diff/match/row_series.h"

#define COUNT 6

static const struct block_totals of[COUNT] = {
	{1, 100, 8}, {4, 900, 32}, {2, 150, 16}, /* snapshots of one process */
	{9, 40, 72}, {5, 70, 40}, /* snapshots of the next process */
	{3, 1000, 24}, /* a process with one snapshot */
};
static const uint32_t parts[COUNT] = {0, 0, 0, 1, 1, 2};

static void check(struct block_totals got, uint64_t blocks, uint64_t bytes, uint64_t overhead)
{
	assert_int_equal(got.block_count, blocks);
	assert_int_equal(got.requested_bytes, bytes);
	assert_int_equal(got.overhead_bytes, overhead);
}

TEST(one_part_is_first_and_last)
{
	const struct trend_axis axis = {.count = COUNT};

	check(series_first(&axis, of), 1, 100, 8);
	check(series_last(&axis, of), 3, 1000, 24);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(axis_begins(&axis, i), i == 0);
		assert_int_equal(axis_ends(&axis, i), i == COUNT - 1);
	}
}

/* OLD is the sum over the processes of their first snapshots, NEW that of their last. A single
 * snapshot is both, so its growth is 0. */
TEST(of_parts_each_has_its_ends)
{
	const struct trend_axis axis = {.count = COUNT, .parts = parts};

	check(series_first(&axis, of), 1 + 9 + 3, 100 + 40 + 1000, 8 + 72 + 24);
	check(series_last(&axis, of), 2 + 5 + 3, 150 + 70 + 1000, 16 + 40 + 24);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(axis_begins(&axis, i), i == 0 || i == 3 || i == 5);
		assert_int_equal(axis_ends(&axis, i), i == 2 || i == 4 || i == 5);
	}
}

TEST(swing_is_that_of_part_where_it_is_most)
{
	const struct trend_axis one = {.count = COUNT}, many = {.count = COUNT, .parts = parts};
	struct block_totals swing = series_swing(&one, of);

	assert_int_equal(swing.requested_bytes, 1000 - 40);
	assert_int_equal(swing.block_count, 9 - 1);
	swing = series_swing(&many, of);
	assert_int_equal(swing.requested_bytes, 900 - 100);
	assert_int_equal(swing.block_count, 9 - 5);
}

TEST(sums_of_many_parts_stop_where_signed_number_does)
{
	static const struct block_totals huge[] = {{1, INT64_MAX, 0}, {1, INT64_MAX, 0}};
	static const uint32_t two[] = {0, 1};
	const struct trend_axis axis = {.count = 2, .parts = two};

	check(series_first(&axis, huge), 2, INT64_MAX, 0);
	check(series_last(&axis, huge), 2, INT64_MAX, 0);
}

/* The parts have 3, 2 and 1 snapshots. */
TEST(time_passes_where_there_is_trend)
{
	static const int64_t in_first[] = {5, 5, 6, 7, 7, 8}, in_second[] = {5, 5, 5, 6, 7, 8};
	static const uint32_t pairs[] = {0, 0, 1, 1, 2, 2};
	struct trend_axis axis = {.count = COUNT, .parts = parts};

	assert_int_equal(axis_longest(&axis), 3);
	assert_false(axis_time_passes(&axis));
	axis.times_ms = in_first;
	assert_true(axis_time_passes(&axis));
	axis.times_ms = in_second;
	assert_false(axis_time_passes(&axis));
	axis.parts = pairs; /* all parts are short, so every part counts */
	assert_int_equal(axis_longest(&axis), 2);
	assert_true(axis_time_passes(&axis));
	axis.parts = NULL;
	assert_int_equal(axis_longest(&axis), COUNT);
	assert_true(axis_time_passes(&axis));
}

/* Checks snapshots of one process, or of two processes. */
static bool has_bounds(size_t first, size_t second)
{
	uint32_t second_of[8] = {0};
	struct trend_axis axis = {.count = first + second, .parts = second_of};

	for (size_t i = first; i < first + second; i++)
		second_of[i] = 1;
	return axis_has_bounds(&axis);
}

/* A chance of 2 in 4! = 24, or in 3! 3! = 36, is more than 5 in 100. A chance of 2 in 5!, or in 4!
 * 2! = 48, is less. */
TEST(bounds_need_snapshots_enough)
{
	assert_false(has_bounds(1, 0));
	assert_false(has_bounds(4, 0));
	assert_true(has_bounds(5, 0));
	assert_true(has_bounds(8, 0));
	assert_false(has_bounds(3, 3));
	assert_true(has_bounds(4, 2));
	assert_true(has_bounds(2, 4));
}

TEST(blocks_count_where_bytes_are_always_same)
{
	const struct trend_axis axis = {.count = 3};
	static const uint32_t second_of[] = {0, 1, 1};
	const struct trend_axis restarted = {.count = 3, .parts = second_of};
	struct block_totals same[3] = {{1, 50, 8}, {1, 50, 9}, {1, 50, 8}};

	assert_false(series_by_blocks(&axis, NULL));
	assert_false(series_by_blocks(&axis, same));
	same[2].block_count = 2;
	assert_true(series_by_blocks(&axis, same));
	same[1].requested_bytes = 51;
	assert_false(series_by_blocks(&axis, same));
	same[2].requested_bytes = 51;
	assert_false(series_by_blocks(&axis, same));
	assert_true(series_by_blocks(&restarted, same));
}
