#include "diff/query/group.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/row_series.h"
#include "diff/query/query_parts.h"

static int add_series(struct view *view, struct block_totals **to, const struct row *row)
{
	size_t count = view->comparison->dump_count;

	if (!*to)
		*to = arena_alloc(&view->arena, count * sizeof(**to));
	if (!*to)
		return -ERR_NOMEM;
	for (size_t i = 0; i < count; i++)
		block_totals_add(&(*to)[i], &row->of[i]);
	return 0;
}

/* Adds a row's series to that of the group, to self, to total, or to both. 0 or -ERR_NOMEM. */
static int group_add_series(struct view *view, struct view_group_row *group, const struct row *row,
	bool to_self, bool to_total)
{
	int rc = to_self ? add_series(view, &group->self_of, row) : 0;

	return rc || !to_total ? rc : add_series(view, &group->total_of, row);
}

/* What is in no group's self at all does not move. */
static void judge(struct trend_judge *judge, bool is_short, const struct block_totals *of,
	struct trend *trend)
{
	*trend = (struct trend){.verdict = is_short ? TREND_TOO_FEW : TREND_STEADY};
	if (of)
		trend_judge(judge, of, trend);
}

static void judge_group(void *ctx, size_t index, struct trend_judge *by)
{
	const struct view *view = ctx;
	struct view_group_row *group = &view->groups[index];

	bool is_short = axis_longest(view->comparison->axis) < AXIS_TREND_MIN;

	judge(by, is_short, group->self_of, &group->self_trend);
	judge(by, is_short, group->total_of, &group->total_trend);
}

/* Judges the series of all groups. 0 or -ERR_NOMEM. */
static int groups_judge(struct view *view)
{
	return series_judge_all(view->comparison->axis, view->group_count, judge_group, view);
}

struct grouping {
	struct view *view;
	struct table known; /* name -> index into groups */
	size_t *seen; /* by group: 1 + the row that was counted last */
	size_t cap, seen_cap;
	struct buf name;
	struct frames frames;
};

/* Finds or makes the group with the name at hand. */
static int group_put(struct grouping *grouping, size_t *index)
{
	struct view *view = grouping->view;
	const struct buf *name = &grouping->name;
	const uint64_t *known = table_find(&grouping->known, name->data, name->len);
	const char *copy;

	if (known) {
		*index = (size_t)*known;
		return 0;
	}
	copy = arena_text(&view->arena, name->data, name->len);
	if (!copy ||
		array_grow((void **)&view->groups, &grouping->cap, view->group_count,
			sizeof(*view->groups)) ||
		array_grow((void **)&grouping->seen, &grouping->seen_cap, view->group_count,
			sizeof(*grouping->seen)) ||
		table_add(&grouping->known, name->data, name->len, view->group_count))
		return -ERR_NOMEM;
	view->groups[view->group_count] = (struct view_group_row){.name = copy};
	grouping->seen[view->group_count] = 0;
	*index = view->group_count++;
	return 0;
}

/* Counts row number i of the view to the group with the name at hand. */
static int group_count(struct grouping *grouping, size_t i, bool is_self)
{
	struct view *view = grouping->view;
	const struct row *row = &view->comparison->rows[view->rows[i]];
	struct view_group_row *group;
	bool is_new;
	size_t index;

	if (group_put(grouping, &index))
		return -ERR_NOMEM;
	group = &view->groups[index];
	is_new = grouping->seen[index] != i + 1;
	grouping->seen[index] = i + 1;
	if (is_self)
		change_add_row(&group->self, view->comparison, row);
	if (is_new)
		change_add_row(&group->total, view->comparison, row);
	return view->comparison->axis ? group_add_series(view, group, row, is_self, is_new) : 0;
}

static int add_text(struct buf *name, const char *text)
{
	buf_clear(name);
	return buf_add_text(name, text);
}

static int group_count_as(struct grouping *grouping, size_t i, const char *name)
{
	return add_text(&grouping->name, name) ? -ERR_NOMEM : group_count(grouping, i, true);
}

int group_name(const struct view *view, const struct frame *frame, struct buf *name)
{
	struct frame spelt = *frame;

	if (view->group == GROUP_FILE)
		return add_text(name, frame->file ? frame->file : "(file not known)");
	if (spelt.module && view->spellings &&
		spelling_find(view->spellings, frame->module, &spelt.module))
		return -ERR_NOMEM;
	if (view->group == GROUP_FUNCTION && spelt.function)
		return frame_name(&spelt, name);
	if (add_text(name, spelt.module ? spelt.module : "(no module)"))
		return -ERR_NOMEM;
	return view->group == GROUP_FUNCTION && spelt.module ? buf_add_text(name, "!?") : 0;
}

