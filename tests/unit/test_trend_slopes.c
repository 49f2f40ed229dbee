#include "tests/unit/t.h"

#include "tests/unit/trend_made.h"

#define HOUR 3600000
/* A process with at most this number of snapshots is not merged: each snapshot is a point, and all
 * pairs are used. */
#define ALL_PAIRS 64

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double plain_slope(const struct made *made)
{
	static double slopes[MADE_MOST * MADE_MOST / 2];
	size_t count = 0;

	for (size_t i = 0; i < made->count; i++) {
		for (size_t k = i + 1; k < made->count; k++) {
			double hours = (double)(made->times_ms[k] - made->times_ms[i]) / HOUR;
			double bytes = (double)made->of[k].requested_bytes -
				       (double)made->of[i].requested_bytes;

			if (made->parts[i] == made->parts[k] && hours > 0)
				slopes[count++] = bytes / hours;
		}
	}
	qsort(slopes, count, sizeof(*slopes), compare_doubles);
	return count ? (slopes[(count - 1) / 2] + slopes[count / 2]) / 2 : 0;
}

static void assert_near(double value, double truth, double off)
{
	if (!(value >= truth - off && value <= truth + off))
		fail_msg("%g is not %g", value, truth);
}

COURSE(noise, 5 + AT + made_noise(made))
COURSE(whole_noise, (double)(made_number(made) % 4) / 1000)

TEST(slope_is_median_of_all_pairs)
{
	static struct made made;

	for (size_t n = 2; n <= ALL_PAIRS; n += n < 20 ? 1 : 11) {
		for (uint64_t seed = 1; seed <= 10; seed++) {
			double truth;

			made.seed = seed * n;
			made_times(&made, n, seed % 2);
			made_fill(&made, seed % 3 ? noise : whole_noise);
			for (size_t i = 0; i < n; i++)
				made.parts[i] = seed > 5 ? (uint32_t)(i / 7) : 0;
			truth = plain_slope(&made);
			assert_near(made_judge(&made).bytes_per_hour, truth,
				1e-9 * (truth < 0 ? -truth : truth) + 1e-6);
		}
	}
}

/* The slope must be the line's slope even if snapshots are merged. */
TEST(slope_of_line_is_line_s)
{
	static const size_t counts[] = {3, 12, 48, ALL_PAIRS + 1, 200, MADE_MOST};
	static struct made made;

	for (size_t i = 0; i < 12; i++) {
		struct trend trend;

		made.seed = i;
		made_times(&made, counts[i / 2], i % 2);
		for (size_t k = 0; k < made.count; k++) {
			uint64_t ms = (uint64_t)(made.times_ms[k] - made.times_ms[0]);

			made.of[k] = (struct block_totals){7 + ms / 1000, 1000 + ms, 0};
		}
		trend = made_judge(&made);
		assert_int_equal(trend.verdict, TREND_GROWS);
		assert_near(trend.bytes_per_hour, HOUR, 0.01);
		assert_near(trend.low_bytes_per_hour, HOUR, 0.01);
		assert_near(trend.high_bytes_per_hour, HOUR, 0.01);
		assert_near(trend.blocks_per_hour, 3600, 3);
	}
}

/* Returns for how many of a thousand series the true slope lies within the bounds. */
static size_t coverage(size_t count)
{
	static struct made made;
	size_t held = 0;

	made.seed = 42 + count;
	made_times(&made, count, false);
	for (size_t i = 0; i < 1000; i++) {
		double truth;
		struct trend trend;

		made_fill(&made, noise);
		trend = made_judge(&made);
		truth = MADE_UNIT * HOUR / (double)(made.times_ms[count - 1] - made.times_ms[0]);
		assert_true(trend.low_bytes_per_hour <= trend.bytes_per_hour);
		assert_true(trend.bytes_per_hour <= trend.high_bytes_per_hour);
		held += trend.low_bytes_per_hour <= truth && truth <= trend.high_bytes_per_hour;
	}
	return held;
}

TEST(bounds_hold_in_95_of_100)
{
	assert_in_range(coverage(8), 935, 990);
	assert_in_range(coverage(12), 935, 970);
	assert_in_range(coverage(24), 935, 965);
	assert_in_range(coverage(48), 935, 965);
	assert_in_range(coverage(120), 930, 965);
}

static double score_of(const double *values, size_t count)
{
	double score = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = i + 1; k < count; k++)
			score += (values[k] > values[i]) - (values[k] < values[i]);
	}
	return score;
}

/* Returns the sum of all squared scores, over every order of the values from index `from` on. */
static double squares_of_orders(double *values, size_t count, size_t from, size_t *tried)
{
	double sum = 0, swap;

	if (from == count) {
		++*tried;
		return score_of(values, count) * score_of(values, count);
	}
	for (size_t i = from; i < count; i++) {
		swap = values[from], values[from] = values[i], values[i] = swap;
		sum += squares_of_orders(values, count, from + 1, tried);
		swap = values[from], values[from] = values[i], values[i] = swap;
	}
	return sum;
}

