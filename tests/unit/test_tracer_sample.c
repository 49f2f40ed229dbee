#include "tests/unit/t.h"

#include "snapshot/tracer/tables.h"

/* Returns exp(-x) for x >= 0. Halves x until it is below 2^-10, sums the series, and squares the
 * result once per halving. */
static double exp_minus(double x)
{
	unsigned halved = 0;
	double result;

	while (x > 1.0 / 1024) {
		x /= 2;
		halved++;
	}
	result = 1 - x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5))));
	for (; halved; halved--)
		result *= result;
	return result;
}

static double p_of(uint64_t bytes, uint64_t mean)
{
	return 1 - exp_minus((double)(bytes ? bytes : 1) / (double)mean);
}

static void assert_near(double value, double expected, double leeway)
{
	if (value < expected - leeway || value > expected + leeway)
		fail_msg("%g is not %g +- %g", value, expected, leeway);
}

/* ---------------------------------------------------------------- distances */

TEST(distance_is_logarithm_of_its_bits)
{
	const uint64_t mean = (uint64_t)1 << 40;
	uint64_t bits = 1;

	/* -ln(bits / 2^64) = x means exp(-x) = bits / 2^64. */
	for (unsigned i = 0; i < 20000; i++) {
		double x = (double)sample_distance(bits, mean) / (double)mean;
		double expected = (double)bits / 18446744073709551616.0;

		assert_near(exp_minus(x) / expected, 1, 2e-7);
		bits = bits * 6364136223846793005u + 1442695040888963407u;
		bits >>= i % 64;
		bits += !bits;
	}
	/* 64 ln 2 = 44.361419555836 */
	assert_near((double)sample_distance(1, mean) / (double)mean, 44.361419555836, 1e-7);
	assert_int_equal(sample_distance(0, mean), sample_distance(1, mean));
	assert_near((double)sample_distance(UINT64_MAX, mean) / (double)mean, 0, 1e-7);
}

TEST(half_of_distances_are_below_ln_2_of_mean)
{
	assert_int_equal(sample_distance((uint64_t)1 << 63, 1000000), 693147);
	assert_int_equal(sample_distance((uint64_t)1 << 62, 1000000), 1386294);
	assert_int_equal(sample_distance((uint64_t)1 << 63, 10), 6);
}

/* ---------------------------------------------------------------- estimates */

struct kind {
	uint64_t bytes, count;
};

struct dump_sums {
	double count, bytes; /* true sums, or estimated ones */
	double count_variance, bytes_variance;
};

static struct dump_sums truth_of(const struct kind *kinds, size_t kind_count, uint64_t mean)
{
	struct dump_sums sums = {0};

	for (size_t i = 0; i < kind_count; i++) {
		double p = p_of(kinds[i].bytes, mean), n = (double)kinds[i].count;
		double bytes = (double)kinds[i].bytes;

		/* Each block is recorded independently with probability p, and then represents 1/p
		 * blocks. */
		sums.count += n;
		sums.bytes += n * bytes;
		sums.count_variance += n * (1 - p) / p;
		sums.bytes_variance += n * bytes * bytes * (1 - p) / p;
	}
	return sums;
}

static void assert_estimates(const struct kind *kinds, size_t kind_count, uint64_t mean,
	const struct dump_sums *estimates)
{
	struct dump_sums truth = truth_of(kinds, kind_count, mean);
	double count = estimates->count - truth.count, bytes = estimates->bytes - truth.bytes;

	if (count * count > 16 * truth.count_variance)
		fail_msg("%g blocks are not %g", estimates->count, truth.count);
	if (bytes * bytes > 16 * truth.bytes_variance)
		fail_msg("%g bytes are not %g", estimates->bytes, truth.bytes);
}

static const struct kind mixed[] = {{0, 20000}, {1, 20000}, {16, 200000}, {24, 300000},
	{100, 50000}, {4000, 20000}, {32768, 3000}, {65536, 1000}, {1000000, 100}, {50000000, 10}};
#define MIXED (sizeof(mixed) / sizeof(*mixed))

/* Returns the estimates for blocks of all kinds, which are allocated in turn. */
static struct dump_sums in_turn(uint64_t mean, uint64_t seed)
{
	struct dump_sums estimates = {0};
	uint32_t word = 0;
	size_t left = 1;

	for (uint64_t n = 0; left; n++) {
		left = 0;
		for (size_t i = 0; i < MIXED; i++) {
			if (n >= mixed[i].count)
				continue;
			left++;
			if (!sample_crosses(&word, &seed, mean, mixed[i].bytes))
				continue;
			estimates.count += 1 / p_of(mixed[i].bytes, mean);
			estimates.bytes += (double)mixed[i].bytes / p_of(mixed[i].bytes, mean);
		}
	}
	return estimates;
}

TEST(estimates_are_right_for_sizes_in_turn)
{
	const uint64_t means[] = {1, 17, 512, 4096, 65536, 1 << 20};

	for (size_t i = 0; i < sizeof(means) / sizeof(*means); i++) {
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct dump_sums estimates = in_turn(means[i], seed);

			assert_estimates(mixed, MIXED, means[i], &estimates);
		}
	}
}

