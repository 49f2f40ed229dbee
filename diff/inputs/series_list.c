#include "diff/inputs/series_list.h"

#include <stdlib.h>
#include <string.h>

#include "diff/inputs/dump_order.h"
#include "diff/inputs/input_say.h"
#include "diff/match/series_ends.h"

/* What is needed while series are made. */
struct lister {
	struct inputs *inputs;
	const struct options *options;
	FILE *say;
	struct timed_dump *order; /* of all dumps */
	size_t count;
	size_t *series_of; /* by process */
	size_t process_count, series_count;
};

/* ---------------------------------------------------------------- a pair */

/* One dump, or two: the older one first when both tell their time. */
static int list_pair(struct inputs *inputs, FILE *say)
{
	struct sums *dumps = inputs->dumps;
	int rc = 0;

	inputs->series = calloc(1, sizeof(*inputs->series));
	if (!inputs->series)
		return -ERR_NOMEM;
	inputs->series_count = 1;
	inputs->series[0].count = inputs->dump_count;
	for (size_t i = 0; !rc && i < inputs->dump_count; i++)
		rc = say_warnings(say, dumps[i].path, &dumps[i]);
	if (rc || inputs->dump_count < 2)
		return rc;
	if (dumps[0].time_ms && dumps[1].time_ms && dumps[0].time_ms > dumps[1].time_ms) {
		struct sums newer = dumps[0];

		dumps[0] = dumps[1];
		dumps[1] = newer;
	}
	if (!dump_same_process(&dumps[0], &dumps[1]))
		return say_warning(say, dumps[1].path, "",
			"it is of another process than the dump it is compared with");
	return 0;
}

/* ---------------------------------------------------------------- what is not used */

static int say_unused(const struct lister *lister, const struct timed_dump *dump)
{
	char why[700];

	if (dump->use == USE_TIMELESS)
		return say_left_out(lister->say, dump->dump->path,
			"it tells no time, and --since and --until go by it");
	if (dump->use != USE_DOUBLE)
		return 0;
	snprintf(why, sizeof(why), "it is the same snapshot as %.600s",
		lister->inputs->dumps[dump->twin].path);
	return say_left_out(lister->say, dump->dump->path, why);
}

/* A process whose snapshots are all warm-up would else be gone without a word. */
static int say_all_warm_up(const struct lister *lister)
{
	const struct timed_dump *order = lister->order;
	int rc = 0;

	for (size_t i = 0, next; !rc && i < lister->count; i = next) {
		bool is_left = false, is_warm = false;

		for (next = i; next < lister->count && order[next].process == order[i].process;
			next++) {
			is_left |= order[next].use == USE_IT;
			is_warm |= order[next].use == USE_WARM_UP;
		}
		if (is_warm && !is_left)
			rc = say_left_out(lister->say, order[next - 1].dump->path,
				"it and all others of its process are its warm-up, or left out "
				"too");
	}
	return rc;
}

static int say_all_unused(const struct lister *lister)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < lister->count; i++)
		rc = say_unused(lister, &lister->order[i]);
	return rc ? rc : say_all_warm_up(lister);
}

/* ---------------------------------------------------------------- series */

/* The series of an earlier process that this one goes on with, or how many series there are. */
static size_t series_to_join(
	const struct lister *lister, const struct timed_dump *const *first, size_t process)
{
	for (size_t i = 0; lister->options->across_restarts && i < process; i++) {
		if (first[i] && dump_same_image(first[i]->dump, first[process]->dump))
			return lister->series_of[i];
	}
	return lister->series_count;
}

/* Numbers the series by their first snapshots. */
static int number_series(struct lister *lister)
{
	const struct timed_dump **first =
		calloc(lister->count + 1, sizeof(const struct timed_dump *));

	if (!first)
		return -ERR_NOMEM;
	for (size_t i = 0; i < lister->count; i++) {
		size_t process = lister->order[i].process;

		lister->process_count = process + 1;
		if (!first[process] && lister->order[i].use == USE_IT)
			first[process] = &lister->order[i];
	}
	for (size_t i = 0; i < lister->process_count; i++) {
		if (!first[i])
			continue;
		lister->series_of[i] = series_to_join(lister, first, i);
		lister->series_count += lister->series_of[i] == lister->series_count;
	}
	free(first);
	return 0;
}

static bool is_of(const struct lister *lister, const struct timed_dump *dump, size_t number)
{
	return dump->use == USE_IT && lister->series_of[dump->process] == number;
}

static bool is_wanted(const struct lister *lister, size_t number)
{
	return !lister->options->series || lister->options->series == number + 1;
}

