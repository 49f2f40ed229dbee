#include <stdlib.h>

#include "core/base/err.h"
#include "diff/trend/trend_parts.h"

/* Twice the logarithm of the likelihood ratio that waves must make the best course better by. */
#define GAIN_WAVES 30.0
/* That a course may have besides. */
#define STEPS 2

static bool init_calm(struct trend_kit *kit, const struct trend_axis *axis)
{
	if (waves_init(&kit->waves, &kit->plan, axis))
		return false;
	if (!kit->waves.numbers)
		return true;
	kit->calm = calloc(kit->plan.count, sizeof(*kit->calm));
	return kit->calm && !shapes_init(&kit->calm_shapes, &kit->plan, &kit->waves);
}

static bool init_kit(struct trend_kit *kit, const struct trend_axis *axis)
{
	kit->starts = calloc(axis->count + 1, sizeof(*kit->starts));
	if (!kit->starts)
		return false;
	return !trend_plan_init(&kit->plan, axis) && !slope_pairs_init(&kit->pairs, &kit->plan) &&
	       !shapes_init(&kit->shapes, &kit->plan, NULL) && init_calm(kit, axis);
}

int trend_kit_init(struct trend_kit *kit, const struct trend_axis *axis)
{
	*kit = (struct trend_kit){0};
	if (init_kit(kit, axis))
		return 0;
	trend_kit_release(kit);
	return -ERR_NOMEM;
}

void trend_kit_release(struct trend_kit *kit)
{
	free(kit->calm);
	free(kit->starts);
	shapes_release(&kit->calm_shapes);
	waves_release(&kit->waves);
	shapes_release(&kit->shapes);
	slope_pairs_release(&kit->pairs);
	trend_plan_release(&kit->plan);
}

void trend_kit_set(struct trend_kit *kit, const struct trend_axis *axis)
{
	trend_plan_set(&kit->plan, axis);
	slope_pairs_set(&kit->pairs);
	shapes_set(&kit->shapes);
	waves_set(&kit->waves, &kit->plan, axis);
	if (kit->waves.count)
		shapes_set(&kit->calm_shapes);
}

static double values_range(const double *values, size_t count)
{
	double least = values[0], highest = values[0];

	for (size_t i = 1; i < count; i++) {
		least = values[i] < least ? values[i] : least;
		highest = values[i] > highest ? values[i] : highest;
	}
	return highest - least;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double rest_of_stairs(struct trend_kit *kit, const double *values)
{
	struct stairs_end end = {STEPS, 1, 0};
	struct stairs stairs = {.starts = kit->starts};

	stairs_climb(&stairs, &kit->plan, values, &end);
	return stairs.rest;
}

/* What is left without waves by the best of all courses, or by one that stays and some steps more. */
static double rest_without(struct trend_kit *kit, const double *values, double range)
{
	struct shapes_fit fit;
	double rest;

	shapes_fit(&kit->shapes, values, range, &fit);
	rest = least(fit.leak.rest, fit.stay.rest);
	rest = least(rest, rest_of_stairs(kit, values));
	return least(rest, rest_of_stairs(kit, shapes_rests(&kit->shapes, &fit.stay)));
}

const double *trend_kit_calm(struct trend_kit *kit, const double *values)
{
	size_t count = kit->plan.count;
	struct shapes_fit beside;
	const struct course *course;
	double range, without;

	if (!kit->waves.count)
		return NULL;
	range = values_range(values, count);
	without = rest_without(kit, values, range);
	shapes_fit(&kit->calm_shapes, values, range, &beside);
	course = beside.is_leak ? &beside.leak : &beside.stay;
	if (!shapes_is_better(&kit->calm_shapes, &beside, course, without, GAIN_WAVES))
		return NULL;
	for (size_t i = 0; i < count; i++)
		kit->calm[i] = values[i];
	waves_take_out(&kit->waves, shapes_rests(&kit->shapes, course), kit->calm);
	return kit->calm;
}

#define LEAST 4
#define TESTED 8
#define MOST 64
/* Fewer snapshots for each valley are noise, where there are too few valleys to test them. */
#define TOOTH 5
/* One in two thousand, one-sided. */
#define VALLEYS_SIGNIFICANT 3.29

/* The values from..to of a part, or the same upside down: up is 1 or -1. */
struct stretch {
	const double *values;
	size_t count;
	double up;
};

/* Values that are lower than those on both sides; of equal ones one. */
static size_t find_turns(const struct stretch *stretch, double *turns)
{
	size_t count = 0;
	bool falls = false;

	for (size_t i = 1; i < stretch->count; i++) {
		double step = (stretch->values[i] - stretch->values[i - 1]) * stretch->up;

		if (step > 0 && falls)
			turns[count++] = stretch->values[i - 1];
		if (step > 0 || step < 0)
			falls = step < 0;
	}
	return count;
}

/* Of very many, the lowest of each few: the test takes time by the square. */
static size_t thin_out(double *turns, size_t count, double up)
{
	size_t each = (count + MOST - 1) / MOST, kept = 0;

	if (count <= MOST)
		return count;
	for (size_t i = 0; i + each <= count; i += each) {
		double lowest = turns[i];

		for (size_t k = i; k < i + each; k++) {
			if (turns[k] * up < lowest * up)
				lowest = turns[k];
		}
		turns[kept++] = lowest;
	}
	return kept;
}

static bool all_rise(const double *turns, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (turns[i] <= turns[i - 1])
			return false;
	}
	return true;
}