/* Sen: the score's standard deviation determines the number of slopes beyond a bound. The test
 * computes that deviation from the 5040 orders. */
TEST(bounds_are_sen_s)
{
	static const int64_t hours[] = {0, 1, 3, 4, 9, 11, 16};
	double values[] = {1, 4, 2, 5, 2, 5, 5}, slopes[21], left, variance;
	size_t tried = 0, count = 0, beyond = 0;
	static struct made made;
	struct trend trend;

	made.count = 7;
	for (size_t i = 0; i < 7; i++) {
		made.times_ms[i] = hours[i] * HOUR;
		made.of[i] = (struct block_totals){1, (uint64_t)values[i], 0};
		for (size_t k = 0; k < i; k++)
			slopes[count++] = (values[i] - values[k]) / (double)(hours[i] - hours[k]);
	}
	qsort(slopes, count, sizeof(*slopes), compare_doubles);
	variance = squares_of_orders(values, 7, 0, &tried) / 5040;
	assert_int_equal(tried, 5040);
	for (left = (double)count - 2; left * left >= 1.96 * 1.96 * variance; left -= 2)
		beyond++;
	assert_in_range(beyond, 2, 5);
	trend = made_judge(&made);
	assert_near(trend.low_bytes_per_hour, slopes[beyond - 1], 1e-9);
	assert_near(trend.high_bytes_per_hour, slopes[count - beyond], 1e-9);
	assert_near(trend.bytes_per_hour, slopes[10], 1e-9);
}

TEST(extremes_stay_numbers)
{
	static const int64_t times[][6] = {
		{0, 0, 0, 0, 0, 0},
		{INT64_MIN, -1, 0, 1, 5, INT64_MAX},
		{9, 8, 7, 6, 5, 4},
		{0, 1, 1, 1, 1, 2},
	};
	static const uint64_t bytes[][6] = {
		{0, UINT64_C(1) << 62, 0, UINT64_C(1) << 62, 0, UINT64_C(1) << 62},
		{0, 1, 2, 3, 4, UINT64_MAX},
		{UINT64_MAX, 0, 0, 0, 0, 0},
		{INT64_MAX, INT64_MAX - 1, INT64_MAX, INT64_MAX - 1, INT64_MAX, INT64_MAX},
	};
	static const uint32_t parts[] = {0, 0, 1, 1, 7, 7};
	static struct made made;
	struct trend trend = made_judge(&made); /* no snapshots */

	assert_int_equal(trend.verdict, TREND_TOO_FEW);
	assert_true(trend.bytes_per_hour == 0 && trend.net_bytes == 0);
	made.count = 6;
	for (size_t i = 0; i < 32; i++) {
		for (size_t k = 0; k < 6; k++) {
			made.times_ms[k] = times[i / 8][k];
			made.parts[k] = i % 2 ? parts[k] : 0;
			made.of[k] =
				(struct block_totals){bytes[i / 2 % 4][k], bytes[i / 2 % 4][k], 0};
		}
		trend = made_judge(&made);
		assert_true((unsigned)trend.verdict < TREND_VERDICTS);
		assert_true(trend.low_bytes_per_hour <= trend.bytes_per_hour);
		assert_true(trend.bytes_per_hour <= trend.high_bytes_per_hour);
		assert_true(trend.blocks_per_hour - trend.blocks_per_hour == 0);
		assert_true(trend.high_bytes_per_hour - trend.low_bytes_per_hour >= 0);
	}
}

/* Three times the greatest sums of a process are too large for the type. */
TEST(net_growth_stops_at_what_fits)
{
	static struct made made;

	made_times(&made, 6, true);
	for (size_t i = 0; i < 6; i++) {
		made.parts[i] = (uint32_t)(i / 2);
		made.of[i] = (struct block_totals){1, i % 2 ? INT64_MAX : 0, 0};
	}
	assert_int_equal(made_judge(&made).net_bytes, INT64_MAX);
}

TEST(without_times_snapshots_are_hour_apart)
{
	static struct made made;
	struct trend_axis axis = {NULL, NULL, 10};
	struct trend_judge *judge = trend_judge_new(&axis);
	struct trend trend;

	assert_non_null(judge);
	for (size_t i = 0; i < 10; i++)
		made.of[i] = (struct block_totals){i, 64 * i, 0};
	trend_judge(judge, made.of, &trend);
	trend_judge_free(judge);
	assert_int_equal(trend.verdict, TREND_GROWS);
	assert_near(trend.bytes_per_hour, 64, 1e-9);
	assert_near(trend.blocks_per_hour, 1, 1e-9);
	assert_int_equal(trend.net_bytes, 576);
	assert_int_equal(trend.net_blocks, 9);
}
