#include "diff/series_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/model.h"

static int order_of(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static bool is_program(const char *path)
{
	size_t len = strlen(path);

	return len > 4 && !text_compare(path + len - 4, ".exe");
}

/* A log of UMDH's does not name it but among its modules; of two programs nobody knows which. */
const char *dump_image(const struct dump_sums *dump)
{
	const char *found = NULL;

	if (dump->image)
		return module_path_base(dump->image);
	for (size_t i = 0; i < dump->module_count; i++) {
		const char *path = dump->modules[i].path;

		if (!is_program(path))
			continue;
		if (found && text_compare(found, module_path_base(path)) != 0)
			return NULL;
		found = module_path_base(path);
	}
	return found;
}

static int image_order(const struct dump_sums *a, const struct dump_sums *b)
{
	const char *x = dump_image(a), *y = dump_image(b);

	return x && y ? text_compare(x, y) : order_of(x != NULL, y != NULL);
}

int dump_image_key(const struct dump_sums *dump, struct buf *key)
{
	int rc = buf_add_text(key, dump_image(dump));

	for (size_t i = 0; !rc && i < key->len; i++)
		key->data[i] = text_lower(key->data[i]);
	return rc;
}

static int64_t second_of(int64_t ms)
{
	return ms / 1000 - (ms % 1000 < 0);
}

static int process_order(const struct dump_sums *a, const struct dump_sums *b)
{
	int order = order_of(a->pid, b->pid);

	if (!order)
		order = order_of(second_of(a->start_ms), second_of(b->start_ms));
	return order ? order : image_order(a, b);
}

bool dump_same_process(const struct dump_sums *a, const struct dump_sums *b)
{
	return !process_order(a, b);
}

bool dump_is_child(const struct dump_sums *child, const struct dump_sums *parent)
{
	return child->parent_pid && child->parent_pid == parent->pid && parent->start_ms &&
	       parent->start_ms <= child->start_ms;
}

bool dump_other_program(const struct dump_sums *a, const struct dump_sums *b)
{
	return dump_image(a) && dump_image(b) && image_order(a, b);
}

static int by_process(const void *a, const void *b)
{
	const struct timed_dump *x = a, *y = b;
	int order = process_order(x->dump, y->dump);

	return order ? order : order_of((int64_t)x->number, (int64_t)y->number);
}

static int by_time(const void *a, const void *b)
{
	const struct timed_dump *x = a, *y = b;
	int order = x->is_timeless ? 0 : order_of(x->dump->time_ms, y->dump->time_ms);

	return order ? order : order_of((int64_t)x->number, (int64_t)y->number);
}

/* What is left out already comes last. */
static int by_use(const void *a, const void *b)
{
	const struct timed_dump *x = a, *y = b;
	int order = order_of(x->use != USE_IT, y->use != USE_IT);

	return order ? order : by_time(x, y);
}

/* Some of the snapshots: those of one process. */
struct run_of {
	struct timed_dump *first;
	size_t count;
};

static int by_beginning(const void *a, const void *b)
{
	const struct timed_dump *x = ((const struct run_of *)a)->first,
				*y = ((const struct run_of *)b)->first;
	int order = order_of(x->is_timeless, y->is_timeless);

	return order ? order : by_time(x, y);
}

/* The time of a snapshot is told to the millisecond beside the start of its process, or to the minute,
 * in which there may be two. */
static bool is_twin(const struct dump_sums *a, const struct dump_sums *b)
{
	return a->start_ms && !a->has_wall_time && !b->has_wall_time && a->time_ms &&
	       a->time_ms == b->time_ms;
}

bool dump_same_snapshot(const struct dump_sums *a, const struct dump_sums *b)
{
	return dump_same_process(a, b) && is_twin(a, b);
}

/* There is no order among dumps that tell their time and dumps that do not: the more are kept. */
static void leave_mixed(struct run_of *run)
{
	size_t timed = 0;
	bool is_timeless;

	for (size_t i = 0; i < run->count; i++)
		timed += run->first[i].dump->time_ms != 0;
	is_timeless = timed < run->count - timed;
	for (size_t i = 0; i < run->count; i++) {
		bool lacks_time = !run->first[i].dump->time_ms;

		run->first[i].is_timeless = is_timeless;
		if (lacks_time != is_timeless)
			run->first[i].use = lacks_time ? USE_LACKS_TIME : USE_HAS_TIME;
	}
}

/* Orders the snapshots of one process and marks its doubles. Of two the one that is whole is kept. */
static void process_settle(struct run_of *run)
{
	struct timed_dump *all = run->first, *kept = all;

	leave_mixed(run);
	qsort(all, run->count, sizeof(*all), by_use);
	for (size_t i = 1; i < run->count && all[i].use == USE_IT; i++) {
		struct timed_dump *out = &all[i];

		if (!is_twin(kept->dump, out->dump)) {
			kept = out;
			continue;
		}
		if (kept->dump->is_cut && !out->dump->is_cut) {
			out = kept;
			kept = &all[i];
		}
		out->use = USE_DOUBLE;
		out->twin = kept->number;
	}
}

static void leave_warm_up(struct run_of *run, size_t count)
{
	for (size_t i = 0; count && i < run->count; i++) {
		if (run->first[i].use != USE_IT)
			continue;
		run->first[i].use = USE_WARM_UP;
		count--;
	}
}

static void leave_outside(struct timed_dump *all, size_t count, const struct order_filter *wishes)
{
	int64_t newest = 0, from, to;

	for (size_t i = 0; i < count; i++)
		newest = all[i].dump->time_ms > newest ? all[i].dump->time_ms : newest;
	from = wishes->since.kind ? moment_ms(&wishes->since, newest) : INT64_MIN;
	to = wishes->until.kind ? moment_ms(&wishes->until, newest) : INT64_MAX;
	for (size_t i = 0; (wishes->since.kind || wishes->until.kind) && i < count; i++) {
		int64_t time_ms = all[i].dump->time_ms;

		if (all[i].use != USE_IT)
			continue;
		if (!time_ms)
			all[i].use = USE_TIMELESS;
		else if (time_ms < from || time_ms > to)
			all[i].use = USE_OUTSIDE;
	}
}

/* Finds the runs of snapshots of one process each: how many. */
static size_t find_runs(struct timed_dump *snapshots, size_t count, struct run_of *runs)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (!i || process_order(snapshots[i - 1].dump, snapshots[i].dump))
			runs[found++] = (struct run_of){.first = &snapshots[i]};
		runs[found - 1].count++;
	}
	return found;
}

