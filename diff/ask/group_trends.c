#include "diff/ask/group_trends.h"

#include "diff/match/judges.h"
#include "diff/match/series_ends.h"

static int add_series(struct view *view, struct census **to, const struct row *row)
{
	size_t count = view->comparison->dump_count;

	if (!*to)
		*to = arena_alloc(&view->arena, count * sizeof(**to));
	if (!*to)
		return -ERR_NOMEM;
	for (size_t i = 0; i < count; i++)
		census_add(&(*to)[i], &row->of[i]);
	return 0;
}

int group_add_series(struct view *view, struct view_group_row *group, const struct row *row,
	bool to_self, bool to_total)
{
	int rc = to_self ? add_series(view, &group->self_of, row) : 0;

	return rc || !to_total ? rc : add_series(view, &group->total_of, row);
}

/* What is in no group's self at all does not move. */
static void judge(
	struct trend_judge *judge, bool is_short, const struct census *of, struct trend *trend)
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

int groups_judge(struct view *view)
{
	return judges_run(view->comparison->axis, view->group_count, judge_group, view);
}
