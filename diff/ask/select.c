#include "diff/ask/select.h"

#include <stdlib.h>

/* A comparison that was read may say anything of its total. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct census census_less(struct census a, struct census b)
{
	return (struct census){less(a.block_count, b.block_count),
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

int view_sum_series(struct view *view, const struct census *suppressed, bool is_filtered)
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
		view->series[i] = (struct census){0};
		if (!is_filtered)
			view->series[i] = comparison->dumps[i].total;
		if (!is_filtered && suppressed)
			view->series[i] = census_less(view->series[i], suppressed[i]);
	}
	for (size_t row = 0; row < view->row_count && is_filtered; row++) {
		for (size_t i = 0; i < count; i++)
			census_add(&view->series[i], &comparison->rows[view->rows[row]].of[i]);
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
	struct census *suppressed; /* by snapshot */
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
			census_add(&selecting->suppressed[at], &row->of[at]);
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

int view_select(struct view *view, struct naming *naming, const struct view_request *request,
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
