#include "diff/query/view.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/query/group.h"
#include "diff/query/query_parts.h"

#define SIGN_BIT (UINT64_C(1) << 63)

/* Compares as the signed number does. */
static uint64_t view_signed_key(int64_t value)
{
	return (uint64_t)value ^ SIGN_BIT;
}

/* The same of a number with a fraction. */
static uint64_t key_of_double(double value)
{
	uint64_t bits;

	value += 0.0; /* there is but one zero */
	memcpy(&bits, &value, sizeof(bits));
	return bits & SIGN_BIT ? ~bits : bits | SIGN_BIT;
}

void trend_keys(const struct trend *trend, enum view_sort sort, uint64_t keys[TREND_KEYS])
{
	uint64_t *key = keys;

	memset(keys, 0, TREND_KEYS * sizeof(*keys));
	if (sort != SORT_VERDICT && sort != SORT_SLOPE)
		return;
	if (sort == SORT_VERDICT)
		*key++ = TREND_VERDICTS - trend->verdict;
	if (sort == SORT_VERDICT && trend->verdict != TREND_TOO_FEW)
		*key++ = key_of_double(trend->low_bytes_per_hour);
	if (sort == SORT_SLOPE || trend->verdict != TREND_TOO_FEW) {
		*key++ = key_of_double(trend->bytes_per_hour);
		*key++ = key_of_double(trend->blocks_per_hour);
	}
	*key++ = view_signed_key(trend->net_bytes);
	*key = view_signed_key(trend->net_blocks);
}

int trend_keys_order(const uint64_t a[TREND_KEYS], const uint64_t b[TREND_KEYS])
{
	for (size_t i = 0; i < TREND_KEYS; i++) {
		if (a[i] != b[i])
			return a[i] > b[i] ? -1 : 1;
	}
	return 0;
}

