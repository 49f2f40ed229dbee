/* hdiff: rows are judged many at once, and none is forgotten. */
#include "tests/unit/t.h"

#include "diff/match/row_series.h"

#define SNAPSHOTS 12

/* What row number i asks for at each snapshot: it rises, is back in the end, or falls, by an amount of
 * its own. */
static uint64_t bytes_of(size_t row, size_t snapshot)
{
	uint64_t step = 100 + row;

	switch (row % 3) {
	case 0: return step * snapshot;
	case 1: return step * (snapshot % 2);
	default: return step * (SNAPSHOTS - snapshot);
	}
}

static void check_row(const struct row *row, size_t number)
{
	static const enum trend_verdict verdicts[] = {TREND_GROWS, TREND_RETURNS, TREND_SHRINKS};
	int64_t net = (int64_t)(bytes_of(number, SNAPSHOTS - 1) - bytes_of(number, 0));

	if (row->trend.verdict != verdicts[number % 3] || row->trend.net_bytes != net)
		fail_msg("row %zu: %s, %lld", number, trend_verdict_name(row->trend.verdict),
			(long long)row->trend.net_bytes);
}

static void check_rows(size_t count)
{
	struct trend_axis axis = {.count = SNAPSHOTS};
	struct comparison comparison = {.dump_count = SNAPSHOTS, .axis = &axis, .row_count = count};
	struct block_totals *sums = calloc(count * SNAPSHOTS + 1, sizeof(*sums));

	comparison.rows = calloc(count + 1, sizeof(*comparison.rows));
	assert_non_null(sums);
	assert_non_null(comparison.rows);
	for (size_t i = 0; i < count; i++) {
		comparison.rows[i].of = &sums[i * SNAPSHOTS];
		for (size_t k = 0; k < SNAPSHOTS; k++)
			comparison.rows[i].of[k] = (struct block_totals){1, bytes_of(i, k), 0};
	}
	series_judge_rows(&comparison);
	for (size_t i = 0; i < count; i++)
		check_row(&comparison.rows[i], i);
	free(comparison.rows);
	free(sums);
}

TEST(all_rows_are_judged_however_many)
{
	for (size_t count = 250; count < 262; count++)
		check_rows(count);
	check_rows(0);
	check_rows(1);
	check_rows(512);
	check_rows(3001);
}
