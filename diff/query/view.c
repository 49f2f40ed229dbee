/* Views: selects rows of a comparison using filters and suppressions, sums them up, sorts them, and
 * provides their frames. */
#include "diff/query/view.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/query/group.h"
#include "diff/query/lives.h"

struct sorted_row {
	uint64_t key; /* largest first */
	uint64_t trend[TREND_KEYS];
	const char *name; /* from A to Z; NULL last */
	/* keys for rows that are equal otherwise: the default order of a trend */
	uint64_t alike[TREND_KEYS];
	uint32_t row;
};

static int by_key(const void *a, const void *b)
{
	const struct sorted_row *x = a, *y = b;
	int order = trend_keys_order(x->trend, y->trend);

	if (order)
		return order;
	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	if (x->name && y->name)
		order = strcmp(x->name, y->name);
	else if (x->name || y->name)
		order = x->name ? -1 : 1;
	if (!order)
		order = trend_keys_order(x->alike, y->alike);
	return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

static uint64_t sort_key(const struct comparison *comparison, uint32_t number, enum view_sort sort)
{
	const struct row *row = &comparison->rows[number];

	switch (sort) {
	case SORT_TOTAL:
	case SORT_BYTES: return signed_key(row_delta(comparison, row).requested_bytes);
	case SORT_COUNT: return signed_key(row_delta(comparison, row).block_count);
	case SORT_NEW: return row_new(comparison, row).requested_bytes;
	case SORT_OLD: return row_old(comparison, row).requested_bytes;
	case SORT_PINNED:
	case SORT_SLOPE:
	case SORT_VERDICT:
	case SORT_DEFAULT:
	case SORT_NAME: break;
	}
	return 0;
}

/* Returns the name of the innermost frame shown (of the first candidate), or NULL. */
static const char *sort_name(
	struct view *view, uint32_t row, struct frames *frames, struct buf *name)
{
	naming_frames(&view->naming, row, frames);
	if (view->strip)
		strip_frames(view->strip, frames);
	if (!frames->count)
		return NULL;
	frame_name(&frames->items[0], name);
	return arena_text(&view->arena, name->data, name->len);
}

/* Sorts the rows. Rows with equal keys stay in the default order. For SORT_NAME, names must have
 * been looked up. */
static void sort_rows(struct view *view)
{
	struct sorted_row *sorted = xcalloc(view->row_count + 1, sizeof(*sorted));
	struct frames frames;
	struct buf name;

	frames_init(&frames);
	buf_init(&name);
	for (size_t i = 0; i < view->row_count; i++) {
		const struct trend *trend =
			row_trend(view->comparison, &view->comparison->rows[view->rows[i]]);

		sorted[i].row = view->rows[i];
		sorted[i].key = sort_key(view->comparison, view->rows[i], view->sort);
		trend_keys(trend, view->sort, sorted[i].trend);
		if (view->sort == SORT_PINNED) {
			sorted[i].trend[0] = view->pinned.rows[view->rows[i]].part_bytes;
			sorted[i].trend[1] = view->pinned.rows[view->rows[i]].alone_bytes;
		}
		if (view->comparison->axis)
			trend_keys(trend, SORT_VERDICT, sorted[i].alike);
		if (view->sort == SORT_NAME)
			sorted[i].name = sort_name(view, view->rows[i], &frames, &name);
	}
	qsort(sorted, view->row_count, sizeof(*sorted), by_key);
	for (size_t i = 0; i < view->row_count; i++)
		view->rows[i] = sorted[i].row;
	free(sorted);
	frames_release(&frames);
	buf_release(&name);
}

/* Subtracts without wrapping below 0, because totals of printed comparisons may be wrong. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct block_totals totals_less(struct block_totals a, struct block_totals b)
{
	return (struct block_totals){less(a.block_count, b.block_count),
		less(a.requested_bytes, b.requested_bytes),
		less(a.overhead_bytes, b.overhead_bytes)};
}

/* Sums up the selected rows. In a trend, also sums up each snapshot, and judges the trend. If no
 * filter is active, subtracts the suppressed rows from the total instead. The sum then includes
 * unchanged rows. `suppressed` is indexed by snapshot and may be NULL. */
static void sum_up(struct view *view, const struct block_totals *suppressed, bool is_filtered)
{
	const struct comparison *comparison = view->comparison;
	struct trend_judge *judge;

	view->is_filtered = is_filtered || view->suppressed_count;
	view->selected = (struct change){0};
	if (!is_filtered) {
		view->selected.old = totals_less(view->all.old, view->suppressed.old);
		view->selected.now = totals_less(view->all.now, view->suppressed.now);
	}
	for (size_t i = 0; is_filtered && i < view->row_count; i++)
		change_add_row(&view->selected, comparison, &comparison->rows[view->rows[i]]);
	if (!comparison->axis)
		return;
	for (size_t i = 0; i < comparison->dump_count; i++) {
		struct block_totals total = comparison->dumps[i].total;

		if (is_filtered)
			view->series[i] = (struct block_totals){0};
		else
			view->series[i] = suppressed ? totals_less(total, suppressed[i]) : total;
	}
	for (size_t row = 0; is_filtered && row < view->row_count; row++) {
		for (size_t i = 0; i < comparison->dump_count; i++)
			block_totals_add(
				&view->series[i], &comparison->rows[view->rows[row]].totals[i]);
	}
	judge = trend_judge_new(comparison->axis);
	trend_judge(judge, view->series, &view->trend);
	trend_judge_free(judge);
}

/* Drops the rows that can be rejected without names. For rows whose verdict depends on names, looks
 * up the names. `verdicts` is indexed like `view->rows`. */
static int select_raw(struct view *view, const struct view_request *request, struct frames *frames,
	unsigned char *verdicts, struct err *err)
{
	struct filter *filter = request->filter;
	bool by_frames =
		filter && (filter->include.count || filter->exclude.count || filter->module_count);
	uint32_t *asked = xcalloc(view->row_count + 1, sizeof(*asked));
	size_t left = 0, count = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < view->row_count; i++) {
		const struct row *row = &view->comparison->rows[view->rows[i]];
		enum verdict verdict = VERDICT_KEEP;

		if (filter && !filter_change(filter, view->comparison, row))
			continue;
		if (by_frames) {
			naming_frames(&view->naming, view->rows[i], frames);
			rc = filter_raw(filter, view->comparison, row, frames, &verdict, err);
		}
		if (rc || verdict == VERDICT_DROP)
			continue;
		if (request->suppressions || verdict != VERDICT_KEEP)
			asked[count++] = view->rows[i];
		verdicts[left] = (unsigned char)verdict;
		view->rows[left++] = view->rows[i];
	}
	view->row_count = left;
	if (!rc)
		naming_find(&view->naming, asked, count);
	free(asked);
	return rc;
}