/* As shapes_memory(), of the turns about a line, by the correlation of neighbours alone. */
static double memory_of(const double *turns, size_t count)
{
	double n = (double)count, sum = 0, slope = 0, both = 0, square = 0, last = 0;

	for (size_t i = 0; i < count; i++)
		sum += turns[i];
	sum /= n;
	for (size_t i = 0; i < count; i++)
		slope += (turns[i] - sum) * ((double)i - (n - 1) / 2);
	slope /= n * (n * n - 1) / 12;
	for (size_t i = 0; i < count; i++) {
		double rest = turns[i] - sum - slope * ((double)i - (n - 1) / 2);

		both += rest * last;
		square += rest * rest;
		last = rest;
	}
	if (both <= 0 || both * both * n < 1.96 * 1.96 * square * square)
		return 1;
	return (square + both) / (square - both);
}

static bool mostly_rise(const double *turns, size_t count)
{
	double n = (double)count, score = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = i + 1; k < count; k++)
			score += (turns[k] > turns[i]) - (turns[k] < turns[i]);
	}
	return score > 1 && (score - 1) * (score - 1) >= VALLEYS_SIGNIFICANT * VALLEYS_SIGNIFICANT *
								 n * (n - 1) * (2 * n + 5) / 18 *
								 memory_of(turns, count);
}

/* By how much the turns rise from the first to the last; 0: they do not. */
static double turns_rise(const struct stretch *stretch, double *turns)
{
	size_t count = find_turns(stretch, turns);

	if (count < LEAST || (count < TESTED && count * TOOTH > stretch->count))
		return 0;
	count = thin_out(turns, count, stretch->up);
	if (count < TESTED ? !all_rise(turns, count) : !mostly_rise(turns, count))
		return 0;
	return turns[count - 1] > turns[0] ? turns[count - 1] - turns[0] : 0;
}

static double typical_step(const struct stretch *stretch, double *steps)
{
	size_t rank = (stretch->count - 1) / 2;

	for (size_t i = 1; i < stretch->count; i++) {
		double step = stretch->values[i] - stretch->values[i - 1];

		steps[i - 1] = step < 0 ? -step : step;
	}
	ranks_select(steps, stretch->count - 1, &rank, 1);
	return steps[rank];
}