int group_heap_name(struct buf *name, uint64_t heap)
{
	buf_clear(name);
	if (heap_name(heap))
		return buf_add_text(name, heap_name(heap));
	return heap ? buf_printf(name, "%" PRIX64, heap) : buf_add_text(name, "(heap not known)");
}

/* What rows are counted to whose frames are not known, or NULL. */
static const char *words_of(const struct row *row, const struct frames *frames)
{
	if (row->kind == ROW_AMBIGUOUS || row->kind == ROW_ONE_OF || frames->part_count)
		return "(ambiguous)";
	if (row->kind == ROW_UNKNOWN)
		return "(stack not in the dump)";
	return frames->count ? NULL : NO_STACK;
}

static int group_heap(struct grouping *grouping, size_t i)
{
	const struct view *view = grouping->view;
	uint64_t heap = view->comparison->rows[view->rows[i]].heap;

	return group_heap_name(&grouping->name, heap) ? -ERR_NOMEM : group_count(grouping, i, true);
}

static int group_row(struct grouping *grouping, size_t i)
{
	const struct view *view = grouping->view;
	const struct frames *frames = &grouping->frames;
	const char *words;
	int rc = 0;

	if (view->group == GROUP_HEAP)
		return group_heap(grouping, i);
	if (naming_frames(view->naming, view->rows[i], &grouping->frames) ||
		(view->strip && strip_frames(view->strip, &grouping->frames)))
		return -ERR_NOMEM;
	words = words_of(&view->comparison->rows[view->rows[i]], frames);
	if (words)
		return group_count_as(grouping, i, words);
	for (size_t k = 0; !rc && k < frames->count; k++) {
		rc = group_name(view, &frames->items[k], &grouping->name);
		if (!rc)
			rc = group_count(grouping, i, k == 0);
	}
	return rc;
}

/* ---------------------------------------------------------------- order */

struct sorted_group {
	struct view_group_row group;
	uint64_t self_trend[TREND_KEYS], total_trend[TREND_KEYS]; /* what to sort by */
	int64_t self, total; /* and then */
};

static int by_change(const void *a, const void *b)
{
	const struct sorted_group *x = a, *y = b;
	int order = trend_keys_order(x->self_trend, y->self_trend);

	if (!order)
		order = trend_keys_order(x->total_trend, y->total_trend);
	if (order)
		return order;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->group.name, y->group.name);
}

/* Bytes in one dump fit too, see dump_sums.h. */
static int64_t sort_key(const struct change *change, enum view_sort sort)
{
	switch (sort) {
	case SORT_DEFAULT:
	case SORT_VERDICT:
	case SORT_SLOPE:
	case SORT_BYTES: return change_delta(change).requested_bytes;
	case SORT_COUNT: return change_delta(change).block_count;
	case SORT_NEW: return (int64_t)change->new.requested_bytes;
	case SORT_OLD: return (int64_t)change->old.requested_bytes;
	case SORT_NAME: break;
	}
	return 0;
}

static int sort_groups(struct view *view, enum view_sort sort)
{
	struct sorted_group *sorted = calloc(view->group_count + 1, sizeof(*sorted));

	if (!sorted)
		return -ERR_NOMEM;
	for (size_t i = 0; i < view->group_count; i++) {
		const struct view_group_row *group = &view->groups[i];

		sorted[i] = (struct sorted_group){.group = *group,
			.self = sort_key(&group->self, sort),
			.total = sort_key(&group->total, sort)};
		trend_keys(&group->self_trend, sort, sorted[i].self_trend);
		trend_keys(&group->total_trend, sort, sorted[i].total_trend);
	}
	qsort(sorted, view->group_count, sizeof(*sorted), by_change);
	for (size_t i = 0; i < view->group_count; i++)
		view->groups[i] = sorted[i].group;
	free(sorted);
	return 0;
}

static int make_spellings(struct view *view)
{
	if (view->group != GROUP_FUNCTION && view->group != GROUP_MODULE)
		return 0;
	view->spellings = calloc(1, sizeof(*view->spellings));
	return view->spellings ? spellings_make(view->spellings, view->naming) : -ERR_NOMEM;
}

int groups_make(struct view *view, enum view_sort sort)
{
	struct grouping grouping = {.view = view};
	int rc = make_spellings(view);

	table_init(&grouping.known);
	buf_init(&grouping.name);
	frames_init(&grouping.frames);
	for (size_t i = 0; !rc && i < view->row_count; i++)
		rc = group_row(&grouping, i);
	if (!rc && view->comparison->axis)
		rc = groups_judge(view);
	if (!rc)
		rc = sort_groups(view, sort);
	free(grouping.seen);
	frames_release(&grouping.frames);
	buf_release(&grouping.name);
	table_release(&grouping.known);
	return rc;
}
