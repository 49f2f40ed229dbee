/* Series: sorts dumps by process and time, leaves out unused ones, and builds the series. */
#include "diff/series_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/dump_identity.h"
#include "diff/inputs.h"
#include "diff/match/row_series.h"
#include "diff/messages.h"
#include "diff/options.h"
#include "diff/order_doubt.h"

static int by_process(const void *a, const void *b)
{
	const struct timed_dump *x = a, *y = b;
	int order = dump_process_order(x->dump, y->dump);

	return order ? order : int64_order((int64_t)x->number, (int64_t)y->number);
}

static int by_moment(const struct timed_dump *x, const struct timed_dump *y)
{
	int order = x->is_timeless ? 0 : int64_order(x->dump->id.time_ms, y->dump->id.time_ms);

	if (!order && !x->is_timeless)
		order = int64_order(
			(int64_t)x->dump->window.position, (int64_t)y->dump->window.position);
	return order;
}

static int by_time(const void *a, const void *b)
{
	const struct timed_dump *x = a, *y = b;
	int order = by_moment(x, y);

	return order ? order : int64_order((int64_t)x->number, (int64_t)y->number);
}

/* Compares by time. Dumps that are already left out come last. */
static int by_use(const void *a, const void *b)
{
	const struct timed_dump *x = a, *y = b;
	int order = int64_order(x->use != USE_IT, y->use != USE_IT);

	return order ? order : by_time(x, y);
}

/* A range of snapshots of one process. */
struct process_run {
	struct timed_dump *first;
	size_t count;
};

static int by_beginning(const void *a, const void *b)
{
	const struct timed_dump *x = ((const struct process_run *)a)->first,
				*y = ((const struct process_run *)b)->first;
	int order = int64_order(x->is_timeless, y->is_timeless);

	return order ? order : by_time(x, y);
}

/* If only some dumps have a time, dumps with and without a time cannot be ordered. Leaves out the
 * smaller set. */
static void leave_mixed(struct process_run *run)
{
	size_t timed = 0;
	bool is_timeless;

	for (size_t i = 0; i < run->count; i++)
		timed += run->first[i].dump->id.time_ms != 0;
	is_timeless = timed < run->count - timed;
	for (size_t i = 0; i < run->count; i++) {
		bool lacks_time = !run->first[i].dump->id.time_ms;

		run->first[i].is_timeless = is_timeless;
		if (lacks_time != is_timeless)
			run->first[i].use = lacks_time ? USE_LACKS_TIME : USE_HAS_TIME;
	}
}

/* Marks a dump as a duplicate if an earlier one is the same snapshot. Prefers one that is not cut. */
static void find_double(struct timed_dump *all, size_t number)
{
	struct timed_dump *out = &all[number], *kept;

	for (size_t i = number; i-- > 0 && !by_moment(&all[i], out);) {
		kept = &all[i];
		if (kept->use != USE_IT || !dump_same_snapshot(kept->dump, out->dump))
			continue;
		if (kept->dump->quality.is_cut && !out->dump->quality.is_cut) {
			kept = out;
			out = &all[i];
		}
		out->use = USE_DOUBLE;
		out->twin = kept->number;
		return;
	}
}

/* Sorts the snapshots of one process and marks duplicates. */
static void process_sort(struct process_run *run)
{
	leave_mixed(run);
	qsort(run->first, run->count, sizeof(*run->first), by_use);
	for (size_t i = 1; i < run->count && run->first[i].use == USE_IT; i++) {
		if (!run->first[i].is_timeless)
			find_double(run->first, i);
	}
}

static void leave_warm_up(struct process_run *run, size_t count)
{
	for (size_t i = 0; count && i < run->count; i++) {
		if (run->first[i].use != USE_IT)
			continue;
		run->first[i].use = USE_WARM_UP;
		count--;
	}
}

static void leave_outside(struct timed_dump *all, size_t count, const struct order_filter *filter)
{
	int64_t newest = 0, from, to;

	for (size_t i = 0; i < count; i++)
		newest = all[i].dump->id.time_ms > newest ? all[i].dump->id.time_ms : newest;
	from = filter->since.kind ? moment_ms(&filter->since, newest) : INT64_MIN;
	to = filter->until.kind ? moment_ms(&filter->until, newest) : INT64_MAX;
	for (size_t i = 0; (filter->since.kind || filter->until.kind) && i < count; i++) {
		int64_t time_ms = all[i].dump->id.time_ms;

		if (all[i].use != USE_IT)
			continue;
		if (!time_ms)
			all[i].use = USE_TIMELESS;
		else if (time_ms < from || time_ms > to)
			all[i].use = dump_is_moved(all[i].dump) &&
						     all[i].dump->id.stated_ms >= from &&
						     all[i].dump->id.stated_ms <= to ?
					     USE_MOVED :
					     USE_OUTSIDE;
	}
}

