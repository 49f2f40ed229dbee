#include "diff/ask/order.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "diff/ask/trend_order.h"

struct sorted {
	uint64_t key; /* the largest first */
	uint64_t trend[TREND_KEYS];
	const char *name; /* from A to Z; NULL last */
	uint64_t alike[TREND_KEYS]; /* what decides when all that is alike: a trend's default */
	uint32_t row;
};

static int by_key(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
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
	case SORT_BYTES: return key_of_signed(row_delta(comparison, row).requested_bytes);
	case SORT_COUNT: return key_of_signed(row_delta(comparison, row).block_count);
	case SORT_NEW: return row_new(comparison, row).requested_bytes;
	case SORT_OLD: return row_old(comparison, row).requested_bytes;
	case SORT_SLOPE:
	case SORT_VERDICT:
	case SORT_DEFAULT:
	case SORT_NAME: break;
	}
	return 0;
}

/* The innermost frame shown, of the first candidate. 0 or -ERR_NOMEM. */
static int sort_name(struct view *view, uint32_t row, struct frames *frames, struct buf *name,
	const char **sorted)
{
	int rc = naming_frames(view->naming, row, frames);

	if (!rc && view->strip)
		rc = strip_frames(view->strip, frames);
	if (rc || !frames->count)
		return rc;
	if (frame_name(&frames->items[0], name))
		return -ERR_NOMEM;
	*sorted = arena_text(&view->arena, name->data, name->len);
	return *sorted ? 0 : -ERR_NOMEM;
}

int view_sort_rows(struct view *view, enum view_sort sort)
{
	struct sorted *sorted = calloc(view->row_count + 1, sizeof(*sorted));
	struct frames frames;
	struct buf name;
	int rc = sorted ? 0 : -ERR_NOMEM;

	frames_init(&frames);
	buf_init(&name);
	for (size_t i = 0; !rc && i < view->row_count; i++) {
		sorted[i].row = view->rows[i];
		sorted[i].key = sort_key(view->comparison, view->rows[i], sort);
		trend_keys(&view->comparison->rows[view->rows[i]].trend, sort, sorted[i].trend);
		if (view->comparison->axis)
			trend_keys(&view->comparison->rows[view->rows[i]].trend, SORT_VERDICT,
				sorted[i].alike);
		if (sort == SORT_NAME)
			rc = sort_name(view, view->rows[i], &frames, &name, &sorted[i].name);
	}
	if (!rc)
		qsort(sorted, view->row_count, sizeof(*sorted), by_key);
	for (size_t i = 0; !rc && i < view->row_count; i++)
		view->rows[i] = sorted[i].row;
	free(sorted);
	frames_release(&frames);
	buf_release(&name);
	return rc;
}