TEST(estimates_are_right_for_threads_with_one_size_each)
{
	const uint64_t mean = 8192;
	struct dump_sums estimates = {0};
	uint64_t random = 20240607;
	uint32_t words[MIXED] = {0};

	for (size_t i = 0; i < MIXED; i++) {
		for (uint64_t n = 0; n < mixed[i].count; n++) {
			if (!sample_crosses(&words[i], &random, mean, mixed[i].bytes))
				continue;
			estimates.count += 1 / p_of(mixed[i].bytes, mean);
			estimates.bytes += (double)mixed[i].bytes / p_of(mixed[i].bytes, mean);
		}
	}
	assert_estimates(mixed, MIXED, mean, &estimates);
}

/* Programs with short-lived threads often start with a fresh word. */
TEST(estimates_are_right_for_threads_of_one_block)
{
	const struct kind kind = {300, 400000};
	struct dump_sums estimates = {0};
	uint64_t random = 7;

	for (uint64_t n = 0; n < kind.count; n++) {
		uint32_t word = 0;

		if (!sample_crosses(&word, &random, 5000, kind.bytes))
			continue;
		estimates.count += 1 / p_of(kind.bytes, 5000);
		estimates.bytes += (double)kind.bytes / p_of(kind.bytes, 5000);
	}
	assert_estimates(&kind, 1, 5000, &estimates);
}

/* Most distances do not fit into a word. */
TEST(estimates_are_right_for_means_of_gigabytes)
{
	static const struct kind huge[] = {{(uint64_t)1 << 29, 30000}, {(uint64_t)3 << 30, 20000},
		{(uint64_t)100 << 30, 2000}};
	const uint64_t mean = (uint64_t)20 << 30;
	struct dump_sums estimates = {0};
	uint64_t random = 99;
	uint32_t word = 0;

	for (size_t i = 0; i < 3; i++) {
		for (uint64_t n = 0; n < huge[i].count; n++) {
			if (!sample_crosses(&word, &random, mean, huge[i].bytes))
				continue;
			estimates.count += 1 / p_of(huge[i].bytes, mean);
			estimates.bytes += (double)huge[i].bytes / p_of(huge[i].bytes, mean);
		}
	}
	assert_estimates(huge, 3, mean, &estimates);
}

TEST(blocks_are_recorded_independently)
{
	const uint64_t bytes = 1000, mean = 2000;
	const double p = p_of(bytes, mean), n = 1000000;
	uint64_t random = 3;
	uint32_t word = 0;
	double pairs = 0;
	bool last = false;

	for (unsigned i = 0; i < 1000000; i++) {
		bool now = sample_crosses(&word, &random, mean, bytes);

		pairs += last && now;
		last = now;
	}
	/* Each of the n - 1 pairs has probability p^2. Neighbouring pairs share a block, so the
	 * variance is n (p^2 (1 - p^2) + 2 (p^3 - p^4)). */
	pairs -= (n - 1) * p * p;
	assert_true(pairs * pairs < 16 * n * (p * p * (1 - p * p) + 2 * p * p * p * (1 - p)));
}

/* ---------------------------------------------------------------- the filter */

TEST(filter_holds_what_was_added_until_it_is_removed)
{
	static struct tracer_filter filter;
	unsigned wrong = 0;

	for (uint64_t i = 1; i <= 20000; i++)
		tracer_filter_add(&filter, 0x150000000 + i * 16);
	for (uint64_t i = 1; i <= 20000; i++) {
		assert_true(tracer_filter_may_hold(&filter, 0x150000000 + i * 16));
		wrong += tracer_filter_may_hold(&filter, 0x990000000 + i * 16);
	}
	assert_true(wrong < 20000 / 8); /* 1 counter of 13 is in use */
	for (uint64_t i = 1; i <= 20000; i += 2)
		tracer_filter_remove(&filter, 0x150000000 + i * 16);
	for (uint64_t i = 2; i <= 20000; i += 2)
		assert_true(tracer_filter_may_hold(&filter, 0x150000000 + i * 16));
	for (uint64_t i = 2; i <= 20000; i += 2)
		tracer_filter_remove(&filter, 0x150000000 + i * 16);
	for (size_t i = 0; i < sizeof(filter.counts); i++)
		assert_int_equal(filter.counts[i], 0);
}

TEST(full_counter_stays_full)
{
	static struct tracer_filter filter;

	for (unsigned i = 0; i < 300; i++)
		tracer_filter_add(&filter, 0x1000);
	for (unsigned i = 0; i < 300; i++)
		tracer_filter_remove(&filter, 0x1000);
	/* 300 - 300 or 300 - 255 blocks: not known which. */
	assert_true(tracer_filter_may_hold(&filter, 0x1000));
	for (unsigned i = 0; i < 254; i++)
		tracer_filter_add(&filter, 0x2000);
	for (unsigned i = 0; i < 254; i++)
		tracer_filter_remove(&filter, 0x2000);
	assert_false(tracer_filter_may_hold(&filter, 0x2000));
	tracer_filter_remove(&filter, 0x2000);
	assert_false(tracer_filter_may_hold(&filter, 0x2000));
}