/* Returns true if a row is not shown and only counts in sums. In a window of a recording, the row
 * has no blocks of the window's fate. Otherwise, the row did not change. */
static bool is_other(const struct view *view, const struct row *row)
{
	struct delta delta;

	if (comparison_is_window(view->comparison))
		return !row_new(view->comparison, row).block_count;
	delta = row_delta(view->comparison, row);
	return view->comparison->has_unchanged && !delta.requested_bytes && !delta.block_count;
}

/* Moves the rows that only count in sums to the end. */
static void set_others_aside(struct view *view)
{
	uint32_t *others = xcalloc(view->row_count + 1, sizeof(*others));
	size_t left = 0;

	for (size_t i = 0; i < view->row_count; i++) {
		if (is_other(view, &view->comparison->rows[view->rows[i]]))
			others[view->other_count++] = view->rows[i];
		else
			view->rows[left++] = view->rows[i];
	}
	memcpy(view->rows + left, others, view->other_count * sizeof(*others));
	view->row_count = left;
	free(others);
}

/* Counts the growth of a row for the limit of its suppression. */
static void count_growth(
	const struct view *view, struct suppression *suppression, const struct row *row)
{
	struct delta delta = row_delta(view->comparison, row);

	if (is_other(view, row))
		return;
	suppression->grown_bytes += delta.requested_bytes > 0 ? (uint64_t)delta.requested_bytes : 0;
	suppression->grown_blocks += delta.block_count > 0 ? (uint64_t)delta.block_count : 0;
	suppression->lacks_blocks |= view->comparison->lacks_blocks;
}