bool valleys_rise(const struct trend_plan *plan, const double *values, double *scratch)
{
	struct stretch stretch = {.count = plan->most, .up = 1};
	double rise;

	if (plan->most < LEAST * TOOTH)
		return false;
	stretch.values = values + plan->longest;
	rise = turns_rise(&stretch, scratch);
	if (!(rise > 0))
		return false;
	stretch.up = -1;
	return turns_rise(&stretch, scratch) > 0 && rise > 2 * typical_step(&stretch, scratch);
}

/* Where no test can be significant only what always rises grows, and when the last step is this part of
 * the average at least. */
#define STILL 0.33
/* In fewer snapshots a third is no beginning. */
#define FELL_BACK_LEAST 7
/* One in a thousand, one-sided: standard deviations. */
#define SIGNIFICANT 3.09
/* A spread is negligible below this part of the highest value. */
#define NEGLIGIBLE 0.1
/* The end of a series: a third, at least and at most so many snapshots; one in twenty. */
#define END_LEAST 5
#define END_MOST 64
#define END_SIGNIFICANT 1.645
/* What never falls and rises so often goes on. */
#define RISES_LEAST 4
/* With more memory than this a course may be a random walk. */
#define WALK_MEMORY 1.7
/* A course that leaves less than this part of the squares needs no test against memory. */
#define PLAIN 0.05

/* What is asked of a series, whichever way it goes: it is turned upside down to ask for falling. */
struct reading {
	const struct verdict_tools *tools;
	const double *values;
	double score, variance; /* of Mann and Kendall */
	double range; /* greatest less least */
	bool is_spread; /* the range matters */
};

static bool is_significant(const struct reading *reading, double memory)
{
	double score = reading->score - 1;

	return score > 0 && score * score >= SIGNIFICANT * SIGNIFICANT * reading->variance * memory;
}

/* Whether the test cannot be significant, whatever the series: there are too few snapshots in each part. */
static bool is_too_few(const struct trend_plan *plan)
{
	double score = -1, variance = 0;

	for (size_t part = 0; part < plan->part_count; part++) {
		double n = (double)(plan->part_from[part + 1] - plan->part_from[part]);

		score += n * (n - 1) / 2;
		variance += n * (n - 1) * (2 * n + 5) / 18;
	}
	return score < 0 || score * score < SIGNIFICANT * SIGNIFICANT * variance;
}

struct steps {
	size_t rising, falling;
};

static struct steps count_steps(const struct reading *reading)
{
	const struct trend_plan *plan = reading->tools->plan;
	struct steps steps = {0};

	for (size_t part = 0; part < plan->part_count; part++) {
		for (size_t i = plan->part_from[part] + 1; i < plan->part_from[part + 1]; i++) {
			steps.rising += reading->values[i] > reading->values[i - 1];
			steps.falling += reading->values[i] < reading->values[i - 1];
		}
	}
	return steps;
}

static double least_of(const double *values, size_t count)
{
	double least = values[0];

	for (size_t i = 1; i < count; i++)
		least = values[i] < least ? values[i] : least;
	return least;
}

static double highest_of(const double *values, size_t count)
{
	double highest = values[0];

	for (size_t i = 1; i < count; i++)
		highest = values[i] > highest ? values[i] : highest;
	return highest;
}

/* In the end it is where it was in the beginning: nothing is left of what it rose by. */
static bool fell_back(const struct reading *reading)
{
	const struct trend_plan *plan = reading->tools->plan;
	size_t from = plan->part_from[plan->part_count - 1], count = plan->count - from;

	return count > FELL_BACK_LEAST &&
	       reading->values[plan->count - 1] <= least_of(reading->values + from, count / 3);
}

/* Whether all from a snapshot on are above all before it, with at least so many on each side. */
static bool is_apart(const struct reading *reading, size_t least_count)
{
	size_t count = reading->tools->plan->count;
	double *least = reading->tools->scratch, highest = reading->values[0];

	least[count - 1] = reading->values[count - 1];
	for (size_t i = count - 1; i-- > 0;)
		least[i] = reading->values[i] < least[i + 1] ? reading->values[i] : least[i + 1];
	for (size_t i = 1; i + least_count <= count; i++) {
		if (i >= least_count && least[i] > highest)
			return true;
		highest = reading->values[i] > highest ? reading->values[i] : highest;
	}
	return false;
}

