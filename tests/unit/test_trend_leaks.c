#include "tests/unit/t.h"

#include <math.h>

#include "tests/unit/trend_made.h"

COURSE(line, 1 + 2 * AT)
COURSE(line_from_nothing, 0.001 * AT)
COURSE(line_with_noise, 3 + 2 * AT + 0.1 * made_noise(made))

/* In total the leak is three standard deviations of the noise. */
COURSE(slow_under_noise, 3 + 0.6 * AT + 0.2 * made_noise(made))
COURSE(after_a_jump, (at >= 2 ? 3 : 0) + AT + 0.02 * made_noise(made) + 0.1)
COURSE(slow_after_a_jump, (at >= 1 ? 3 : 0) + 0.5 * AT)
COURSE(after_a_fill, 2 * (1 - made_half(AT / 0.05)) + AT + 0.02 * made_noise(made) + 0.1)
COURSE(after_a_ramp, 2 * (AT < 0.25 ? AT * 4 : 1) + AT + 0.02 * made_noise(made) + 0.1)
COURSE_BY(that_begins_late, 0.3 + 0.3 * made->chance[0], AT > x ? 1 + AT - x : 1)

/* Leaks a block of a megabyte every fifth snapshot. */
COURSE(stairs, 1 + 0.1 * floor(((double)at + floor(5 * made->chance[0])) / 5))
COURSE(stairs_with_noise, stairs(made, at) + 0.01 * made_noise(made))

/* Six to nine teeth, each half as high as the total leak. */
COURSE_BY(under_teeth, (double)made->count / (6 + 3 * made->chance[0]),
	1 + made_tooth(made, at, x) + 2 * AT)

/* The teeth are as high as the leak. */
COURSE_BY(under_high_teeth, (double)made->count / (6 + 3 * made->chance[0]),
	1 + made_tooth(made, at, x) + AT)

/* A week's nightly jobs; none of them runs at the end. */
COURSE(seven_nights,
	3 + (double)(size_t)(AT * 7 + 0.1 + 0.8 * made->chance[0]) + 0.03 * made_noise(made))
COURSE_BY(that_becomes_worse, 0.3 + 0.4 * made->chance[0],
	3 + 3 * AT + (AT > x ? 8 * (AT - x) : 0) + 0.2 * made_noise(made))

/* About twenty jobs at random times. Each job leaks between 0 and twice the average. */
static double by_jobs(struct made *made, size_t at)
{
	double most = 20.0 / (double)made->count;

	(void)at;
	made->state += made_chance(made) < most ? made_chance(made) : 0;
	return 1 + made->state;
}

TEST(every_leak_grows)
{
	static const struct truth truths[] = {
		{"line", line, TREND_GROWS, 12, 0},
		{"line from nothing", line_from_nothing, TREND_GROWS, 12, 0},
		{"line with noise", line_with_noise, TREND_GROWS, 12, 4},
		{"slow under noise", slow_under_noise, TREND_GROWS, 200, 4},
		{"after a jump", after_a_jump, TREND_GROWS, 12, 12},
		{"slow after a jump", slow_after_a_jump, TREND_GROWS, 12, 0},
		{"after a fill", after_a_fill, TREND_GROWS, 12, 12},
		{"after a ramp", after_a_ramp, TREND_GROWS, 12, 12},
		{"that begins late", that_begins_late, TREND_GROWS, 12, 16},
		{"stairs", stairs, TREND_GROWS, 24, 0},
		{"stairs with noise", stairs_with_noise, TREND_GROWS, 24, 0},
		{"under teeth", under_teeth, TREND_GROWS, 24, 0},
		{"seven nights", seven_nights, TREND_GROWS, 24, 0},
		{"that becomes worse", that_becomes_worse, TREND_GROWS, 24, 4},
		{"by jobs", by_jobs, TREND_GROWS, 48, 16},
		{"under high teeth", under_high_teeth, TREND_GROWS, 48, 4},
	};

	made_truths(truths, sizeof(truths) / sizeof(*truths));
}

static struct trend judge_list(const uint64_t *bytes, size_t count, const uint32_t *parts)
{
	static struct made made;

	made_times(&made, count, true);
	for (size_t i = 0; i < count; i++) {
		made.of[i] = (struct block_totals){1, bytes[i], 0};
		made.parts[i] = parts ? parts[i] : 0;
	}
	return made_judge(&made);
}

