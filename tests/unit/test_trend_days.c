/* A load that comes and goes with the day neither hides a leak nor makes one. */
#include "tests/unit/trend_made.h"

#define AT (made->at[at])
#define HOUR 3600000

/* 0 to 1: what hour of a day it is, every series' first one another. */
static double hour(const struct made *made, size_t at)
{
	double days = (double)(made->times_ms[at] - made->times_ms[0]) / (24 * HOUR);
	double x = days + made->chance[1];

	return x - (double)(size_t)x;
}

/* A sine of height 1, by parabolas, which are within 0.06 of it. */
static double wave(const struct made *made, size_t at)
{
	double x = hour(made, at) * 2;

	return x < 1 ? 4 * x * (1 - x) : -4 * (x - 1) * (2 - x);
}

/* Nine hours of the day. */
static double office(const struct made *made, size_t at)
{
	return hour(made, at) < 0.375;
}

static double leak_beside_a_wave(struct made *made, size_t at)
{
	double height = 0.1 + 0.9 * made->chance[0];

	return 3 + AT + height * wave(made, at) + 0.01 * made_noise(made);
}

static double leak_beside_office_hours(struct made *made, size_t at)
{
	return 1 + AT + 0.4 * made->chance[0] * office(made, at) + 0.01 * made_noise(made);
}

static double wave_alone(struct made *made, size_t at)
{
	return 1 + (0.2 + 0.3 * made->chance[0]) * wave(made, at) + 0.01 * made_noise(made);
}

static double office_hours_alone(struct made *made, size_t at)
{
	return 1 + (0.2 + made->chance[0]) * office(made, at) + 0.01 * made_noise(made);
}

static double step_beside_a_wave(struct made *made, size_t at)
{
	return 1 + 0.4 * (AT > 0.2 + 0.6 * made->chance[0]) + 0.2 * wave(made, at) +
	       0.01 * made_noise(made);
}

static double cache_beside_a_wave(struct made *made, size_t at)
{
	double full = 0.04 + 0.1 * made->chance[0];

	return 1 + (1 - made_half(AT / full)) + 0.3 * wave(made, at) + 0.01 * made_noise(made);
}

static double two_steps(struct made *made, size_t at)
{
	return 1 + 0.1 * (AT > 0.15 + 0.25 * made->chance[0]) +
	       0.2 * (AT > 0.6 + 0.25 * made->chance[1]) + 0.001 * made_noise(made);
}

/* So many days, with so many snapshots in each. */
struct days {
	const char *name;
	made_course *course;
	enum trend_verdict verdict;
	size_t days, per_day;
	size_t misses;
};

static void fill_days(struct made *made, const struct days *days, uint64_t seed)
{
	size_t count = days->days * days->per_day;
	int64_t every = 24 * HOUR / (int64_t)days->per_day;

	made->seed = seed * 1000003 + count;
	made_times(made, count, true);
	for (size_t i = 0; i < count; i++)
		made->times_ms[i] = made->times_ms[0] + (int64_t)i * every;
	made_fill(made, days->course);
}