/* Says why there are no rates, where that is so. Growth within no time at all is none per hour, whatever it
 * is. */
static int check_times(const struct lister *lister, struct series *series, const char *path)
{
	struct trend_axis *axis = &series->axis;
	const char *why = axis->times_ms ? "all dumps of its process tell the same time" :
					   "not all dumps of its process tell their time";
	char words[200];

	if (axis_longest(axis) < 2 && (axis->times_ms || axis->count < 2))
		return 0;
	if (axis_time_passes(axis))
		return 0;
	axis->times_ms = NULL;
	snprintf(words, sizeof(words),
		"%s: they are in the order in which they were given, and there are no rates", why);
	return say_warning(lister->say, path, "", words);
}

/* Moves the dumps of a series behind those that are there, and fills in what they share. */
static int take_series(struct lister *lister, size_t number, struct sums *to, size_t *at)
{
	struct series *series = &lister->inputs->series[lister->inputs->series_count++];
	const struct timed_dump *timeless = NULL;
	size_t first = *at, part = 0, last = SIZE_MAX;

	*series = (struct series){.first = first, .number = number + 1, .of = lister->series_count};
	series->times_ms = calloc(lister->count + 1, sizeof(*series->times_ms));
	series->parts = calloc(lister->count + 1, sizeof(*series->parts));
	if (!series->times_ms || !series->parts)
		return -ERR_NOMEM;
	for (size_t i = 0; i < lister->count; i++) {
		const struct timed_dump *dump = &lister->order[i];

		if (!is_of(lister, dump, number))
			continue;
		part += last != SIZE_MAX && dump->process != last;
		last = dump->process;
		series->parts[*at - first] = (uint32_t)part;
		series->times_ms[*at - first] = dump->dump->time_ms;
		if (!dump->dump->time_ms)
			timeless = dump;
		to[(*at)++] = lister->inputs->dumps[dump->number];
		sums_init(&lister->inputs->dumps[dump->number]);
	}
	series->count = *at - first;
	series->axis = (struct trend_axis){
		timeless ? NULL : series->times_ms, part ? series->parts : NULL, series->count};
	return check_times(lister, series, to[*at - 1].path);
}

static int take_all(struct lister *lister)
{
	struct inputs *inputs = lister->inputs;
	struct sums *dumps = calloc(lister->count + 1, sizeof(*dumps));
	size_t at = 0;
	int rc = 0;

	inputs->series = calloc(lister->series_count + 1, sizeof(*inputs->series));
	if (!dumps || !inputs->series) {
		free(dumps);
		return -ERR_NOMEM;
	}
	for (size_t i = 0; !rc && i < lister->series_count; i++) {
		size_t first = at;

		if (!is_wanted(lister, i))
			continue;
		rc = take_series(lister, i, dumps, &at);
		if (!rc)
			rc = say_series_warnings(lister->say, &dumps[first], at - first);
	}
	for (size_t i = 0; i < inputs->dump_count; i++)
		sums_release(&inputs->dumps[i]);
	free(inputs->dumps);
	inputs->dumps = dumps;
	inputs->dump_count = at;
	return rc;
}

static int check_left(const struct lister *lister, struct err *err)
{
	if (!lister->series_count)
		return err_set(err, ERR_USAGE, "--warm-up, --since, --until",
			"they leave none of %zu dumps", lister->count);
	if (lister->options->series > lister->series_count)
		return err_set(err, ERR_USAGE, "--series", "there are %zu", lister->series_count);
	return 0;
}

static int list_trend(struct lister *lister, struct err *err)
{
	const struct options *options = lister->options;
	struct order_wishes wishes = {options->warm_up, options->since, options->until};
	int rc = dumps_order(lister->order, lister->inputs->dumps, lister->count, &wishes);

	if (!rc)
		rc = number_series(lister);
	if (!rc)
		rc = say_all_unused(lister);
	if (rc)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	rc = check_left(lister, err);
	if (!rc && take_all(lister))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

int series_list_make(struct inputs *inputs, const struct options *options, bool is_trend, FILE *say,
	struct err *err)
{
	struct lister lister = {.inputs = inputs,
		.options = options,
		.say = say,
		.count = inputs->dump_count,
		.order = calloc(inputs->dump_count + 1, sizeof(*lister.order)),
		.series_of = calloc(inputs->dump_count + 1, sizeof(*lister.series_of))};
	int rc;

	if (!lister.order || !lister.series_of)
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	else if (is_trend)
		rc = list_trend(&lister, err);
	else
		rc = list_pair(inputs, say) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
	free(lister.order);
	free(lister.series_of);
	return rc;
}
