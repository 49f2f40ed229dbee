/* Declarations shared by the files that write the UMDH report. */
#ifndef DIFF_REPORT_UMDH_H
#define DIFF_REPORT_UMDH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dump/model.h"
#include "core/io/out.h"
#include "diff/query/view.h"
#include "diff/read/dump_sums.h"
#include "diff/report/report.h"
#include "diff/trend/trend.h"

enum { UMDH_SPARK_COLUMNS = 24 }; /* width of spark lines */

/* State of the UMDH report. */

struct umdh_report {
	struct out *out;
	const struct comparison *comparison;
	const struct view *view;
	const struct report *whole;
	unsigned base; /* base of numbers: 10 or 16 */
	unsigned delta_width, sum_width, count_width;
	struct spark spark; /* in a trend */
};

/* Writes the list of dumps and a legend, all as comments. */
void umdh_head(struct umdh_report *report);

/* For a trend. umdh_series() writes a series and the list of its snapshots. umdh_trend() writes the
 * trend line before a row, and umdh_trend_legend() the legend of these lines. */
void umdh_series(struct umdh_report *report);
void umdh_trend_legend(struct umdh_report *report);
void umdh_trend(
	struct umdh_report *report, const struct trend *trend, const struct block_totals *totals);

/* Writes a time in a recording: "10.250 s". */
void umdh_seconds(struct out *out, uint64_t ms);

/* Writes which allocations of a recording are included, and the window: ", what was allocated and
 * not freed from 1.000 s to 2.000 s". Writes nothing for a moment. */
void umdh_fate(struct out *out, const struct dump_sums *sums);

/* Writes notes after a dump's name, which explain why its numbers are estimates or incomplete. */
void umdh_dump_notes(struct out *out, const struct dump_sums *sums);

/* Writes a dump, with a line for each of its warnings. */
void umdh_dump(struct out *out, const char *role, const struct dump_sums *sums);

/* Writes all dumps of a comparison, with their warnings. */
void umdh_dumps(struct out *out, const struct comparison *comparison);

#define CUT_SHORT ", CUT SHORT: sums cover only the complete part"

/* Writes the warnings of a file, one per line. Each line starts with `before`. */
void umdh_warnings(struct out *out, const char *before, const char *path,
	const char *const *warnings, size_t count);

/* Writes the warnings of all dumps of a comparison, each warning once. */
void umdh_series_warnings(struct out *out, const char *before, const struct comparison *comparison);

/* Writes a rate with its significant digits, right-justified in `width` columns. */
void umdh_rate(struct out *out, double rate, bool has_sign, unsigned width);

#endif
