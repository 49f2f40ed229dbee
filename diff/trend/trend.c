#include "diff/trend/trend.h"

#include <stdlib.h>

#include "diff/trend/moving_parts.h"
#include "diff/trend/verdict.h"

struct trend_judge {
	const struct trend_axis *axis;
	struct trend_kit whole;
	struct moving_parts moving;
	/* Of each snapshot, less the least of them; the first is the owner of the others. */
	double *bytes, *blocks, *turned, *scratch;
};

/* A number of the series, less the least of them: what is lost to rounding is lost to all alike. */
struct measure {
	double *values;
	double least;
	bool moves; /* within a part */
};

const char *trend_verdict_name(enum trend_verdict verdict)
{
	static const char *const names[TREND_VERDICTS] = {
		[TREND_GROWS] = "grows",
		[TREND_GREW_ONCE] = "grew-once",
		[TREND_RETURNS] = "returns",
		[TREND_STEADY] = "steady",
		[TREND_SHRINKS] = "shrinks",
		[TREND_TOO_FEW] = "too-few",
	};

	return names[verdict];
}

static bool init_judge(struct trend_judge *judge)
{
	size_t count = judge->axis->count + 1;

	if (trend_kit_init(&judge->whole, judge->axis))
		return false;
	if (moving_parts_init(&judge->moving, judge->axis, &judge->whole.plan))
		return false;
	judge->bytes = calloc(count, 4 * sizeof(*judge->bytes));
	if (!judge->bytes)
		return false;
	judge->blocks = judge->bytes + count;
	judge->turned = judge->blocks + count;
	judge->scratch = judge->turned + count;
	return true;
}

struct trend_judge *trend_judge_new(const struct trend_axis *axis)
{
	struct trend_judge *judge = calloc(1, sizeof(*judge));

	if (!judge)
		return NULL;
	judge->axis = axis;
	if (!init_judge(judge)) {
		trend_judge_free(judge);
		return NULL;
	}
	return judge;
}

void trend_judge_free(struct trend_judge *judge)
{
	if (!judge)
		return;
	free(judge->bytes);
	moving_parts_release(&judge->moving);
	trend_kit_release(&judge->whole);
	free(judge);
}

/* What is judged of a sum. */
enum of_sum {
	BYTES,
	BLOCKS,
};

static uint64_t number_of(const struct census *sum, enum of_sum what)
{
	return what == BYTES ? sum->requested_bytes : sum->block_count;
}

static bool moves(const struct trend_plan *plan, const struct census *of, enum of_sum what)
{
	for (size_t part = 0; part < plan->part_count; part++) {
		for (size_t i = plan->part_from[part] + 1; i < plan->part_from[part + 1]; i++) {
			if (number_of(&of[i], what) != number_of(&of[i - 1], what))
				return true;
		}
	}
	return false;
}

/* Puts into values by how much each is more than the least. */
static struct measure measure_sums(
	const struct trend_judge *judge, const struct census *of, enum of_sum what, double *values)
{
	const struct trend_plan *plan = &judge->whole.plan;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < plan->count; i++) {
		uint64_t number = number_of(&of[i], what);

		least = number < least ? number : least;
	}
	for (size_t i = 0; i < plan->count; i++)
		values[i] = (double)(number_of(&of[i], what) - least);
	return (struct measure){values, (double)least, moves(plan, of, what)};
}

static int64_t difference(uint64_t from, uint64_t to)
{
	if (to >= from)
		return to - from > INT64_MAX ? INT64_MAX : (int64_t)(to - from);
	return from - to > INT64_MAX ? -INT64_MAX : -(int64_t)(from - to);
}

/* Sums are below 2^63, but those of many parts may add up to more. */
static int64_t add(int64_t a, int64_t b)
{
	if (b > 0 && a > INT64_MAX - b)
		return INT64_MAX;
	if (b < 0 && a < -INT64_MAX - b)
		return -INT64_MAX;
	return a + b;
}