static bool is_apart_at(const double *values, size_t count, size_t from)
{
	return least_of(values + from, count - from) > highest_of(values, from);
}

/*
 * It rose and stays, though too few snapshots are before or after that for a test of their order. One
 * or two may be apart by chance, or where a tooth begins.
 */
static bool rose_for_good(const struct reading *reading)
{
	struct shapes *shapes = reading->tools->shapes;
	size_t count = reading->tools->plan->count;
	struct shapes_fit fit;

	if (reading->tools->plan->part_count > 1 || !reading->is_spread || !is_apart(reading, 1))
		return false;
	shapes_fit(shapes, reading->values, reading->range, &fit);
	if (fit.level_rest < fit.stay.rest * shapes->strongest + fit.slight)
		return false;
	if (fit.stay.rest <= PLAIN * fit.level_rest || is_apart(reading, 3))
		return true;
	return fit.stay.kind == SHAPE_STEP && is_apart_at(reading->values, count, fit.stay.which);
}

/* Whether the end alone rises, too: what a warm-up leaves is not taken for a leak. */
static bool end_rises(const struct reading *reading)
{
	const struct trend_plan *plan = reading->tools->plan;
	size_t end = plan->most / 3 > END_LEAST ? plan->most / 3 : END_LEAST;
	size_t stride = end / END_MOST + 1;
	const double *values = reading->values + plan->longest + plan->most - 1;
	double score = 0, n = 0;

	end = end < plan->most ? end : plan->most;
	for (size_t i = 0; i < end; i += stride, n++) {
		for (size_t k = i + stride; k < end; k += stride)
			score += (*(values - i) > *(values - k)) - (*(values - i) < *(values - k));
	}
	return score > 1 && (score - 1) * (score - 1) >= END_SIGNIFICANT * END_SIGNIFICANT * n *
								 (n - 1) * (2 * n + 5) / 18;
}

/* Whether at the last it rises by as much per hour as on average, or by a part of that. */
static bool still_rises(const struct reading *reading)
{
	const struct trend_plan *plan = reading->tools->plan;
	const double *values = reading->values + plan->longest,
		     *hours = plan->hours + plan->longest;
	size_t last = plan->most - 1;
	double rise = values[last] - values[last - 1], all = values[last] - values[0];

	return rise * hours[last] >= STILL * all * (hours[last] - hours[last - 1]);
}

/* TREND_GROWS, TREND_GREW_ONCE, or TREND_STEADY: it cannot be said to have risen. Any course can be
 * laid through so few. */
static enum trend_verdict judge_few(const struct reading *reading, const struct steps *steps)
{
	const struct trend_plan *plan = reading->tools->plan;

	if (steps->falling)
		return rose_for_good(reading) ? TREND_GREW_ONCE : TREND_STEADY;
	if (steps->rising < plan->steps || plan->most < 3 || !still_rises(reading))
		return TREND_GREW_ONCE;
	return TREND_GROWS;
}

/* Whether it is flat at the last for longer than ever before. */
static bool is_at_rest(const struct reading *reading)
{
	const struct trend_plan *plan = reading->tools->plan;
	const double *values = reading->values + plan->longest;
	size_t longest = 0, flat = 0;

	for (size_t i = 1; i < plan->most; i++) {
		if (values[i] <= values[i - 1]) {
			flat++;
			continue;
		}
		longest = flat > longest ? flat : longest;
		flat = 0;
	}
	return flat > longest;
}

/* What never falls has memory by that alone. Few steps, or a rest after them, are no leak by it. */
static bool keeps_rising(const struct reading *reading, const struct steps *steps)
{
	return !steps->falling && steps->rising >= RISES_LEAST && !is_at_rest(reading);
}

