#include "diff/trend/trend.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "diff/trend/trend_parts.h"

/* The square of what the correlation of neighbours must be, in standard deviations, to be believed. */
#define MEMORY_SQUARED (1.96 * 1.96)
/* So many snapshots apart nothing is looked for any more. */
#define MEMORY_MOST 100
#define WALK_SQUARED (3.09 * 3.09)

/* The correlation of what is so many snapshots of a part apart, times the sum of squares. */
static double product_apart(const struct trend_plan *plan, const double *rests, size_t apart)
{
	double sum = 0;

	for (size_t part = 0; part < plan->part_count; part++) {
		size_t from = plan->part_from[part], count = plan->part_from[part + 1] - from;

		if (count > apart)
			sum += product(rests + from, rests + from + apart, count - apart);
	}
	return sum;
}

double trend_memory_of(const struct trend_plan *plan, const double *rests)
{
	double square = product(rests, rests, plan->count);
	double both = product_apart(plan, rests, 1), memory = 1;

	if (both <= 0 || both * both * (double)plan->steps < MEMORY_SQUARED * square * square)
		return 1;
	for (size_t apart = 1; both > 0 && apart < MEMORY_MOST; apart++) {
		memory += 2 * both / square;
		both = product_apart(plan, rests, apart + 1);
	}
	return memory;
}

bool trend_memory_is_walk(const struct trend_plan *plan, const double *values)
{
	double square = 0, both = 0, sum = 0;

	for (size_t part = 0; part < plan->part_count; part++) {
		for (size_t i = plan->part_from[part] + 1; i < plan->part_from[part + 1]; i++)
			sum += values[i] - values[i - 1];
	}
	sum /= (double)plan->steps;
	for (size_t part = 0; part < plan->part_count; part++) {
		double last = 0;

		for (size_t i = plan->part_from[part] + 1; i < plan->part_from[part + 1]; i++) {
			double step = values[i] - values[i - 1] - sum;

			both += step * last;
			square += step * step;
			last = step;
		}
	}
	if (both * both * (double)plan->steps > MEMORY_SQUARED * square * square)
		return false;
	sum *= (double)plan->steps;
	return sum <= 0 || sum * sum < WALK_SQUARED * square;
}

#define SILENT_LEAST 4

static bool init_choice(struct moving_choice *choice, const struct moving_parts *moving)
{
	choice->moves = calloc(moving->whole->part_count, sizeof(*choice->moves));
	return choice->moves && !trend_kit_init(&choice->kit, moving->axis);
}

static bool init_moving(struct moving_parts *moving)
{
	size_t count = moving->whole->count;

	moving->moves = calloc(moving->whole->part_count, sizeof(*moving->moves));
	moving->times_ms = calloc(count, sizeof(*moving->times_ms));
	moving->parts = calloc(count, sizeof(*moving->parts));
	if (!moving->moves || !moving->times_ms || !moving->parts)
		return false;
	for (size_t i = 0; i < MOVING_KEPT; i++) {
		if (!init_choice(&moving->kept[i], moving))
			return false;
	}
	return true;
}

int moving_parts_init(
	struct moving_parts *moving, const struct trend_axis *axis, const struct trend_plan *whole)
{
	*moving = (struct moving_parts){.axis = axis, .whole = whole};
	if (whole->part_count < 2 || init_moving(moving))
		return 0;
	moving_parts_release(moving);
	return -ERR_NOMEM;
}

void moving_parts_release(struct moving_parts *moving)
{
	for (size_t i = 0; i < MOVING_KEPT; i++) {
		trend_kit_release(&moving->kept[i].kit);
		free(moving->kept[i].moves);
	}
	free(moving->moves);
	free(moving->times_ms);
	free(moving->parts);
	*moving = (struct moving_parts){0};
}

static bool does_move(const struct trend_plan *plan, size_t part, const double *values)
{
	size_t from = plan->part_from[part], to = plan->part_from[part + 1];

	for (size_t i = from + 1; i < to; i++) {
		if (values[i] < values[from] || values[i] > values[from])
			return true;
	}
	return false;
}

/* A few equal values may be chance, and to leave out those that by chance do not move
 * makes a slope steeper than it is. */
static bool is_silent(const struct trend_plan *plan, size_t part, const double *values)
{
	size_t count = plan->part_from[part + 1] - plan->part_from[part];

	return count >= SILENT_LEAST && !does_move(plan, part, values);
}

/* Whether some move and some are silent. */
static bool find_moves(struct moving_parts *moving, const double *values)
{
	const struct trend_plan *whole = moving->whole;
	bool any_moves = false, any_silent = false;

	for (size_t part = 0; part < whole->part_count; part++) {
		moving->moves[part] = !is_silent(whole, part, values);
		any_moves |= does_move(whole, part, values);
		any_silent |= !moving->moves[part];
	}
	return any_moves && any_silent;
}