static void add_net(const struct trend_judge *judge, const struct census *of, struct trend *trend)
{
	const struct trend_plan *plan = &judge->whole.plan;

	for (size_t part = 0; part < plan->part_count; part++) {
		const struct census *first = &of[plan->part_from[part]];
		const struct census *last = &of[plan->part_from[part + 1] - 1];

		trend->net_bytes = add(trend->net_bytes,
			difference(first->requested_bytes, last->requested_bytes));
		trend->net_blocks =
			add(trend->net_blocks, difference(first->block_count, last->block_count));
	}
}

/* All blocks of a stack are mostly of one size, and then their slope is known. */
static double block_bytes(const struct trend_judge *judge, const struct census *of)
{
	uint64_t each = 0;

	for (size_t i = 0; i < judge->whole.plan.count; i++) {
		if (!each && of[i].block_count)
			each = of[i].requested_bytes / of[i].block_count;
		if (of[i].block_count > (each ? UINT64_MAX / each : 0) ||
			of[i].block_count * each != of[i].requested_bytes)
			return 0;
	}
	return (double)each;
}

/* What to judge the values with; those of parts that say nothing are taken out of them. */
static struct trend_kit *choose_kit(struct trend_judge *judge, const struct measure *measure)
{
	struct trend_kit *kit = moving_parts_find(&judge->moving, measure->values);

	if (!kit)
		return &judge->whole;
	moving_parts_take(&judge->moving, measure->values);
	return kit;
}

static enum trend_verdict judge_values(
	struct trend_judge *judge, const struct measure *measure, struct slopes *slopes)
{
	struct trend_kit *kit = choose_kit(judge, measure);
	struct verdict_tools tools = {
		&kit->plan, &kit->shapes, judge->turned, judge->scratch, kit->starts};
	const double *calm = trend_kit_calm(kit, measure->values);
	enum trend_verdict verdict;

	slope_pairs_judge(&kit->pairs, calm ? calm : measure->values, slopes);
	verdict = verdict_find(&tools, calm ? calm : measure->values, measure->least, slopes);
	if (calm && verdict == TREND_STEADY)
		return verdict_of_rest(&kit->plan, measure->values, measure->least);
	return verdict;
}

static void judge_blocks(
	struct trend_judge *judge, const struct measure *blocks, struct trend *trend)
{
	struct slopes slopes;

	trend->verdict = judge_values(judge, blocks, &slopes);
	trend->blocks_per_hour = slopes.middle;
}

static void judge_bytes(struct trend_judge *judge, const struct measure *bytes, struct trend *trend)
{
	struct slopes slopes;

	trend->verdict = judge_values(judge, bytes, &slopes);
	trend->bytes_per_hour = slopes.middle;
	trend->low_bytes_per_hour = slopes.low;
	trend->high_bytes_per_hour = slopes.high;
}

static double blocks_slope(struct trend_judge *judge, const struct measure *blocks)
{
	struct trend_kit *kit = choose_kit(judge, blocks);

	return slope_pairs_middle(&kit->pairs, blocks->values);
}

static void judge_series(struct trend_judge *judge, const struct census *of, struct trend *trend)
{
	struct measure bytes, blocks;
	double each;

	*trend = (struct trend){.verdict = TREND_STEADY};
	if (!judge->whole.plan.count)
		return;
	bytes = measure_sums(judge, of, BYTES, judge->bytes);
	blocks = measure_sums(judge, of, BLOCKS, judge->blocks);
	add_net(judge, of, trend);
	if (!bytes.moves) {
		if (blocks.moves)
			judge_blocks(judge, &blocks, trend);
		return;
	}
	judge_bytes(judge, &bytes, trend);
	each = block_bytes(judge, of);
	if (each > 0)
		trend->blocks_per_hour = trend->bytes_per_hour / each;
	else if (blocks.moves)
		trend->blocks_per_hour = blocks_slope(judge, &blocks);
}

void trend_judge(struct trend_judge *judge, const struct census *of, struct trend *trend)
{
	judge_series(judge, of, trend);
	if (judge->whole.plan.most < TREND_LEAST)
		trend->verdict = TREND_TOO_FEW;
}