/* Returns true if the growth is over a limit, or unknown. */
static bool is_over_limit(struct suppression *suppression)
{
	if (suppression->grown_bytes <= suppression->max_bytes &&
		suppression->grown_blocks <= suppression->max_blocks &&
		(!suppression->lacks_blocks || suppression->max_blocks == UINT64_MAX))
		return false;
	suppression->is_over = true;
	suppression->over_bytes = suppression->grown_bytes;
	suppression->over_blocks = suppression->grown_blocks;
	return true;
}

/* Adds a row to the sums of the suppression that removes it. */
static void suppress(struct view *view, struct suppression *suppression, const struct row *row,
	struct block_totals *suppressed)
{
	struct delta delta = row_delta(view->comparison, row);

	if (is_other(view, row))
		return;
	suppression->row_count++;
	suppression->requested_bytes += delta.requested_bytes;
	suppression->block_count += delta.block_count;
	change_add_row(&view->suppressed, view->comparison, row);
	for (size_t i = 0; i < comparison_columns(view->comparison); i++)
		block_totals_add(&suppressed[i], &row->totals[i]);
	view->suppressed_count++;
}

/* Drops rows that are rejected because of their names. Stores the sums of suppressed rows in
 * `suppressed`, indexed by snapshot. */
static int select_named(struct view *view, const struct view_request *request,
	struct frames *frames, const unsigned char *verdicts, struct block_totals *suppressed,
	struct err *err)
{
	struct suppressions *suppressions = request->suppressions;
	struct suppression **found = xcalloc(view->row_count + 1, sizeof(struct suppression *));
	size_t left = 0, count;
	int rc = 0;

	for (size_t i = 0; suppressions && i < suppressions->count; i++)
		suppressions->items[i].grown_bytes = suppressions->items[i].grown_blocks = 0;
	for (size_t i = 0; !rc && i < view->row_count; i++) {
		const struct row *row = &view->comparison->rows[view->rows[i]];
		enum verdict verdict = (enum verdict)verdicts[i];

		if (verdict != VERDICT_KEEP || suppressions)
			naming_frames(&view->naming, view->rows[i], frames);
		if (verdict != VERDICT_KEEP)
			rc = filter_named(request->filter, frames, &verdict, err);
		if (rc || verdict != VERDICT_KEEP)
			continue;
		if (suppressions)
			found[left] =
				suppressions_match(suppressions, view->comparison, row, frames);
		if (found[left])
			count_growth(view, found[left], row);
		view->rows[left++] = view->rows[i];
	}
	count = left;
	left = 0;
	for (size_t i = 0; i < count; i++) {
		if (found[i] && !is_over_limit(found[i]))
			suppress(
				view, found[i], &view->comparison->rows[view->rows[i]], suppressed);
		else
			view->rows[left++] = view->rows[i];
	}
	view->row_count = left;
	free(found);
	return rc;
}