TEST(few_grow_only_when_all_rise)
{
	static const struct {
		uint64_t bytes[7];
		size_t count;
		enum trend_verdict verdict;
	} rows[] = {
		{{100}, 1, TREND_TOO_FEW},
		{{100, 200}, 2, TREND_TOO_FEW},
		{{100, 200, 300}, 3, TREND_GROWS},
		{{100, 200, 250}, 3, TREND_GROWS},
		{{100, 200, 200}, 3, TREND_GREW_ONCE},
		{{100, 200, 201}, 3, TREND_GROWS},
		{{300, 200, 100}, 3, TREND_SHRINKS},
		{{100, 200, 100}, 3, TREND_RETURNS},
		{{1000, 1001, 1000}, 3, TREND_STEADY},
		{{100, 200, 300, 400}, 4, TREND_GROWS},
		{{100, 100, 200, 200}, 4, TREND_GREW_ONCE},
		{{0, 0, 0, 100}, 4, TREND_GREW_ONCE},
		{{100, 0, 0, 0}, 4, TREND_SHRINKS},
		{{100, 300, 200, 400}, 4, TREND_RETURNS},
		{{10, 20, 30, 40, 50}, 5, TREND_GROWS},
		{{10, 700, 800, 801, 801}, 5, TREND_GREW_ONCE},
		{{10, 20, 30, 40, 50, 60}, 6, TREND_GROWS},
		{{10, 20, 30, 40, 50, 0}, 6, TREND_RETURNS},
		{{10, 10, 10, 99, 99, 99}, 6, TREND_GREW_ONCE},
		{{99, 99, 99, 10, 10, 10}, 6, TREND_SHRINKS},
		/* The leak adds a tenth each hour, or levels off. The bars show the difference. */
		{{100, 110, 121, 133, 146}, 5, TREND_GROWS},
		{{100, 110, 121, 133, 146, 161, 177}, 7, TREND_GROWS},
		{{100, 900, 990, 999, 1000}, 5, TREND_GREW_ONCE},
		{{100, 900, 990, 999, 1000, 1001, 1002}, 7, TREND_GREW_ONCE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct trend trend = judge_list(rows[i].bytes, rows[i].count, NULL);

		if (trend.verdict != rows[i].verdict)
			fail_msg("row %zu: %s", i, trend_verdict_name(trend.verdict));
	}
}

/* Two snapshots are at half past the hour. Neither of them is later. */
TEST(snapshots_of_one_time_are_one_point)
{
	static const uint64_t pairs[] = {100, 140, 200, 240, 300, 340, 400, 440};
	static struct made made;
	struct trend trend;

	made_times(&made, 8, true);
	for (size_t i = 0; i < 8; i++) {
		made.times_ms[i] = (int64_t)(i / 2) * 3600000;
		made.of[i] = (struct block_totals){1, pairs[i], 0};
	}
	trend = made_judge(&made);
	assert_int_equal(trend.verdict, TREND_GROWS);
	assert_true(trend.bytes_per_hour > 99.99 && trend.bytes_per_hour < 100.01);
	made.count = 4; /* the four snapshots are only two points */
	assert_int_equal(made_judge(&made).verdict, TREND_TOO_FEW);
}

TEST(leak_goes_on_over_restarts)
{
	uint64_t bytes[48];
	uint32_t parts[48];

	for (size_t each = 3; each <= 24; each++) {
		for (size_t i = 0; i < 48; i++) {
			parts[i] = (uint32_t)(i / each);
			bytes[i] = 1000 * (i % each);
		}
		struct trend trend = judge_list(bytes, 48, parts);

		assert_int_equal(trend.verdict, TREND_GROWS);
		assert_true(trend.bytes_per_hour > 1999.999 && trend.bytes_per_hour < 2000.001);
		assert_int_equal(trend.net_bytes,
			1000 * ((int64_t)(48 / each * (each - 1)) +
				       (48 % each ? (int64_t)(48 % each) - 1 : 0)));
	}
}

/* A short series, restarted at any snapshot. */
TEST(leak_goes_on_over_one_restart)
{
	for (size_t first = 1; first <= 10; first++) {
		for (size_t second = 3; second <= 10; second++) {
			uint64_t bytes[20];
			uint32_t parts[20];

			for (size_t i = 0; i < first + second; i++) {
				parts[i] = i >= first;
				bytes[i] = 100 * (1 + (i < first ? i : i - first));
			}
			assert_int_equal(
				judge_list(bytes, first + second, parts).verdict, TREND_GROWS);
		}
	}
}

TEST(restart_alone_is_nothing)
{
	uint64_t bytes[12] = {5000, 5000, 5000, 5000, 0, 0, 0, 0, 9000, 9000, 9000, 9000};
	uint32_t parts[12] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
	struct trend trend = judge_list(bytes, 12, parts);

	assert_int_equal(trend.verdict, TREND_STEADY);
	assert_int_equal(trend.net_bytes, 0);
	assert_true(trend.bytes_per_hour == 0 && trend.low_bytes_per_hour == 0);
	for (uint32_t i = 0; i < 12; i++)
		parts[i] = i;
	trend = judge_list(bytes, 12, parts);
	assert_int_equal(trend.verdict, TREND_TOO_FEW);
	assert_int_equal(trend.net_bytes, 0);
}

/* Each process fills its cache and stays at that level. Filling it again is not a leak. */
TEST(filled_anew_after_each_restart_grew_once)
{
	uint64_t bytes[48];
	uint32_t parts[48];

	for (size_t i = 0; i < 48; i++) {
		parts[i] = (uint32_t)(i / 12);
		bytes[i] = i % 12 < 4 ? 1000 * (i % 12) : 4000;
	}
	assert_int_equal(judge_list(bytes, 48, parts).verdict, TREND_GREW_ONCE);
}

TEST(blocks_decide_where_bytes_never_change)
{
	static struct made made;
	struct trend trend;

	made_times(&made, 24, true);
	for (size_t i = 0; i < 24; i++)
		made.of[i] = (struct block_totals){10 + 3 * i, 0, 0};
	trend = made_judge(&made);
	assert_int_equal(trend.verdict, TREND_GROWS);
	assert_true(trend.blocks_per_hour == 6 && trend.bytes_per_hour == 0);
	assert_int_equal(trend.net_blocks, 69);
}
