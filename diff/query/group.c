/* Groups: adds the sums of rows to groups by frame or heap, and sorts the groups. */
#include "diff/query/group.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/row_series.h"
#include "diff/read/read_use.h"

static void add_series(struct view *view, struct block_totals **to, const struct row *row)
{
	size_t count = view->comparison->dump_count;

	if (!*to)
		*to = arena_alloc(&view->arena, count * sizeof(**to));
	for (size_t i = 0; i < count; i++)
		block_totals_add(&(*to)[i], &row->totals[i]);
}

static void judge_group(void *ctx, size_t index, struct trend_judge *judge)
{
	const struct view *view = ctx;
	struct view_group_row *group = &view->groups[index];
	bool is_short = axis_longest(view->comparison->axis) < AXIS_TREND_MIN;

	/* A group without sums for `self` counts as steady. */
	group->self_trend.verdict = is_short ? TREND_TOO_FEW : TREND_STEADY;
	if (group->self_of)
		trend_judge(judge, group->self_of, &group->self_trend);
	trend_judge(judge, group->total_of, &group->total_trend);
}

struct grouping {
	struct view *view;
	struct table known; /* maps a name to its index in `groups` */
	size_t *seen; /* indexed by group: 1 + the row that was counted last in the group */
	size_t cap, seen_cap;
	struct buf name;
	struct frames frames;
};

/* Returns the index of the group with the current name. Adds the group if it is new. */
static size_t group_add(struct grouping *grouping)
{
	struct view *view = grouping->view;
	const struct buf *name = &grouping->name;
	const uint64_t *known = table_find(&grouping->known, name->data, name->len);

	if (known)
		return (size_t)*known;
	array_grow(
		(void **)&view->groups, &grouping->cap, view->group_count, sizeof(*view->groups));
	array_grow((void **)&grouping->seen, &grouping->seen_cap, view->group_count,
		sizeof(*grouping->seen));
	table_add(&grouping->known, name->data, name->len, view->group_count);
	view->groups[view->group_count] =
		(struct view_group_row){.name = arena_text(&view->arena, name->data, name->len)};
	grouping->seen[view->group_count] = 0;
	return view->group_count++;
}

/* Adds row number `i` of the view to the group with the current name. */
static void group_count(struct grouping *grouping, size_t i, bool is_self)
{
	struct view *view = grouping->view;
	const struct row *row = &view->comparison->rows[view->rows[i]];
	size_t index = group_add(grouping);
	struct view_group_row *group = &view->groups[index];
	bool is_new = grouping->seen[index] != i + 1;

	grouping->seen[index] = i + 1;
	if (is_self)
		change_add_row(&group->self, view->comparison, row);
	if (is_new)
		change_add_row(&group->total, view->comparison, row);
	if (is_new && view->comparison->cell_rows) {
		array_grow((void **)&group->members, &group->member_cap, group->member_count,
			sizeof(*group->members));
		group->members[group->member_count++] = view->rows[i];
	}
	if (is_self && view->comparison->axis)
		add_series(view, &group->self_of, row);
	if (is_new && view->comparison->axis)
		add_series(view, &group->total_of, row);
}

void group_name(const struct view *view, const struct frame *frame, struct buf *name)
{
	struct frame spelt = *frame;

	if (spelt.module && view->spellings)
		spelt.module = spelling_find(view->spellings, frame->module);
	if (view->group == GROUP_FUNCTION && spelt.function) {
		frame_name(&spelt, name);
		return;
	}
	buf_clear(name);
	if (view->group == GROUP_FILE)
		buf_add_text(name, frame->file ? frame->file : "(file not known)");
	else
		buf_add_text(name, spelt.module ? frame_module(&spelt) : "(no module)");
	if (view->group == GROUP_FUNCTION && spelt.module)
		buf_add_text(name, "!?");
}

bool group_is_by_heap(enum view_group group)
{
	return group == GROUP_HEAP || group == GROUP_MEMORY;
}

bool group_is_of_row(enum view_group group)
{
	return group_is_by_heap(group) || group == GROUP_THREAD;
}

void group_thread_name(const struct view *view, uint64_t id, struct buf *name)
{
	const char *known = NULL;

	for (size_t i = view->comparison->dump_count; !known && i--;)
		known = sums_thread_name(&view->comparison->dumps[i], (uint32_t)id);
	buf_clear(name);
	if (!id)
		buf_add_text(name, "(thread not known)");
	else if (known)
		buf_printf(name, "%s (%" PRIu64 ")", known, id);
	else
		buf_printf(name, "thread %" PRIu64, id);
}

void group_row_name(const struct view *view, const struct row *row, struct buf *name)
{
	const uint64_t heap = row->heap;

	if (view->group == GROUP_THREAD) {
		group_thread_name(view, heap, name);
		return;
	}
	buf_clear(name);
	if (view->group == GROUP_MEMORY)
		buf_add_text(name,
			use_memory_name(heap_name(heap) ? (enum record_memory)heap : RECORD_HEAP));
	else if (heap_name(heap))
		buf_add_text(name, heap_name(heap));
	else if (heap)
		buf_printf(name, "%" PRIX64, heap);
	else
		buf_add_text(name, "(heap not known)");
}