/* What a series that rises is told by: whether it is a leak, and the memory of what that leaves. */
static bool is_leak_told(const struct reading *reading, double *memory)
{
	const struct verdict_tools *tools = reading->tools;
	struct leaps leaps = {.starts = tools->starts, .rests = tools->scratch};
	struct shapes_fit fit;
	const struct course *course;

	shapes_fit(tools->shapes, reading->values, reading->range, &fit);
	if (fit.is_leak && fit.leak.is_both && !end_rises(reading))
		fit.is_leak = false;
	if (leaps_find(&leaps, tools->shapes, reading->values, &fit)) {
		*memory = leaps.memory;
		return leaps.is_leak;
	}
	course = fit.is_leak ? &fit.leak : &fit.stay;
	if (course->rest > PLAIN * fit.level_rest)
		*memory = shapes_memory(tools->shapes, &fit, course);
	return fit.is_leak;
}

static enum trend_verdict judge_course(const struct reading *reading, const struct steps *steps)
{
	double memory = 1;
	bool is_leak = is_leak_told(reading, &memory);

	if (keeps_rising(reading, steps))
		memory = 1;
	if (memory > WALK_MEMORY && trend_memory_is_walk(reading->tools->plan, reading->values))
		return TREND_STEADY;
	if (!is_significant(reading, memory))
		return TREND_STEADY;
	return is_leak ? TREND_GROWS : TREND_GREW_ONCE;
}

static enum trend_verdict judge_rise(const struct reading *reading)
{
	struct steps steps = count_steps(reading);
	bool never_falls = steps.rising && !steps.falling;
	enum trend_verdict verdict = TREND_STEADY;

	if (!steps.rising)
		return TREND_STEADY;
	if (is_too_few(reading->tools->plan))
		return judge_few(reading, &steps);
	if (fell_back(reading))
		return TREND_STEADY;
	if (is_significant(reading, 1))
		verdict = judge_course(reading, &steps);
	if (verdict != TREND_STEADY)
		return verdict;
	if (valleys_rise(reading->tools->plan, reading->values, reading->tools->scratch))
		return TREND_GROWS;
	return never_falls || rose_for_good(reading) ? TREND_GREW_ONCE : TREND_STEADY;
}

static enum trend_verdict judge_fall(struct reading *reading)
{
	const struct trend_plan *plan = reading->tools->plan;
	double *turned = reading->tools->turned;

	for (size_t i = 0; i < plan->count; i++)
		turned[i] = reading->range - reading->values[i];
	reading->values = turned;
	reading->score = -reading->score;
	return judge_rise(reading) == TREND_STEADY ? TREND_STEADY : TREND_SHRINKS;
}

static double range_of(const struct trend_plan *plan, const double *values)
{
	double range = 0;

	for (size_t part = 0; part < plan->part_count; part++) {
		double low = values[plan->part_from[part]], high = low;

		for (size_t i = plan->part_from[part] + 1; i < plan->part_from[part + 1]; i++) {
			low = values[i] < low ? values[i] : low;
			high = values[i] > high ? values[i] : high;
		}
		range = high - low > range ? high - low : range;
	}
	return range;
}

enum trend_verdict verdict_of_rest(
	const struct trend_plan *plan, const double *values, double level)
{
	double highest = level + highest_of(values, plan->count);

	return range_of(plan, values) > NEGLIGIBLE * highest ? TREND_RETURNS : TREND_STEADY;
}

enum trend_verdict verdict_find(const struct verdict_tools *tools, const double *values,
	double level, const struct slopes *slopes)
{
	struct reading reading = {tools, values, slopes->score, slopes->variance, 0, false};
	enum trend_verdict verdict;

	if (tools->plan->steps < 2)
		return TREND_STEADY;
	reading.range = range_of(tools->plan, values);
	reading.is_spread = verdict_of_rest(tools->plan, values, level) == TREND_RETURNS;
	verdict = judge_rise(&reading);
	if (verdict != TREND_STEADY)
		return verdict;
	verdict = judge_fall(&reading);
	if (verdict != TREND_STEADY)
		return verdict;
	return reading.is_spread ? TREND_RETURNS : TREND_STEADY;
}
