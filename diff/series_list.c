#include "diff/series_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/hdiff.h"
#include "diff/match/row_series.h"

/* What is needed while series are made. */
struct lister {
	struct inputs *inputs;
	const struct options *options;
	FILE *say;
	struct timed_dump *order; /* of all dumps */
	size_t count;
	size_t *series_of; /* by process */
	size_t series_count;
	const struct timed_dump *
		*members; /* of the series, one behind the other, each in its order */
	size_t *members_from; /* by series, and one behind the last */
};

/* ---------------------------------------------------------------- a pair */

/* One dump, or two. */
static int list_pair(struct inputs *inputs, FILE *say)
{
	int rc = 0;

	inputs->series = calloc(1, sizeof(*inputs->series));
	if (!inputs->series)
		return -ERR_NOMEM;
	inputs->series_count = 1;
	inputs->series[0].count = inputs->dump_count;
	for (size_t i = 0; !rc && i < inputs->dump_count; i++)
		rc = say_warnings(say, inputs->dumps[i].path, &inputs->dumps[i]);
	return rc;
}

/* ---------------------------------------------------------------- what is not used */

/* NULL: nothing is to be said. */
static const char *why_unused(const struct timed_dump *dump)
{
	switch (dump->use) {
	case USE_TIMELESS: return "it tells no time, and --since and --until go by it";
	case USE_LACKS_TIME: return "it tells no time, and others of its process do";
	case USE_HAS_TIME: return "it tells a time, and most others of its process do not";
	case USE_IT:
	case USE_DOUBLE:
	case USE_WARM_UP:
	case USE_OUTSIDE: break;
	}
	return NULL;
}