/* Returns the name of the group for a row whose frames are unknown. Returns NULL if the frames are
 * known. */
static const char *words_of(const struct row *row, const struct frames *frames)
{
	if (row->kind == ROW_AMBIGUOUS || row->kind == ROW_ONE_OF || frames->part_count)
		return "(ambiguous)";
	if (row->kind == ROW_UNKNOWN)
		return "(stack not in the dump)";
	return row->kind == ROW_STACKLESS || !frames->count ? NO_STACK : NULL;
}

static void group_row(struct grouping *grouping, size_t i)
{
	const struct view *view = grouping->view;
	const struct row *row = &view->comparison->rows[view->rows[i]];
	struct frames *frames = &grouping->frames;
	const char *words;

	if (group_is_of_row(view->group)) {
		group_row_name(view, row, &grouping->name);
		group_count(grouping, i, true);
		grouping->view->groups[group_add(grouping)].heap = row->heap;
		return;
	}
	naming_frames(&view->naming, view->rows[i], frames);
	if (view->strip)
		strip_frames(view->strip, frames);
	words = words_of(row, frames);
	if (words) {
		buf_clear(&grouping->name);
		buf_add_text(&grouping->name, words);
		group_count(grouping, i, true);
	}
	for (size_t k = 0; !words && k < frames->count; k++) {
		group_name(view, &frames->items[k], &grouping->name);
		group_count(grouping, i, k == 0);
	}
}

/* Adds the rows that are not shown to groups that already exist. */
static void add_others(struct grouping *grouping)
{
	struct view *view = grouping->view;
	size_t shown_count = view->group_count;

	for (size_t i = 0; i < view->other_count; i++)
		group_row(grouping, view->row_count + i);
	while (view->group_count > shown_count)
		free(view->groups[--view->group_count].members);
}

/* ---------------------------------------------------------------- order */

struct sorted_group {
	struct view_group_row group;
	uint64_t self_trend[TREND_KEYS], total_trend[TREND_KEYS]; /* first keys */
	int64_t self, total; /* next keys */
	bool by_total; /* `total` is compared before `self` */
};

static int by_change(const void *a, const void *b)
{
	const struct sorted_group *x = a, *y = b;
	int order = trend_keys_order(x->self_trend, y->self_trend);

	if (!order)
		order = trend_keys_order(x->total_trend, y->total_trend);
	if (order)
		return order;
	if (x->by_total && x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->group.name, y->group.name);
}

/* Returns the sort key. The bytes of one dump fit in a signed number, see dump_sums.h. */
static int64_t sort_key(const struct change *change, enum view_sort sort)
{
	switch (sort) {
	case SORT_DEFAULT:
	case SORT_VERDICT:
	case SORT_PINNED:
	case SORT_SLOPE:
	case SORT_TOTAL:
	case SORT_BYTES: return change_delta(change).requested_bytes;
	case SORT_COUNT: return change_delta(change).block_count;
	case SORT_NEW: return (int64_t)change->now.requested_bytes;
	case SORT_OLD: return (int64_t)change->old.requested_bytes;
	case SORT_NAME: break;
	}
	return 0;
}

static void sort_groups(struct view *view)
{
	struct sorted_group *sorted = xcalloc(view->group_count + 1, sizeof(*sorted));

	for (size_t i = 0; i < view->group_count; i++) {
		const struct view_group_row *group = &view->groups[i];

		sorted[i] = (struct sorted_group){.group = *group,
			.by_total = view->sort == SORT_TOTAL,
			.self = sort_key(&group->self, view->sort),
			.total = sort_key(&group->total, view->sort)};
		trend_keys(&group->self_trend, view->sort, sorted[i].self_trend);
		trend_keys(&group->total_trend, view->sort, sorted[i].total_trend);
	}
	qsort(sorted, view->group_count, sizeof(*sorted), by_change);
	for (size_t i = 0; i < view->group_count; i++)
		view->groups[i] = sorted[i].group;
	free(sorted);
}

void groups_make(struct view *view)
{
	struct grouping grouping = {.view = view};

	if (view->group == GROUP_FUNCTION || view->group == GROUP_MODULE) {
		view->spellings = xcalloc(1, sizeof(*view->spellings));
		spellings_make(view->spellings, &view->naming);
	}
	table_init(&grouping.known);
	buf_init(&grouping.name);
	frames_init(&grouping.frames);
	for (size_t i = 0; i < view->row_count; i++)
		group_row(&grouping, i);
	add_others(&grouping);
	if (view->comparison->axis)
		series_judge_all(view->comparison->axis, view->group_count, judge_group, view);
	sort_groups(view);
	free(grouping.seen);
	frames_release(&grouping.frames);
	buf_release(&grouping.name);
	table_release(&grouping.known);
}