/* Finds the runs of snapshots of one process. Returns the number of runs. */
static size_t find_runs(struct timed_dump *snapshots, size_t count, struct process_run *runs)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (!i || !dump_same_process(snapshots[i - 1].dump, snapshots[i].dump))
			runs[found++] = (struct process_run){.first = &snapshots[i]};
		runs[found - 1].count++;
	}
	return found;
}

void dumps_order(struct timed_dump *snapshots, const struct dump_sums *dumps, size_t count,
	const struct order_filter *filter)
{
	struct process_run *runs = xcalloc(count + 1, sizeof(*runs));
	struct timed_dump *ordered = xcalloc(count + 1, sizeof(*ordered));
	size_t run_count, at = 0;

	for (size_t i = 0; i < count; i++)
		snapshots[i] = (struct timed_dump){.dump = &dumps[i], .number = i};
	qsort(snapshots, count, sizeof(*snapshots), by_process);
	run_count = find_runs(snapshots, count, runs);
	for (size_t i = 0; i < run_count; i++)
		process_sort(&runs[i]);
	qsort(runs, run_count, sizeof(*runs), by_beginning);
	for (size_t i = 0; i < run_count; i++) {
		leave_warm_up(&runs[i], filter->warm_up);
		for (size_t k = 0; k < runs[i].count; k++) {
			ordered[at] = runs[i].first[k];
			ordered[at++].process = i;
		}
	}
	memcpy(snapshots, ordered, count * sizeof(*ordered));
	leave_outside(snapshots, count, filter);
	free(ordered);
	free(runs);
}

/* ---------------------------------------------------------------- unused dumps */

/* State while series are made. */
struct lister {
	struct inputs *inputs;
	const struct options *options;
	struct timed_dump *order; /* all dumps in order */
	size_t count;
	size_t *series_of; /* indexed by process */
	size_t series_count;
	bool is_by_name; /* the dumps were given in the order of their names */
	const struct timed_dump **members; /* members of all series in sequence, each in order */
	/* indexed by series: index of its first member; one additional element contains the end */
	size_t *members_from;
};

/* Returns the reason why a dump is left out, or NULL if no message is needed. */
static const char *why_unused(const struct timed_dump *dump)
{
	switch (dump->use) {
	case USE_TIMELESS: return "has no usable time, which --since and --until need";
	case USE_LACKS_TIME: return "has no usable time, but other dumps of its process do";
	case USE_HAS_TIME: return "records a time, but most other dumps of its process do not";
	case USE_MOVED:
		return "its date is within --since and --until, but by the machine's uptime it was "
		       "not taken then";
	case USE_IT:
	case USE_DOUBLE:
	case USE_WARM_UP:
	case USE_OUTSIDE: break;
	}
	return NULL;
}

static void print_unused(const struct lister *lister, const struct timed_dump *dump)
{
	const char *why = why_unused(dump);
	char twin[700];

	if (dump->use == USE_DOUBLE) {
		snprintf(twin, sizeof(twin), "the same snapshot as %.600s",
			lister->inputs->dumps[dump->twin].id.path);
		why = twin;
	}
	if (!why)
		return;
	inputs_leave_out(lister->inputs, dump->dump->id.path);
	message_left_out(lister->inputs->messages, dump->dump->id.path, why);
}

/* Reports processes whose snapshots are all left out as warm-up. */
static void print_all_warm_up(const struct lister *lister)
{
	const struct timed_dump *order = lister->order;

	for (size_t i = 0, next; i < lister->count; i = next) {
		bool is_left = false, is_warm = false;

		for (next = i; next < lister->count && order[next].process == order[i].process;
			next++) {
			is_left |= order[next].use == USE_IT;
			is_warm |= order[next].use == USE_WARM_UP;
		}
		if (is_warm && !is_left)
			message_left_out(lister->inputs->messages, order[next - 1].dump->id.path,
				"all dumps of its process are warm-up or left out");
	}
}

/* ---------------------------------------------------------------- series */

/* Returns the index of the series that a process continues after a restart. If the process starts a
 * new series, returns the index of the new series, which is the current number of series. */
static size_t series_to_join(
	const struct lister *lister, struct table *images, const struct dump_sums *dump)
{
	const char *image = dump_image(dump);
	const uint64_t *known;
	size_t series = lister->options->sum ? 0 : lister->series_count;
	char *key;

	if (!lister->options->across_restarts || !image)
		return series;
	key = xstrdup(image);
	for (char *at = key; *at; at++)
		*at = text_lower(*at);
	known = table_find(images, key, strlen(key));
	if (known)
		series = (size_t)*known;
	else
		table_add(images, key, strlen(key), lister->series_count);
	free(key);
	return series;
}