/* Selects the rows of a view and sums them up: part of view_select(). */
static int select_rows(struct view *view, const struct view_request *request, struct err *err)
{
	unsigned char *verdicts = xcalloc(view->row_count + 1, 1);
	struct block_totals *suppressed =
		xcalloc(view->comparison->dump_count, sizeof(*suppressed));
	struct frames frames;
	int rc;

	frames_init(&frames);
	rc = select_raw(view, request, &frames, verdicts, err);
	if (!rc)
		rc = select_named(view, request, &frames, verdicts, suppressed, err);
	if (!rc && !view->wants_lives)
		set_others_aside(view);
	if (!rc)
		sum_up(view, suppressed,
			request->is_part || (request->filter && filter_is_active(request->filter)));
	frames_release(&frames);
	free(verdicts);
	free(suppressed);
	return rc;
}

void view_make(struct view *view, const struct comparison *comparison, bool by_name)
{
	*view = (struct view){.comparison = comparison,
		.rows = xcalloc(comparison->row_count + 1, sizeof(*view->rows)),
		.row_count = comparison->row_count,
		.shown_count = comparison->row_count,
		.all = {comparison->old_total, comparison->new_total},
		.series_number = comparison->series_number,
		.series_count = comparison->series_count};
	naming_make(&view->naming, comparison, by_name);
	arena_init(&view->arena);
	for (size_t i = 0; i < comparison->row_count; i++)
		view->rows[i] = (uint32_t)i;
	if (comparison->axis)
		view->series = xcalloc(comparison->dump_count, sizeof(*view->series));
	sum_up(view, NULL, false);
	balance_view_make(&view->balance, comparison, &view->arena);
	heap_view_make(&view->heaps, comparison, &view->arena);
}

void view_release(struct view *view)
{
	free(view->rows);
	free(view->series);
	for (size_t i = 0; view->groups && i < view->group_count; i++)
		free(view->groups[i].members);
	free(view->groups);
	free(view->window);
	lives_release(view->lives);
	free(view->blocks);
	free(view->contents);
	if (view->spellings)
		spellings_release(view->spellings);
	free(view->spellings);
	naming_release(&view->naming);
	arena_release(&view->arena);
	*view = (struct view){0};
}

/* ---------------------------------------------------------------- frames */

/* Reverses the frames of each candidate. */
static void turn_frames(struct frames *frames)
{
	size_t from = 0;

	for (size_t part = 0; part <= frames->part_count; part++) {
		size_t to = part < frames->part_count ? frames->part_at[part] : frames->count;

		for (size_t last = to; from + 1 < last; from++) {
			struct frame frame = frames->items[from];

			frames->items[from] = frames->items[--last];
			frames->items[last] = frame;
		}
		from = to;
	}
}

static void shape_frames(const struct view *view, struct frames *frames)
{
	if (view->strip)
		strip_frames(view->strip, frames);
	if (view->is_inverted)
		turn_frames(frames);
}

void view_frames(const struct view *view, uint32_t row, struct frames *frames)
{
	naming_frames(&view->naming, row, frames);
	shape_frames(view, frames);
}

void view_freed_by_frames(
	const struct view *view, const struct window_sums *sums, struct frames *frames)
{
	naming_stack_frames(&view->naming, view->comparison->dumps, sums->freed_by, frames);
	shape_frames(view, frames);
}

void view_find_creators(struct view *view)
{
	const struct heap_view *heaps = &view->heaps;
	struct stack *stacks = xcalloc(heaps->count + 1, sizeof(*stacks));

	for (size_t dump = 0; dump < view->comparison->dump_count; dump++) {
		size_t count = 0;

		for (size_t i = 0; i < heaps->count; i++) {
			if (heaps->rows[i].creator_dump == dump)
				stacks[count++] = heaps->rows[i].creator;
		}
		naming_find_stacks(&view->naming, dump, stacks, count);
	}
	free(stacks);
}

/* ---------------------------------------------------------------- stacks without a caller */

static uint64_t growth_bytes(const struct view *view, uint32_t row)
{
	struct delta delta = row_delta(view->comparison, &view->comparison->rows[row]);

	return delta.requested_bytes > 0 ? (uint64_t)delta.requested_bytes : 0;
}

