#include "diff/ask/view.h"

#include <stdlib.h>

#include "diff/ask/group.h"
#include "diff/ask/order.h"
#include "diff/ask/select.h"

int view_make(struct view *view, const struct comparison *comparison, const struct naming *naming)
{
	*view = (struct view){.comparison = comparison,
		.naming = naming,
		.series_number = comparison->series_number,
		.series_count = comparison->series_count};
	arena_init(&view->arena);
	view->rows = calloc(comparison->row_count + 1, sizeof(*view->rows));
	if (!view->rows)
		return -ERR_NOMEM;
	for (size_t i = 0; i < comparison->row_count; i++)
		view->rows[i] = (uint32_t)i;
	view->row_count = view->shown_count = comparison->row_count;
	view->all = (struct change){comparison->old_total, comparison->new_total};
	view->selected = view->all;
	return comparison->axis ? view_sum_series(view, NULL, false) : 0;
}

void view_release(struct view *view)
{
	free(view->rows);
	free(view->series);
	free(view->groups);
	if (view->spellings)
		spellings_release(view->spellings);
	free(view->spellings);
	arena_release(&view->arena);
	*view = (struct view){0};
}

/* ---------------------------------------------------------------- frames */

static void turn(struct frame *items, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct frame other = items[i];

		items[i] = items[count - 1 - i];
		items[count - 1 - i] = other;
	}
}

/* Each candidate by itself. */
static void turn_frames(struct frames *frames)
{
	size_t from = 0;

	for (size_t part = 0; part <= frames->part_count; part++) {
		size_t to = part < frames->part_count ? frames->part_at[part] : frames->count;

		turn(frames->items + from, to - from);
		from = to;
	}
}

int view_frames(const struct view *view, uint32_t row, struct frames *frames)
{
	int rc = naming_frames(view->naming, row, frames);

	if (!rc && view->strip)
		rc = strip_frames(view->strip, frames);
	if (!rc && view->is_inverted && frames->count)
		turn_frames(frames);
	return rc;
}

/* ---------------------------------------------------------------- sums */

struct change row_change(const struct comparison *comparison, const struct row *row)
{
	return (struct change){row_old(comparison, row), row_new(comparison, row)};
}

void change_add(struct change *to, const struct change *more)
{
	census_add(&to->old, &more->old);
	census_add(&to->new, &more->new);
}

void change_add_row(
	struct change *change, const struct comparison *comparison, const struct row *row)
{
	struct change more = row_change(comparison, row);

	change_add(change, &more);
}

struct delta change_delta(const struct change *change)
{
	/* Parts of sums that fit, see sum.h. */
	return (struct delta){
		(int64_t)(change->new.block_count - change->old.block_count),
		(int64_t)(change->new.requested_bytes - change->old.requested_bytes),
		(int64_t)(change->new.overhead_bytes - change->old.overhead_bytes),
	};
}

/* ---------------------------------------------------------------- what is asked for */

static enum view_sort view_sort_of(const struct view *view, enum view_sort sort)
{
	if (sort != SORT_DEFAULT)
		return sort;
	return view->comparison->axis ? SORT_VERDICT : SORT_BYTES;
}

/* Groups have names of their own. */
static bool is_by_name(const struct view_request *request)
{
	return request->sort == SORT_NAME && request->group == GROUP_STACK;
}

/* How many of the rows must have names before they are sorted and grouped. */
static size_t named_count(const struct view *view, const struct view_request *request)
{
	bool by_name = is_by_name(request);
	bool by_frame = request->group == GROUP_FUNCTION || request->group == GROUP_FILE ||
			(request->group == GROUP_MODULE && request->strip);

	return by_name || by_frame ? view->row_count : 0;
}

int view_ask(struct view *view, struct naming *naming, const struct view_request *request,
	struct err *err)
{
	enum view_sort sort = view_sort_of(view, request->sort);
	bool is_so = sort == SORT_BYTES && !view->comparison->axis;
	bool by_number = !is_so && sort != SORT_NAME;
	size_t count;
	int rc;

	view->group = request->group;
	view->is_inverted = request->is_inverted;
	view->strip = request->strip;
	view->sort = sort;
	rc = view_select(view, naming, request, err);
	if (!rc)
		rc = naming_find(naming, view->rows, named_count(view, request), err);
	if (!rc && (by_number || is_by_name(request)) && view_sort_rows(view, sort))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	if (!rc && view->group != GROUP_STACK && groups_make(view, sort))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	if (rc)
		return rc;
	count = view->group == GROUP_STACK ? view->row_count : view->group_count;
	view->shown_count = count < request->shown_max ? count : request->shown_max;
	if (view->group == GROUP_STACK)
		rc = naming_find(naming, view->rows, view->shown_count, err);
	return rc;
}