/* Numbers the series in order of their first snapshots. */
static void number_series(struct lister *lister)
{
	struct table images; /* maps image to series */
	size_t numbered = 0; /* number of processes that already have a series */

	table_init(&images);
	for (size_t i = 0; i < lister->count; i++) {
		const struct timed_dump *dump = &lister->order[i];
		size_t *series = &lister->series_of[dump->process];

		if (dump->use != USE_IT || numbered > dump->process)
			continue;
		numbered = dump->process + 1;
		*series = series_to_join(lister, &images, dump->dump);
		lister->series_count += *series == lister->series_count;
	}
	table_release(&images);
}

/* Sorts the used dumps by series. */
static void gather_members(struct lister *lister)
{
	size_t *from = xcalloc(lister->series_count + 2, sizeof(*from));

	lister->members_from = from;
	lister->members = xcalloc(lister->count + 1, sizeof(const struct timed_dump *));
	for (size_t i = 0; i < lister->count; i++) {
		if (lister->order[i].use == USE_IT)
			from[lister->series_of[lister->order[i].process] + 2]++;
	}
	for (size_t i = 0; i < lister->series_count; i++)
		from[i + 2] += from[i + 1];
	/* from[s + 1] is the next free index in series s. It is first the start of series s, and at
	 * the end the start of the next series. */
	for (size_t i = 0; i < lister->count; i++) {
		const struct timed_dump *dump = &lister->order[i];

		if (dump->use == USE_IT)
			lister->members[from[lister->series_of[dump->process] + 1]++] = dump;
	}
}

/* Warns if some dumps have equal times and therefore no known order. */
static void print_ties(const struct lister *lister, const struct trend_axis *axis, const char *path)
{
	size_t count = 0;

	for (size_t i = 1; axis->times_ms && i < axis->count; i++)
		count += !axis_begins(axis, i) && axis->times_ms[i] == axis->times_ms[i - 1];
	if (count)
		message_line(lister->inputs->messages,
			"%s: warning: %zu dump%s of its series record%s the same time as the one "
			"before: such dumps are ordered as given, or by name",
			path, count, text_plural(count), count == 1 ? "s" : "");
}

/* If rates cannot be computed, reports the reason and drops the times. */
static void check_times(
	const struct lister *lister, struct trend_axis *axis, const struct dump_sums *dumps)
{
	/* A report must not depend on the time of the run. */
	const struct dump_sums *doubt = dumps_find_doubt(dumps, axis->count, false);
	const char *path = dumps[axis->count - 1].id.path;

	if (axis->times_ms && doubt) {
		if (doubt->id.date_doubt != DATE_ODD) /* which has its own warning */
			message_line(lister->inputs->messages,
				"%s: warning: no rates: the date of %s is %s", path, doubt->id.path,
				dumps_doubt_words(doubt));
		axis->times_ms = NULL;
		return;
	}
	if (axis_longest(axis) < 2 && (axis->times_ms || axis->count < 2))
		return;
	if (axis_time_passes(axis)) {
		print_ties(lister, axis, path);
		return;
	}
	message_line(lister->inputs->messages,
		"%s: warning: %s: they are ordered as given, or by name, and there are no rates",
		path,
		axis->times_ms ? "all dumps of its process record the same time" :
				 "not all dumps of its process have a usable time");
	axis->times_ms = NULL;
}

/* Moves the dumps of a series to the end of `to`, and fills in the series. */
static void move_series(struct lister *lister, size_t number, struct dump_sums *to, size_t *at)
{
	const struct timed_dump *const *members = &lister->members[lister->members_from[number]];
	size_t count = lister->members_from[number + 1] - lister->members_from[number], part = 0;
	struct series *series = &lister->inputs->series[lister->inputs->series_count++];
	bool is_timeless = false;

	*series = (struct series){.first = *at,
		.count = count,
		.number = number + 1,
		.series_count = lister->series_count,
		.times_ms = xcalloc(count + 1, sizeof(*series->times_ms)),
		.parts = xcalloc(count + 1, sizeof(*series->parts))};
	for (size_t i = 0; i < count; i++) {
		part += i && members[i]->process != members[i - 1]->process;
		series->parts[i] = (uint32_t)part;
		series->times_ms[i] = members[i]->dump->id.time_ms;
		is_timeless |= !series->times_ms[i];
		to[(*at)++] = lister->inputs->dumps[members[i]->number];
		sums_init(&lister->inputs->dumps[members[i]->number]);
	}
	series->axis = (struct trend_axis){
		is_timeless ? NULL : series->times_ms, part ? series->parts : NULL, count};
	if (lister->options->sum)
		series->number = series->series_count = 0;
	else
		check_times(lister, &series->axis, &to[series->first]);
	message_series_warnings(lister->inputs->messages, &to[series->first], count);
}