static void load_of_the_day_is_set_aside(void **state)
{
	static const struct days rows[] = {
		{"leak beside a wave", leak_beside_a_wave, TREND_GROWS, 2, 48, 0},
		{"leak beside a wave", leak_beside_a_wave, TREND_GROWS, 3, 48, 0},
		{"leak beside a wave", leak_beside_a_wave, TREND_GROWS, 5, 48, 0},
		{"leak beside a wave", leak_beside_a_wave, TREND_GROWS, 3, 12, 0},
		{"leak beside a wave", leak_beside_a_wave, TREND_GROWS, 7, 8, 0},
		{"leak beside office hours", leak_beside_office_hours, TREND_GROWS, 2, 48, 8},
		{"leak beside office hours", leak_beside_office_hours, TREND_GROWS, 5, 48, 4},
		{"wave alone", wave_alone, TREND_RETURNS, 2, 48, 0},
		{"wave alone", wave_alone, TREND_RETURNS, 5, 24, 0},
		{"office hours alone", office_hours_alone, TREND_RETURNS, 2, 48, 0},
		{"office hours alone", office_hours_alone, TREND_RETURNS, 5, 24, 0},
		{"step beside a wave", step_beside_a_wave, TREND_GREW_ONCE, 2, 48, 0},
		{"step beside a wave", step_beside_a_wave, TREND_GREW_ONCE, 4, 24, 0},
		{"cache beside a wave", cache_beside_a_wave, TREND_GREW_ONCE, 2, 48, 0},
		{"cache beside a wave", cache_beside_a_wave, TREND_GREW_ONCE, 4, 24, 0},
		{"two steps", two_steps, TREND_GREW_ONCE, 2, 48, 0},
	};
	static struct made made;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t missed = 0;

		for (uint64_t seed = 0; seed < TRUTH_SEEDS; seed++) {
			fill_days(&made, &rows[i], seed);
			missed += made_judge(&made).verdict != rows[i].verdict;
		}
		if (missed * 100 > rows[i].misses * TRUTH_SEEDS)
			fail_msg("%s: %zu of %d series of %zu days misread", rows[i].name, missed,
				TRUTH_SEEDS, rows[i].days);
	}
}

/* Leaks half a megabyte an hour, and has four of sessions while the office is open. */
static double server(struct made *made, size_t at)
{
	return 0.2 + 2.4 * AT + 0.4 * office(made, at) + 0.01 * made_chance(made);
}

static void growth_is_that_beside_the_load(void **state)
{
	static const struct days days = {.course = server, .days = 2, .per_day = 48};
	static struct made made;

	(void)state;
	for (uint64_t seed = 0; seed < TRUTH_SEEDS; seed++) {
		double truth = 2.4 * MADE_UNIT / 47.5;
		struct trend trend;

		fill_days(&made, &days, seed);
		trend = made_judge(&made);
		assert_int_equal(trend.verdict, TREND_GROWS);
		assert_true(trend.bytes_per_hour > 0.95 * truth);
		assert_true(trend.bytes_per_hour < 1.05 * truth);
		assert_true(trend.low_bytes_per_hour <= trend.bytes_per_hour);
		assert_true(trend.high_bytes_per_hour >= trend.bytes_per_hour);
	}
}

/* Three processes of two days each, that share the load. */
static void load_goes_on_over_restarts(void **state)
{
	static const struct days days = {.course = wave_alone, .days = 6, .per_day = 48};
	static struct made made;

	(void)state;
	for (uint64_t seed = 0; seed < TRUTH_SEEDS; seed++) {
		fill_days(&made, &days, seed);
		for (size_t i = 0; i < made.count; i++) {
			made.parts[i] = (uint32_t)(i / 96);
			made.of[i].requested_bytes += i % 96 * 100000;
		}
		assert_int_equal(made_judge(&made).verdict, TREND_GROWS);
	}
}

/* At the same time of each day there is no wave to be seen, and at any time of no clock neither. */
static void wave_that_is_not_seen_is_none(void **state)
{
	static const struct days days = {.course = leak_beside_a_wave, .days = 60, .per_day = 1};
	static struct made made;
	struct trend_axis axis = {NULL, NULL, 60};
	struct trend_judge *judge = trend_judge_new(&axis);
	struct trend trend;

	(void)state;
	assert_non_null(judge);
	for (uint64_t seed = 0; seed < TRUTH_SEEDS; seed++) {
		fill_days(&made, &days, seed);
		assert_int_equal(made_judge(&made).verdict, TREND_GROWS);
		trend_judge(judge, made.of, &trend);
		assert_int_equal(trend.verdict, TREND_GROWS);
		for (size_t i = 0; i < made.count; i++)
			made.times_ms[i] = i % 2 ? INT64_MAX : INT64_MIN;
		made_judge(&made);
	}
	trend_judge_free(judge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_of_the_day_is_set_aside),
		cmocka_unit_test(growth_is_that_beside_the_load),
		cmocka_unit_test(load_goes_on_over_restarts),
		cmocka_unit_test(wave_that_is_not_seen_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