static bool is_uncalled(
	const struct view *view, struct strip *strip, uint32_t row, struct frames *frames)
{
	size_t count = 0;

	if (view->comparison->rows[row].is_torn)
		return false;
	naming_frames(&view->naming, row, frames);
	while (count < frames->count && strip_matches(strip, &frames->items[count]))
		count++;
	/* In a stack without names, ntdll calling kernel32 is the start of a thread, so the stack
	 * is complete. */
	if (count > 1 && count == frames->count && !frames->items[count - 1].function &&
		text_glob("ntdll", frames->items[count - 1].module, GLOB_FOLD) &&
		text_glob("kernel32", frames->items[count - 2].module, GLOB_FOLD))
		return false;
	return count && count == frames->count;
}

void view_find_uncalled(struct view *view, struct strip *strip)
{
	uint32_t *rows = xcalloc(view->row_count + 1, sizeof(*rows));
	uint64_t grown = 0;
	size_t count = 0;
	struct frames frames;

	frames_init(&frames);
	for (size_t i = 0; i < view->row_count; i++)
		grown += growth_bytes(view, view->rows[i]);
	for (size_t i = 0; i < view->row_count; i++) {
		if (growth_bytes(view, view->rows[i]) > grown / 1000 &&
			is_uncalled(view, strip, view->rows[i], &frames))
			rows[count++] = view->rows[i];
	}
	/* with a name, a frame may turn out to be a caller */
	naming_find(&view->naming, rows, count);
	for (size_t i = 0; i < count; i++) {
		if (is_uncalled(view, strip, rows[i], &frames))
			view->uncalled_bytes += growth_bytes(view, rows[i]);
	}
	frames_release(&frames);
	free(rows);
}

/* ---------------------------------------------------------------- the request */

/* Drops the rows that pin no container. They still count in sums. */
static void drop_unpinned(struct view *view)
{
	size_t left = 0;

	for (size_t i = 0; i < view->row_count; i++) {
		if (view->pinned.rows[view->rows[i]].container_count)
			view->rows[left++] = view->rows[i];
	}
	view->row_count = left;
}

int view_select(struct view *view, const struct view_request *request, struct err *err)
{
	bool is_trend = view->comparison->axis, by_number;
	/* Groups are sorted by their own names, so only rows need the names of frames. */
	bool by_name = request->sort == SORT_NAME && request->group == GROUP_STACK;
	bool by_frame = request->group == GROUP_FUNCTION || request->group == GROUP_FILE ||
			(request->group == GROUP_MODULE && request->strip);
	size_t count;
	int rc;

	view->group = request->group;
	view->is_inverted = request->is_inverted;
	view->strip = request->strip;
	view->sort = request->sort;
	view->wants_lives = request->wants_lives && request->group == GROUP_STACK &&
			    comparison_is_window(view->comparison);
	if (view->sort == SORT_DEFAULT)
		view->sort = view->pinned.rows ? SORT_PINNED : is_trend ? SORT_VERDICT : SORT_BYTES;
	rc = select_rows(view, request, err);
	if (rc)
		return rc;
	if (view->pinned.rows)
		drop_unpinned(view);
	if (by_name || by_frame)
		naming_find(&view->naming, view->rows, view->row_count + view->other_count);
	/* Rows are already sorted by bytes. */
	by_number = view->sort != SORT_NAME && (view->sort != SORT_BYTES || is_trend);
	if (by_number || by_name)
		sort_rows(view);
	if (view->group != GROUP_STACK)
		groups_make(view);
	count = view->group == GROUP_STACK ? view->row_count : view->group_count;
	view->shown_count = count < request->shown_max ? count : request->shown_max;
	if (view->group == GROUP_STACK)
		naming_find(&view->naming, view->rows, view->shown_count);
	return 0;
}