static void make_choice(struct moving_parts *moving, struct moving_choice *choice)
{
	const struct trend_plan *whole = moving->whole;
	struct trend_axis axis = {
		moving->axis->times_ms ? moving->times_ms : NULL, moving->parts, 0};

	memcpy(choice->moves, moving->moves, whole->part_count * sizeof(*choice->moves));
	for (size_t part = 0; part < whole->part_count; part++) {
		if (!moving->moves[part])
			continue;
		for (size_t i = whole->part_from[part]; i < whole->part_from[part + 1]; i++) {
			if (axis.times_ms)
				moving->times_ms[axis.count] = moving->axis->times_ms[i];
			moving->parts[axis.count++] = moving->axis->parts[i];
		}
	}
	trend_kit_set(&choice->kit, &axis);
	choice->is_made = true;
}

struct trend_kit *moving_parts_find(struct moving_parts *moving, const double *values)
{
	struct moving_choice *choice;
	size_t bytes = moving->whole->part_count * sizeof(*moving->moves);

	if (moving->whole->part_count < 2 || !find_moves(moving, values))
		return NULL;
	for (size_t i = 0; i < MOVING_KEPT; i++) {
		choice = &moving->kept[i];
		if (choice->is_made && !memcmp(choice->moves, moving->moves, bytes))
			return &choice->kit;
	}
	choice = &moving->kept[moving->next++ % MOVING_KEPT];
	make_choice(moving, choice);
	return &choice->kit;
}

void moving_parts_take(const struct moving_parts *moving, double *values)
{
	const struct trend_plan *whole = moving->whole;
	size_t count = 0;

	for (size_t part = 0; part < whole->part_count; part++) {
		size_t from = whole->part_from[part], to = whole->part_from[part + 1];

		if (!moving->moves[part])
			continue;
		for (size_t i = from; i < to; i++)
			values[count++] = values[i];
	}
}

#define MS_PER_HOUR 3600000.0

static bool is_part_start(const struct trend_axis *axis, size_t at)
{
	return !at || (axis->parts && axis->parts[at] != axis->parts[at - 1]);
}

/* A clock that was put back is read as one that stood still. */
static double hours_between(const struct trend_axis *axis, size_t from, size_t to)
{
	if (!axis->times_ms)
		return (double)(to - from);
	if (axis->times_ms[to] <= axis->times_ms[from])
		return 0;
	return (double)((uint64_t)axis->times_ms[to] - (uint64_t)axis->times_ms[from]) /
	       MS_PER_HOUR;
}

static void find_parts(struct trend_plan *plan, const struct trend_axis *axis)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (is_part_start(axis, i))
			plan->part_from[plan->part_count++] = i;
	}
	plan->part_from[plan->part_count] = plan->count;
}

static void measure_part(struct trend_plan *plan, const struct trend_axis *axis, size_t part)
{
	size_t from = plan->part_from[part], to = plan->part_from[part + 1];

	plan->hours[from] = 0;
	for (size_t i = from + 1; i < to; i++) {
		double hours = hours_between(axis, from, i);

		plan->hours[i] = hours > plan->hours[i - 1] ? hours : plan->hours[i - 1];
	}
	if (to - from > plan->most) {
		plan->most = to - from;
		plan->longest = from;
	}
	if (plan->hours[to - 1] > plan->span)
		plan->span = plan->hours[to - 1];
	plan->steps += to - from - 1;
}

int trend_plan_init(struct trend_plan *plan, const struct trend_axis *axis)
{
	*plan = (struct trend_plan){0};
	plan->part_from = calloc(axis->count + 1, sizeof(*plan->part_from));
	plan->hours = calloc(axis->count + 1, sizeof(*plan->hours));
	if (!plan->part_from || !plan->hours) {
		trend_plan_release(plan);
		return -ERR_NOMEM;
	}
	trend_plan_set(plan, axis);
	return 0;
}

void trend_plan_set(struct trend_plan *plan, const struct trend_axis *axis)
{
	*plan = (struct trend_plan){
		.count = axis->count, .part_from = plan->part_from, .hours = plan->hours};
	find_parts(plan, axis);
	for (size_t part = 0; part < plan->part_count; part++)
		measure_part(plan, axis, part);
}

void trend_plan_release(struct trend_plan *plan)
{
	free(plan->part_from);
	free(plan->hours);
	*plan = (struct trend_plan){0};
}

void trend_plan_centre(const struct trend_plan *plan, double *values)
{
	for (size_t part = 0; part < plan->part_count; part++) {
		size_t from = plan->part_from[part], to = plan->part_from[part + 1];
		double sum = 0;

		for (size_t i = from; i < to; i++)
			sum += values[i];
		sum /= (double)(to - from);
		for (size_t i = from; i < to; i++)
			values[i] -= sum;
	}
}

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