struct sorted_row {
	uint64_t key; /* the largest first */
	uint64_t trend[TREND_KEYS];
	const char *name; /* from A to Z; NULL last */
	uint64_t alike[TREND_KEYS]; /* what decides when all that is alike: a trend's default */
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
	case SORT_BYTES: return view_signed_key(row_delta(comparison, row).requested_bytes);
	case SORT_COUNT: return view_signed_key(row_delta(comparison, row).block_count);
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

/* Sorts the rows; those alike stay in the order of the default. By name they must have theirs. 0 or
 * -ERR_NOMEM. */
static int view_sort_rows(struct view *view, enum view_sort sort)
{
	struct sorted_row *sorted = calloc(view->row_count + 1, sizeof(*sorted));
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

/* A comparison that was read may say anything of its total. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct block_totals census_less(struct block_totals a, struct block_totals b)
{
	return (struct block_totals){less(a.block_count, b.block_count),
		less(a.requested_bytes, b.requested_bytes),
		less(a.overhead_bytes, b.overhead_bytes)};
}

/* Rows that cancel out belong to what is selected as long as nothing is filtered. */
static void sum_up(struct view *view, bool is_filtered)
{
	const struct comparison *comparison = view->comparison;

	view->is_filtered = is_filtered || view->suppressed_count;
	if (!is_filtered) {
		view->selected.old = census_less(view->all.old, view->suppressed.old);
		view->selected.new = census_less(view->all.new, view->suppressed.new);
		return;
	}
	view->selected = (struct change){0};
	for (size_t i = 0; i < view->row_count; i++)
		change_add_row(&view->selected, comparison, &comparison->rows[view->rows[i]]);
}

/* Of a trend: sums up what the view's rows add up to at each snapshot, with rows that did not change
 * unless is_filtered, and judges that. suppressed: what is taken off, by snapshot; NULL: nothing. 0 or
 * -ERR_NOMEM. */
static int view_sum_series(
	struct view *view, const struct block_totals *suppressed, bool is_filtered)
{
	const struct comparison *comparison = view->comparison;
	size_t count = comparison->dump_count;
	struct trend_judge *judge = trend_judge_new(comparison->axis);

	if (!view->series)
		view->series = calloc(count, sizeof(*view->series));
	if (!judge || !view->series) {
		trend_judge_free(judge);
		return -ERR_NOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		view->series[i] = (struct block_totals){0};
		if (!is_filtered)
			view->series[i] = comparison->dumps[i].total;
		if (!is_filtered && suppressed)
			view->series[i] = census_less(view->series[i], suppressed[i]);
	}
	for (size_t row = 0; row < view->row_count && is_filtered; row++) {
		for (size_t i = 0; i < count; i++)
			block_totals_add(
				&view->series[i], &comparison->rows[view->rows[row]].of[i]);
	}
	trend_judge(judge, view->series, &view->trend);
	trend_judge_free(judge);
	return 0;
}

struct selecting {
	struct view *view;
	struct naming *naming;
	const struct view_request *request;
	struct frames frames;
	unsigned char *verdicts; /* of view->rows */
	struct block_totals *suppressed; /* by snapshot */
	struct err *err;
};

static const struct row *row_at(const struct selecting *selecting, size_t i)
{
	return &selecting->view->comparison->rows[selecting->view->rows[i]];
}

static int frames_at(struct selecting *selecting, size_t i)
{
	if (naming_frames(selecting->naming, selecting->view->rows[i], &selecting->frames))
		return err_set(selecting->err, ERR_NOMEM, NULL, NULL);
	return 0;
}

/* What can be said without names. */
static int judge_raw(struct selecting *selecting, size_t i, enum verdict *verdict)
{
	const struct comparison *comparison = selecting->view->comparison;
	struct filter *filter = selecting->request->filter;
	const struct row *row = row_at(selecting, i);
	int rc;

	*verdict = VERDICT_KEEP;
	if (!filter)
		return 0;
	if (!filter_change(filter, comparison, row)) {
		*verdict = VERDICT_DROP;
		return 0;
	}
	if (!filter->include.count && !filter->exclude.count && !filter->module_count)
		return 0;
	rc = frames_at(selecting, i);
	return rc ? rc :
		    filter_raw(
			    filter, comparison, row, &selecting->frames, verdict, selecting->err);
}

/* Drops rows that need no names for that, and looks for the names that others need. */
static int judge_all_raw(struct selecting *selecting)
{
	struct view *view = selecting->view;
	bool need_all = selecting->request->suppressions != NULL;
	uint32_t *asked = calloc(view->row_count + 1, sizeof(*asked));
	size_t kept = 0, count = 0;
	int rc = 0;

	if (!asked)
		return err_set(selecting->err, ERR_NOMEM, NULL, NULL);
	for (size_t i = 0; !rc && i < view->row_count; i++) {
		enum verdict verdict;

		rc = judge_raw(selecting, i, &verdict);
		if (rc || verdict == VERDICT_DROP)
			continue;
		if (need_all || verdict != VERDICT_KEEP)
			asked[count++] = view->rows[i];
		selecting->verdicts[kept] = (unsigned char)verdict;
		view->rows[kept++] = view->rows[i];
	}
	if (!rc) {
		view->row_count = kept;
		rc = naming_find(selecting->naming, asked, count, selecting->err);
	}
	free(asked);
	return rc;
}

/* Takes a row away that is suppressed. */
static int suppress(struct selecting *selecting, size_t i, bool *taken)
{
	struct suppressions *suppressions = selecting->request->suppressions;
	const struct comparison *comparison = selecting->view->comparison;
	const struct row *row = row_at(selecting, i);
	struct delta delta = row_delta(comparison, row);
	size_t index;

	if (suppressions_match(suppressions, comparison, row, &selecting->frames, &index))
		return err_set(selecting->err, ERR_NOMEM, NULL, NULL);
	*taken = index < suppressions->count;
	if (*taken) {
		suppression_use(&suppressions->items[index], &delta);
		change_add_row(&selecting->view->suppressed, comparison, row);
		for (size_t at = 0; at < comparison_columns(comparison); at++)
			block_totals_add(&selecting->suppressed[at], &row->of[at]);
		selecting->view->suppressed_count++;
	}
	return 0;
}

static int judge_named(struct selecting *selecting, size_t i, bool *kept)
{
	enum verdict verdict = (enum verdict)selecting->verdicts[i];
	bool is_suppressed = false;
	int rc = 0;

	if (verdict != VERDICT_KEEP || selecting->request->suppressions)
		rc = frames_at(selecting, i);
	if (!rc && verdict != VERDICT_KEEP)
		rc = filter_named(
			selecting->request->filter, &selecting->frames, &verdict, selecting->err);
	if (!rc && verdict == VERDICT_KEEP && selecting->request->suppressions)
		rc = suppress(selecting, i, &is_suppressed);
	*kept = !rc && verdict == VERDICT_KEEP && !is_suppressed;
	return rc;
}

static int judge_all_named(struct selecting *selecting)
{
	struct view *view = selecting->view;
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < view->row_count; i++) {
		bool is_kept;

		rc = judge_named(selecting, i, &is_kept);
		if (is_kept)
			view->rows[kept++] = view->rows[i];
	}
	view->row_count = kept;
	return rc;
}

/* Narrows the rows of a view and sums up what is left: see view_ask(), whose part this is. */
static int view_select(struct view *view, struct naming *naming, const struct view_request *request,
	struct err *err)
{
	struct selecting selecting = {
		.view = view, .naming = naming, .request = request, .err = err};
	bool is_filtered =
		request->is_part || (request->filter && filter_is_active(request->filter));
	int rc = -ERR_NOMEM;

	frames_init(&selecting.frames);
	selecting.verdicts = calloc(view->row_count + 1, 1);
	selecting.suppressed = calloc(view->comparison->dump_count, sizeof(*selecting.suppressed));
	if (!selecting.verdicts || !selecting.suppressed)
		err_set(err, ERR_NOMEM, NULL, NULL);
	else
		rc = judge_all_raw(&selecting);
	if (!rc)
		rc = judge_all_named(&selecting);
	if (!rc)
		sum_up(view, is_filtered);
	if (!rc && view->comparison->axis &&
		view_sum_series(view, selecting.suppressed, is_filtered))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	frames_release(&selecting.frames);
	free(selecting.verdicts);
	free(selecting.suppressed);
	return rc;
}

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
	block_totals_add(&to->old, &more->old);
	block_totals_add(&to->new, &more->new);
}

void change_add_row(
	struct change *change, const struct comparison *comparison, const struct row *row)
{
	struct change more = row_change(comparison, row);

	change_add(change, &more);
}

struct delta change_delta(const struct change *change)
{
	/* Parts of sums that fit, see dump_sums.h. */
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
