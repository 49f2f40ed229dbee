#include "diff/match/row_trends.h"

#include "diff/match/judges.h"

static void judge_row(void *ctx, size_t index, struct trend_judge *by)
{
	struct row *row = &((struct comparison *)ctx)->rows[index];

	trend_judge(by, row->of, &row->trend);
}

int rows_judge(struct comparison *comparison)
{
	return judges_run(comparison->axis, comparison->row_count, judge_row, comparison);
}
