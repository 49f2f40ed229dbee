#include "tests/unit/t.h"

#include "tests/unit/trend_made.h"

COURSE(step, AT > 0.05 + 0.9 * made->chance[0] ? 2 : 1)
COURSE(step_with_noise, (AT > 0.2 + 0.6 * made->chance[0] ? 1.8 : 1) + 0.1 * made_noise(made))

/* The last step comes at 55 percent of the time. */
COURSE_BY(two_steps, 0.1 + 0.3 * made->chance[0],
	1 + (AT > x) + (AT > x + 0.15) + 0.01 * made_noise(made))

/* Each step is half as high as its predecessor. */
COURSE_BY(three_steps, 0.1 + 0.2 * made->chance[0],
	5 + 3 * (AT > x) + 1.5 * (AT > x + 0.15) + 0.75 * (AT > x + 0.3) + 0.2 * made_noise(made))

COURSE_BY(steps_of_a_start, AT / (0.3 + 0.3 * made->chance[0]),
	1 + (x > 0.07) + (x > 0.2) + (x > 0.5) + (x >= 1))

COURSE(cache, 1 + 2 * (1 - made_half(AT / (0.02 + 0.1 * made->chance[0]))))
COURSE(cache_with_noise, cache(made, at) + 0.05 * made_noise(made))
COURSE_BY(cache_by_a_line, 0.2 + 0.4 * made->chance[0], 1 + 2 * (AT < x ? AT / x : 1))
COURSE(cache_by_a_line_with_noise, cache_by_a_line(made, at) + 0.05 * made_noise(made))
COURSE(comes_late_and_stays, AT > 0.5 + 0.45 * made->chance[0] ? 2 : 0)

TEST(what_rose_and_stays_grew_once)
{
	static const struct truth truths[] = {
		{"step", step, TREND_GREW_ONCE, 12, 0},
		{"step with noise", step_with_noise, TREND_GREW_ONCE, 24, 12},
		{"two steps", two_steps, TREND_GREW_ONCE, 24, 8},
		{"three steps", three_steps, TREND_GREW_ONCE, 24, 12},
		{"steps of a start", steps_of_a_start, TREND_GREW_ONCE, 24, 0},
		{"cache", cache, TREND_GREW_ONCE, 12, 0},
		{"cache with noise", cache_with_noise, TREND_GREW_ONCE, 12, 12},
		{"cache by a line", cache_by_a_line, TREND_GREW_ONCE, 12, 0},
		{"cache by a line with noise", cache_by_a_line_with_noise, TREND_GREW_ONCE, 12, 8},
		{"comes late and stays", comes_late_and_stays, TREND_GREW_ONCE, 12, 0},
	};

	made_truths(truths, sizeof(truths) / sizeof(*truths));
}

/* A tooth needs at least four snapshots, because otherwise the sampled part is random. A series
 * needs nearly four teeth: with two or three, the last tooth may end high by chance. */
COURSE_BY(teeth, (double)made->count / 4,
	1 + 2 * made_tooth(made, at, 4 + made->chance[0] * (x > 4 ? x - 4 : 0)))
COURSE_BY(two_teeth, (double)made->count *(0.45 + 0.1 * made->chance[0]),
	1 + 2 * made_tooth(made, at, x))
COURSE_BY(up_and_down, made_tooth(made, at, 4 + made->chance[0] * ((double)made->count / 2 - 4)),
	1 + 2 * (x < 0.5 ? x : 1 - x))
COURSE_BY(queue, made_chance(made), x < 0.5 ? 0 : 5 * x)
COURSE_BY(outlier, made->chance[0] * (double)(made->count - 4),
	3 + 0.01 * made_noise(made) + (at == 2 + (size_t)x ? 5 : 0))
COURSE(leak_that_is_freed, at + 1 == made->count ? 0 : 3 * AT)
COURSE(comes_and_goes, AT > 0.2 && AT < 0.4 + 0.4 * made->chance[0] ? 2 : 0)
COURSE(little_noise, 3 + 0.01 * made_noise(made))

TEST(what_comes_and_goes_returns)
{
	static const struct truth truths[] = {
		{"teeth", teeth, TREND_RETURNS, 12, 0},
		{"two teeth", two_teeth, TREND_RETURNS, 12, 32},
		{"up and down", up_and_down, TREND_RETURNS, 12, 0},
		{"queue", queue, TREND_RETURNS, 24, 0},
		{"outlier", outlier, TREND_RETURNS, 12, 4},
		{"leak that is freed", leak_that_is_freed, TREND_RETURNS, 12, 0},
		{"comes and goes", comes_and_goes, TREND_RETURNS, 12, 0},
		{"little noise", little_noise, TREND_STEADY, 12, 4},
	};

	made_truths(truths, sizeof(truths) / sizeof(*truths));
}

COURSE(falls, 3 - 2 * AT)
COURSE(falls_with_noise, 3 - 2 * AT + 0.1 * made_noise(made))
COURSE(drops_at_the_end, at + 1 == made->count ? 0 : 3 + 0.05 * made_noise(made))
COURSE(goes_away, AT < 0.1 + 0.85 * made->chance[0] ? 2 : 0)

TEST(what_falls_shrinks)
{
	static const struct truth truths[] = {
		{"falls", falls, TREND_SHRINKS, 12, 0},
		{"falls with noise", falls_with_noise, TREND_SHRINKS, 12, 0},
		{"drops at the end", drops_at_the_end, TREND_SHRINKS, 12, 0},
		{"goes away", goes_away, TREND_SHRINKS, 12, 0},
	};

	made_truths(truths, sizeof(truths) / sizeof(*truths));
}

/* Returns how many of `series` random series of a course are reported as growing. */
static size_t count_alarms(made_course *course, size_t count, size_t series)
{
	static struct made made;
	struct trend_axis axis = {made.times_ms, NULL, count};
	struct trend_judge *judge;
	struct trend trend;
	size_t alarms = 0;

	made.seed = 1;
	made_times(&made, count, true);
	judge = trend_judge_new(&axis);
	assert_non_null(judge);
	for (size_t i = 0; i < series; i++) {
		made_fill(&made, course);
		trend_judge(judge, made.of, &trend);
		alarms += trend.verdict == TREND_GROWS;
	}
	trend_judge_free(judge);
	return alarms;
}

COURSE(noise, 5 + 0.7 * made_noise(made))

/* The test guarantees one in a thousand or less. The limit has a margin because the number is
 * small. */
TEST(noise_hardly_ever_grows)
{
	assert_in_range(count_alarms(noise, 48, 4000), 0, 4 + 5);
	assert_in_range(count_alarms(noise, 12, 4000), 0, 4);
	assert_in_range(count_alarms(noise, 200, 500), 0, 3);
}

COURSE(random_walk, 100 + (made->state += made_noise(made)))
COURSE(noise_with_memory, 100 + (made->state = 0.8 * made->state + made_noise(made)))

/* A drifting walk and a leak cannot be distinguished; docs/over-time.md has the rate. Mann's and
 * Kendall's test alone would report a rising trend for a third of such walks. */
TEST(random_walk_grows_in_fewer_than_third)
{
	assert_in_range(count_alarms(random_walk, 48, 400), 0, 120);
	assert_in_range(count_alarms(random_walk, 200, 400), 0, 120);
	assert_in_range(count_alarms(noise_with_memory, 48, 400), 0, 40);
}

/* The result must not depend on how merged snapshots are aligned with the teeth. */
TEST(teeth_never_grow)
{
	assert_int_equal(count_alarms(teeth, 1000, 200), 0);
	assert_int_equal(count_alarms(teeth, 300, 400), 0);
}