static void move_all(struct lister *lister)
{
	struct inputs *inputs = lister->inputs;
	struct dump_sums *dumps = xcalloc(lister->count + 1, sizeof(*dumps));
	size_t at = 0, wanted = lister->options->series;

	inputs->series = xcalloc(lister->series_count + 1, sizeof(*inputs->series));
	for (size_t i = 0; i < lister->series_count; i++) {
		if (!wanted || wanted == i + 1)
			move_series(lister, i, dumps, &at);
	}
	for (size_t i = 0; i < inputs->dump_count; i++)
		sums_release(&inputs->dumps[i]);
	free(inputs->dumps);
	inputs->dumps = dumps;
	inputs->dump_count = at;
}

/* Checks that each process has only one dump. With two, its blocks would count twice. */
static int check_sum(const struct lister *lister, struct err *err)
{
	const struct timed_dump *before = NULL;

	for (size_t i = 0; lister->options->sum && i < lister->count; i++) {
		const struct timed_dump *dump = &lister->order[i];

		if (dump->use == USE_DOUBLE)
			continue;
		if (before && dump->process == before->process)
			return err_set(err, ERR_USAGE, dump->dump->id.path,
				dump->dump->id.pid ?
					"from the same process as %s; --sum takes one "
					"dump of each process" :
					"neither this dump nor %s records its process; --sum takes "
					"one dump of each process",
				before->dump->id.path);
		before = dump;
	}
	return 0;
}

/* Returns true if a dump affects the order or the choice of the dumps in a series. */
static bool is_ordered(const struct lister *lister, const struct timed_dump *dump)
{
	bool goes_by_newest = lister->options->since.kind == MOMENT_BEFORE_NEWEST ||
			      lister->options->until.kind == MOMENT_BEFORE_NEWEST;

	return dump->use == USE_IT || dump->use == USE_WARM_UP ||
	       (dump->use == USE_OUTSIDE && goes_by_newest);
}

/* Looks for doubts about the order of each process. */
static void check_order(const struct lister *lister)
{
	const struct order_rules rules = {
		.is_by_name = lister->is_by_name, .force = lister->options->force};
	struct dump_place *places = xcalloc(lister->count + 1, sizeof(*places));
	size_t count = 0;

	for (size_t i = 0; i < lister->count && !lister->options->sum; i++) {
		const struct timed_dump *dump = &lister->order[i];

		if (is_ordered(lister, dump))
			places[count++] = (struct dump_place){&lister->inputs->dumps[dump->number],
				dump->number, dump->use == USE_IT};
		if (i + 1 < lister->count && dump[1].process == dump->process)
			continue;
		order_check(places, count, &rules);
		count = 0;
	}
	free(places);
}

static int list_trend(struct lister *lister, struct err *err)
{
	const struct options *options = lister->options;
	struct order_filter filter = {options->warm_up, options->since, options->until};
	int rc;

	dumps_order(lister->order, lister->inputs->dumps, lister->count, &filter);
	number_series(lister);
	for (size_t i = 0; i < lister->count; i++)
		print_unused(lister, &lister->order[i]);
	print_all_warm_up(lister);
	rc = check_sum(lister, err);
	if (rc)
		return rc;
	if (!lister->series_count)
		return err_set(err, ERR_USAGE, "--warm-up, --since, --until",
			"these options leave none of %zu dump%s", lister->count,
			text_plural(lister->count));
	if (options->series > lister->series_count)
		return err_set(err, ERR_USAGE, "--series", "the last series is number %zu",
			lister->series_count);
	check_order(lister);
	gather_members(lister);
	move_all(lister);
	return 0;
}

int series_list_trend(struct inputs *inputs, const struct file_list *list, struct err *err)
{
	struct lister lister = {.inputs = inputs,
		.options = inputs->options,
		.count = inputs->dump_count,
		.is_by_name = list->has_found || list->is_expanded,
		.order = xcalloc(inputs->dump_count + 1, sizeof(*lister.order)),
		.series_of = xcalloc(inputs->dump_count + 1, sizeof(*lister.series_of))};
	int rc = list_trend(&lister, err);

	free(lister.order);
	free(lister.series_of);
	free(lister.members);
	free(lister.members_from);
	return rc;
}
