/* The columns that a trend adds to the CSV report, before and behind the others. */
#ifndef DIFF_CSV_TREND_H
#define DIFF_CSV_TREND_H

#include "diff/report/csv_write.h"
#include "diff/report/report.h"

/* What stands before: whose series it is, and what it says; of groups what self says comes first. */
void csv_trend_columns(struct csv *csv, bool is_grouped);

/* 0 or -ERR_NOMEM. */
int csv_process(struct csv *csv, const struct view *view);
void csv_trend(struct csv *csv, const struct view *view, const struct trend *trend);

/* What stands behind: bytes at each snapshot of each series, then blocks. 0 or -ERR_NOMEM. */
int csv_series_columns(struct csv *csv, const struct report *report);

/* of: a sum for each snapshot of view number series. */
void csv_series(
	struct csv *csv, const struct report *report, size_t series, const struct census *of);

#endif
