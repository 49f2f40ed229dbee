/* What grows by leaps leaks as long as they come; two or three, or ever rarer ones, are no leak. */
#include "tests/unit/trend_made.h"

#define AT (made->at[at])
#define LEAPS 8

/* A number from 0 up to 1 that is the same for the whole series. */
static double fixed(const struct made *made, uint64_t which)
{
	static struct made other;

	other.seed = (uint64_t)(made->chance[0] * 1e15) + which * 7919;
	return made_chance(&other);
}

/* From 0.3 to 2. */
static double height(const struct made *made, uint64_t leap)
{
	return 0.3 + 1.7 * fixed(made, 100 + leap);
}

/* One in each sixth of the time. */
static double six_leaps(struct made *made, size_t at)
{
	double sum = 3;

	for (uint64_t i = 0; i < 6; i++)
		sum += AT > ((double)i + fixed(made, i)) / 6 ? height(made, i) : 0;
	return sum;
}

static double six_leaps_with_noise(struct made *made, size_t at)
{
	return six_leaps(made, at) + 0.1 * made_noise(made);
}

static double leaps_at_any_time(struct made *made, size_t at)
{
	double sum = 3;

	for (uint64_t i = 0; i < LEAPS; i++)
		sum += AT > fixed(made, i) ? height(made, i) : 0;
	return sum + 0.03 * made_noise(made);
}

static double leak_that_becomes_worse(struct made *made, size_t at)
{
	double from = 0.3 + 0.4 * made->chance[0];

	return 3 + 3 * AT + (AT > from ? 8 * (AT - from) : 0) + 0.2 * made_noise(made);
}

/* A job of each night, for a week: none of them is at the end of the time. */
static double seven_nights(struct made *made, size_t at)
{
	return 3 + (double)(size_t)(AT * 7 + 0.1 + 0.8 * made->chance[0]) + 0.03 * made_noise(made);
}

static void what_leaps_on_grows(void **state)
{
	static const struct truth truths[] = {
		{"six leaps", six_leaps, TREND_GROWS, 24, 4},
		{"six leaps with noise", six_leaps_with_noise, TREND_GROWS, 24, 8},
		{"leaps at any time", leaps_at_any_time, TREND_GROWS, 48, 24},
		{"leak that becomes worse", leak_that_becomes_worse, TREND_GROWS, 24, 4},
		{"seven nights", seven_nights, TREND_GROWS, 24, 0},
	};

	(void)state;
	made_truths(truths, sizeof(truths) / sizeof(*truths));
}

/* The more snapshots, the surer it is that no one course tells all of it. */
static void leak_that_becomes_worse_grows(void **state)
{
	static struct made made;

	(void)state;
	for (uint64_t seed = 0; seed < TRUTH_SEEDS; seed++) {
		made.seed = seed;
		made_times(&made, 1000, true);
		made_fill(&made, leak_that_becomes_worse);
		assert_int_equal(made_judge(&made).verdict, TREND_GROWS);
	}
}

/* Each step of five standard deviations, half of the time apart. */
static double two_steps_half_apart(struct made *made, size_t at)
{
	double start = 0.15 + 0.2 * made->chance[0];

	return 5 + 2 * (AT > start) + 2 * (AT > start + 0.5) + 0.4 * made_noise(made);
}

/* Of four, in the first four fifths of the time. */
static double two_steps(struct made *made, size_t at)
{
	return 5 + 2 * (AT > 0.1 + 0.7 * fixed(made, 0)) + 2 * (AT > 0.1 + 0.7 * fixed(made, 1)) +
	       0.5 * made_noise(made);
}

static double three_steps(struct made *made, size_t at)
{
	double start = 0.1 + 0.2 * made->chance[0];

	return 5 + 3 * (AT > start) + 2 * (AT > start + 0.15) + (AT > start + 0.4) +
	       0.2 * made_noise(made);
}

/* A pool keeps what it needed at most: by 2^-n more and more seldom. */
static double high_water(struct made *made, size_t at)
{
	double sum = 3, when = 0.7;

	for (uint64_t i = 0; i < 6; i++, when *= 0.3 + 0.4 * fixed(made, 50 + i))
		sum += AT > when ? height(made, i) : 0;
	return sum;
}

static void what_leapt_a_few_times_grew_once(void **state)
{
	static const struct truth truths[] = {
		{"two steps half apart", two_steps_half_apart, TREND_GREW_ONCE, 48, 12},
		{"two steps", two_steps, TREND_GREW_ONCE, 48, 16},
		{"three steps", three_steps, TREND_GREW_ONCE, 24, 8},
		{"high water", high_water, TREND_GREW_ONCE, 24, 8},
	};

	(void)state;
	made_truths(truths, sizeof(truths) / sizeof(*truths));
}

static double falls_by_leaps(struct made *made, size_t at)
{
	return 20 - six_leaps_with_noise(made, at);
}

static void what_leaps_down_shrinks(void **state)
{
	static const struct truth truths[] = {
		{"falls by leaps", falls_by_leaps, TREND_SHRINKS, 24, 0},
	};

	(void)state;
	made_truths(truths, sizeof(truths) / sizeof(*truths));
}

/* Each process leaps three times, at any time. */
static void leaps_go_on_over_restarts(void **state)
{
	static struct made made;
	size_t missed = 0;

	(void)state;
	for (uint64_t seed = 0; seed < TRUTH_SEEDS; seed++) {
		double at[9];

		made.seed = seed;
		made_times(&made, 144, true);
		for (size_t i = 0; i < 9; i++)
			at[i] = made_chance(&made);
		for (size_t i = 0; i < 144; i++) {
			double units = 1;

			made.parts[i] = (uint32_t)(i / 48);
			for (size_t k = 0; k < 3; k++)
				units += (double)(i % 48) / 48 > at[i / 48 * 3 + k];
			made_put(&made, i, units);
		}
		missed += made_judge(&made).verdict != TREND_GROWS;
	}
	assert_in_range(missed, 0, TRUTH_SEEDS / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leaps_on_grows),
		cmocka_unit_test(leak_that_becomes_worse_grows),
		cmocka_unit_test(what_leapt_a_few_times_grew_once),
		cmocka_unit_test(what_leaps_down_shrinks),
		cmocka_unit_test(leaps_go_on_over_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
