/* Generated series whose courses are known, for the tests of trends. Over a series, time goes from
 * 0 to 1. Amounts are in units of about 10 MB. Random numbers come from splitmix64. Noise is a sum
 * of twelve random numbers, which is nearly normally distributed. */
#ifndef TREND_MADE_H
#define TREND_MADE_H

#include "tests/unit/t.h"

#include "diff/trend/trend.h"

#define MADE_MOST 1000
#define MADE_UNIT 10000000.0

struct made {
	uint64_t seed;
	size_t count;
	int64_t times_ms[MADE_MOST];
	uint32_t parts[MADE_MOST];
	struct block_totals of[MADE_MOST];
	double at[MADE_MOST]; /* times of the snapshots, 0 to 1 */
	double state; /* for courses that depend on the past */
	double chance[2]; /* numbers from 0 to 1, new for each series: a time and a duration */
};

static inline uint64_t made_number(struct made *made)
{
	uint64_t z = made->seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Returns a number from 0 up to 1. */
static inline double made_chance(struct made *made)
{
	return (double)(made_number(made) >> 11) / 9007199254740992.0;
}

/* Returns noise with standard deviation 1. */
static inline double made_noise(struct made *made)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += made_chance(made);
	return sum;
}

/* Sets the times of snapshots every half hour. Unless is_even is set, moves each time by up to 40
 * percent of half an hour. */
static inline void made_times(struct made *made, size_t count, bool is_even)
{
	const int64_t every = 1800000, from = 1795000000000;

	made->count = count;
	for (size_t i = 0; i < count; i++) {
		double off = is_even ? 0 : 0.8 * made_chance(made) - 0.4;

		made->times_ms[i] = from + (int64_t)i * every + (int64_t)(off * (double)every);
		made->parts[i] = 0;
	}
	for (size_t i = 0; i < count; i++)
		made->at[i] = (double)(made->times_ms[i] - made->times_ms[0]) /
			      (double)(made->times_ms[count - 1] - made->times_ms[0]);
}

static inline void made_write(struct made *made, size_t at, double units)
{
	double bytes = units * MADE_UNIT + 0.5;
	uint64_t whole = bytes > 0 ? (uint64_t)bytes : 0;

	made->of[at] = (struct block_totals){(whole + 99) / 100, whole, 0};
}

/* Returns a series' amount at a snapshot, in units. */
typedef double made_course(struct made *made, size_t at);

/* Defines a course by a formula. AT is the time; x is a value that the formula uses several
 * times. */
#define COURSE_BY(name, value, units)                                                              \
	static double name(struct made *made, size_t at)                                           \
	{                                                                                          \
		double x = value;                                                                  \
                                                                                                   \
		(void)made;                                                                        \
		(void)at;                                                                          \
		(void)x;                                                                           \
		return units;                                                                      \
	}
#define COURSE(name, units) COURSE_BY(name, 0, units)
#define AT (made->at[at])

/* Returns a snapshot's position in a tooth of `period` snapshots, from 0 up to 1. */
static inline double made_tooth(const struct made *made, size_t at, double period)
{
	double x = (double)at / period + made->chance[1];

	return x - (double)(size_t)x;
}

static inline void made_fill(struct made *made, made_course *course)
{
	made->state = 0;
	made->chance[0] = made_chance(made);
	made->chance[1] = made_chance(made);
	for (size_t i = 0; i < made->count; i++)
		made_write(made, i, course(made, i));
}

static inline struct trend made_judge(struct made *made)
{
	struct trend_axis axis = {made->times_ms, made->parts, made->count};
	struct trend_judge *judge = trend_judge_new(&axis);
	struct trend trend;

	assert_non_null(judge);
	trend_judge(judge, made->of, &trend);
	trend_judge_free(judge);
	return trend;
}

/* A course, its true verdict, the number of snapshots at which it becomes detectable, and how many
 * of a hundred random series may be misjudged because chance hides the course. */
struct truth {
	const char *name;
	made_course *course;
	enum trend_verdict verdict;
	size_t least;
	size_t misses;
};

#define TRUTH_SEEDS 25

/* Tests every truth with each number of snapshots, at even and uneven intervals. */
static inline void made_truths(const struct truth *truths, size_t count)
{
	static const size_t counts[] = {12, 24, 48, 200};
	static struct made made;

	for (size_t i = 0; i < count * 8; i++) {
		const struct truth *truth = &truths[i / 8];
		size_t n = counts[i / 2 % 4], missed = 0;

		for (uint64_t seed = 0; n >= truth->least && seed < TRUTH_SEEDS; seed++) {
			made.seed = seed * 1000003 + n;
			made_times(&made, n, i % 2);
			made_fill(&made, truth->course);
			missed += made_judge(&made).verdict != truth->verdict;
		}
		if (missed * 100 > truth->misses * TRUTH_SEEDS)
			fail_msg("%s: %zu of %d series of %zu snapshots misread", truth->name,
				missed, TRUTH_SEEDS, n);
	}
}

/* 2^-x */
static inline double made_half(double x)
{
	double small = x * 0.6931471805599453 / 1048576, result = 1 - small + small * small / 2;

	for (int i = 0; i < 20; i++)
		result *= result;
	return result;
}

#endif
