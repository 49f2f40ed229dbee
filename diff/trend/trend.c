/* Trends: judges a series, and computes its rates and net growth. A series is judged by its bytes
 * or, if bytes never change, by its number of blocks. */
#include "diff/trend/trend.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "diff/trend/trend_parts.h"

/* Minimum number of points for ignoring a part with constant values. With fewer points, the values
 * may be constant by chance. */
#define SILENT_LEAST 4

struct trend_judge {
	const struct trend_axis *axis;
	struct timeline timeline;
	/* `values` has one element per point, `scratch` has two; one allocation holds both */
	double *values, *scratch;
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

struct trend_judge *trend_judge_new(const struct trend_axis *axis)
{
	struct trend_judge *judge = xcalloc(1, sizeof(*judge));

	judge->axis = axis;
	judge->values = xcalloc(axis->count + 1, 3 * sizeof(*judge->values));
	timeline_init(&judge->timeline, axis);
	judge->scratch = judge->values + axis->count;
	return judge;
}

void trend_judge_free(struct trend_judge *judge)
{
	free(judge->values);
	timeline_release(&judge->timeline);
	free(judge);
}

/* The number that is judged. */
enum measure {
	BYTES,
	BLOCKS,
};

static uint64_t measured(const struct block_totals *sum, enum measure measure)
{
	return measure == BYTES ? sum->requested_bytes : sum->block_count;
}

/* Stores the points of the series in `judge->values`, each minus the value of the lowest snapshot.
 * The lowest value is subtracted so that rounding affects all points equally. Returns the value of
 * the lowest snapshot. */
static uint64_t store_values(
	struct trend_judge *judge, const struct block_totals *sums, enum measure measure)
{
	const size_t *from = judge->timeline.snapshot_from;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < judge->axis->count; i++)
		least = measured(&sums[i], measure) < least ? measured(&sums[i], measure) : least;
	for (size_t point = 0; point < judge->timeline.count; point++) {
		double sum = 0;

		for (size_t i = from[point]; i < from[point + 1]; i++)
			sum += (double)(measured(&sums[i], measure) - least);
		judge->values[point] = sum / (double)(from[point + 1] - from[point]);
	}
	return least;
}

/* Marks the parts that are used for judging: parts whose values change, and parts with few points.
 * Returns true if the values of any part change. Parts with constant values are ignored. Their
 * processes do not use the stack, or keep a constant amount. This reveals nothing about other
 * processes. */
static bool find_moves(struct trend_judge *judge)
{
	struct timeline *timeline = &judge->timeline;
	const double *values = judge->values;
	bool any_moves = false;

	for (size_t part = 0; part < timeline->part_count; part++) {
		size_t from = timeline->part_from[part], to = timeline->part_from[part + 1];
		bool moves = false;

		for (size_t i = from + 1; i < to; i++)
			moves |= values[i] < values[from] || values[i] > values[from];
		any_moves |= moves;
		timeline->moves[part] = moves || to - from < SILENT_LEAST;
	}
	return any_moves;
}

/* Computes the slopes of a number and, if `verdict` is not NULL, the verdict. Returns false if the
 * number never changes. */
static bool judge_number(struct trend_judge *judge, const struct block_totals *totals,
	enum measure measure, struct slopes *slopes, enum trend_verdict *verdict)
{
	uint64_t least = store_values(judge, totals, measure);

	*slopes = (struct slopes){0};
	if (!find_moves(judge))
		return false;
	slopes_find(&judge->timeline, judge->values, slopes);
	if (verdict)
		*verdict = verdict_find(
			&judge->timeline, judge->values, judge->scratch, (double)least, slopes);
	return true;
}

static int64_t difference(uint64_t from, uint64_t to)
{
	if (to >= from)
		return to - from > INT64_MAX ? INT64_MAX : (int64_t)(to - from);
	return from - to > INT64_MAX ? -INT64_MAX : -(int64_t)(from - to);
}

/* Adds with saturation. Each sum is below 2^63, but the total of many parts may not be. */
static int64_t add(int64_t a, int64_t b)
{
	if (b > 0 && a > INT64_MAX - b)
		return INT64_MAX;
	if (b < 0 && a < -INT64_MAX - b)
		return -INT64_MAX;
	return a + b;
}

static void add_net(
	const struct trend_judge *judge, const struct block_totals *totals, struct trend *trend)
{
	const struct timeline *timeline = &judge->timeline;

	for (size_t part = 0; part < timeline->part_count; part++) {
		const struct block_totals *first =
			&totals[timeline->snapshot_from[timeline->part_from[part]]];
		const struct block_totals *last =
			&totals[timeline->snapshot_from[timeline->part_from[part + 1]] - 1];

		trend->net_bytes = add(trend->net_bytes,
			difference(first->requested_bytes, last->requested_bytes));
		trend->net_blocks =
			add(trend->net_blocks, difference(first->block_count, last->block_count));
	}
}

/* Returns the size of a stack's blocks, or 0 if the blocks have different sizes. Most stacks have
 * blocks of one size. In that case, the slope of bytes also determines the slope of the number of
 * blocks. */
static double block_bytes(const struct block_totals *totals, size_t count)
{
	uint64_t each = 0;

	for (size_t i = 0; i < count; i++) {
		if (!each && totals[i].block_count)
			each = totals[i].requested_bytes / totals[i].block_count;
		if (totals[i].block_count > (each ? UINT64_MAX / each : 0) ||
			totals[i].block_count * each != totals[i].requested_bytes)
			return 0;
	}
	return (double)each;
}

void trend_judge(struct trend_judge *judge, const struct block_totals *totals, struct trend *trend)
{
	struct slopes bytes, blocks;
	double each;

	*trend = (struct trend){.verdict = TREND_STEADY};
	add_net(judge, totals, trend);
	if (judge_number(judge, totals, BYTES, &bytes, &trend->verdict)) {
		trend->bytes_per_hour = bytes.middle;
		trend->low_bytes_per_hour = bytes.low;
		trend->high_bytes_per_hour = bytes.high;
		each = block_bytes(totals, judge->axis->count);
		if (each > 0)
			trend->blocks_per_hour = bytes.middle / each;
		else if (judge_number(judge, totals, BLOCKS, &blocks, NULL))
			trend->blocks_per_hour = blocks.middle;
	} else if (judge_number(judge, totals, BLOCKS, &blocks, &trend->verdict)) {
		trend->blocks_per_hour = blocks.middle;
	}
	if (judge->timeline.most_points < TREND_LEAST)
		trend->verdict = TREND_TOO_FEW;
}