static int say_unused(const struct lister *lister, const struct timed_dump *dump)
{
	char why[700];

	if (dump->use != USE_DOUBLE && !why_unused(dump))
		return 0;
	if (inputs_leave_out(lister->inputs, dump->dump->path))
		return -ERR_NOMEM;
	if (dump->use != USE_DOUBLE)
		return say_left_out(lister->say, dump->dump->path, why_unused(dump));
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
static int series_to_join(const struct lister *lister, struct table *images,
	const struct dump_sums *dump, size_t *series)
{
	const uint64_t *known;
	struct buf name;
	int rc;

	*series = lister->options->sum ? 0 : lister->series_count;
	if (!lister->options->across_restarts || !dump_image(dump))
		return 0;
	buf_init(&name);
	rc = dump_image_key(dump, &name);
	known = rc ? NULL : table_find(images, name.data, name.len);
	if (known)
		*series = (size_t)*known;
	else if (!rc)
		rc = table_add(images, name.data, name.len, lister->series_count);
	buf_release(&name);
	return rc;
}

/* Numbers the series by their first snapshots. */
static int number_series(struct lister *lister)
{
	struct table images; /* to the series of each */
	size_t numbered = 0; /* processes */
	int rc = 0;

	table_init(&images);
	for (size_t i = 0; !rc && i < lister->count; i++) {
		const struct timed_dump *dump = &lister->order[i];

		if (dump->use != USE_IT || numbered > dump->process)
			continue;
		numbered = dump->process + 1;
		rc = series_to_join(lister, &images, dump->dump, &lister->series_of[dump->process]);
		lister->series_count += lister->series_of[dump->process] == lister->series_count;
	}
	table_release(&images);
	return rc;
}

/* Puts what is used in the order of the series. */
static int gather_members(struct lister *lister)
{
	size_t *from = calloc(lister->series_count + 2, sizeof(*from));

	lister->members_from = from;
	lister->members = calloc(lister->count + 1, sizeof(const struct timed_dump *));
	if (!from || !lister->members)
		return -ERR_NOMEM;
	for (size_t i = 0; i < lister->count; i++) {
		if (lister->order[i].use == USE_IT)
			from[lister->series_of[lister->order[i].process] + 2]++;
	}
	for (size_t i = 0; i < lister->series_count; i++)
		from[i + 2] += from[i + 1];
	for (size_t i = 0; i < lister->count; i++) { /* each moves on to where the next begins */
		const struct timed_dump *dump = &lister->order[i];

		if (dump->use == USE_IT)
			lister->members[from[lister->series_of[dump->process] + 1]++] = dump;
	}
	return 0;
}

static bool is_wanted(const struct lister *lister, size_t number)
{
	return !lister->options->series || lister->options->series == number + 1;
}

/* Says that the order of some is not told by their times. */
static int say_ties(const struct lister *lister, const struct series *series, const char *path)
{
	const struct trend_axis *axis = &series->axis;
	size_t count = 0;
	char words[200];

	for (size_t i = 1; i < axis->count; i++)
		count += !axis_begins(axis, i) && axis->times_ms[i] == axis->times_ms[i - 1];
	if (!count)
		return 0;
	snprintf(words, sizeof(words),
		"%zu dumps of its series tell the same time as the one before them: these are in "
		"the order in which they were given, or of their names",
		count);
	return say_warning(lister->say, path, "", words);
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
		return say_ties(lister, series, path);
	axis->times_ms = NULL;
	snprintf(words, sizeof(words),
		"%s: they are in the order in which they were given, or of their names, and "
		"there are no rates",
		why);
	return say_warning(lister->say, path, "", words);
}

/* Moves the dumps of a series behind those that are there, and fills in what they share. */
static int take_series(struct lister *lister, size_t number, struct dump_sums *to, size_t *at)
{
	const struct timed_dump *const *members = &lister->members[lister->members_from[number]];
	size_t count = lister->members_from[number + 1] - lister->members_from[number], part = 0;
	struct series *series = &lister->inputs->series[lister->inputs->series_count++];
	bool is_timeless = false;

	*series = (struct series){
		.first = *at, .count = count, .number = number + 1, .of = lister->series_count};
	series->times_ms = calloc(count + 1, sizeof(*series->times_ms));
	series->parts = calloc(count + 1, sizeof(*series->parts));
	if (!series->times_ms || !series->parts)
		return -ERR_NOMEM;
	for (size_t i = 0; i < count; i++) {
		part += i && members[i]->process != members[i - 1]->process;
		series->parts[i] = (uint32_t)part;
		series->times_ms[i] = members[i]->dump->time_ms;
		is_timeless |= !series->times_ms[i];
		to[(*at)++] = lister->inputs->dumps[members[i]->number];
		sums_init(&lister->inputs->dumps[members[i]->number]);
	}
	series->axis = (struct trend_axis){
		is_timeless ? NULL : series->times_ms, part ? series->parts : NULL, count};
	if (!lister->options->sum)
		return check_times(lister, series, to[*at - 1].path);
	series->number = series->of = 0;
	return 0;
}

static int take_all(struct lister *lister)
{
	struct inputs *inputs = lister->inputs;
	struct dump_sums *dumps = calloc(lister->count + 1, sizeof(*dumps));
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

/* Of each process there may be one dump: another would count its blocks twice. */
static int check_sum(const struct lister *lister, struct err *err)
{
	for (size_t i = 1; lister->options->sum && i < lister->count; i++) {
		const struct timed_dump *dump = &lister->order[i];

		if (dump->process == dump[-1].process && dump->use != USE_DOUBLE)
			return err_set(err, ERR_USAGE, dump->dump->path,
				dump->dump->pid ? "it is of the same process as %s; --sum takes "
						  "one dump of each" :
						  "neither it nor %s tells its process: --sum "
						  "takes one dump of each",
				dump[-1].dump->path);
	}
	return 0;
}

static int list_trend(struct lister *lister, struct err *err)
{
	const struct options *options = lister->options;
	struct order_filter wishes = {options->warm_up, options->since, options->until};
	int rc = dumps_order(lister->order, lister->inputs->dumps, lister->count, &wishes);

	if (!rc)
		rc = number_series(lister);
	if (!rc)
		rc = say_all_unused(lister);
	if (rc)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	rc = check_sum(lister, err);
	if (!rc)
		rc = check_left(lister, err);
	if (!rc && (gather_members(lister) || take_all(lister)))
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
	free(lister.members);
	free(lister.members_from);
	return rc;
}