/* Puts the runs one behind the other, in their order. */
static void runs_place(struct run_of *runs, size_t run_count, struct timed_dump *ordered,
	const struct order_filter *wishes)
{
	size_t at = 0;

	for (size_t i = 0; i < run_count; i++) {
		leave_warm_up(&runs[i], wishes->warm_up);
		for (size_t k = 0; k < runs[i].count; k++) {
			ordered[at] = runs[i].first[k];
			ordered[at++].process = i;
		}
	}
}

int dumps_order(struct timed_dump *snapshots, const struct dump_sums *dumps, size_t count,
	const struct order_filter *wishes)
{
	struct run_of *runs = calloc(count + 1, sizeof(*runs));
	struct timed_dump *ordered = calloc(count + 1, sizeof(*ordered));
	size_t run_count;

	if (!runs || !ordered) {
		free(runs);
		free(ordered);
		return -ERR_NOMEM;
	}
	for (size_t i = 0; i < count; i++)
		snapshots[i] = (struct timed_dump){.dump = &dumps[i], .number = i};
	qsort(snapshots, count, sizeof(*snapshots), by_process);
	run_count = find_runs(snapshots, count, runs);
	for (size_t i = 0; i < run_count; i++)
		process_settle(&runs[i]);
	qsort(runs, run_count, sizeof(*runs), by_beginning);
	runs_place(runs, run_count, ordered, wishes);
	memcpy(snapshots, ordered, count * sizeof(*ordered));
	leave_outside(snapshots, count, wishes);
	free(ordered);
	free(runs);
	return 0;
}
