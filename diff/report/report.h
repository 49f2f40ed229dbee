/*
 * Reports: one function and one file for each form. They write; what is wrong with the output is
 * kept in out.
 */
#ifndef DIFF_REPORT_H
#define DIFF_REPORT_H

#include <stdbool.h>

#include "core/out.h"
#include "diff/ask/view.h"
#include "diff/report/spark.h"

struct report_style {
	bool hex; /* numbers in text; offsets and addresses always are, everything else never is */
	enum spark_style spark; /* in text; AUTO is ASCII */
};

/* What is reported: one view, or of a trend one for each series, the first to begin first. */
struct report {
	const struct view *const *views;
	size_t view_count; /* at least 1 */
	struct report_style style;
	const char *const
		*left_out; /* paths of files that were found or given, and are in no view */
	size_t left_out_count;
};

/* Whether it is one of a trend: then each view has its series. */
static inline bool report_is_trend(const struct report *report)
{
	return report->views[0]->comparison->axis != NULL;
}

/* What can be asked for by name; ends with an entry without one. */
struct report_format {
	const char *name;
	void (*write)(struct out *out, const struct report *report);
	bool is_of_one; /* it has no room for more than one view */
};
extern const struct report_format report_formats[];

/* UMDH's comparison; a table when grouped. Of a trend one for each series. */
void report_text(struct out *out, const struct report *report);

/* For programs: man/hdiff-json.5. */
void report_json(struct out *out, const struct report *asked);

/* For spreadsheets: RFC 4180; man/hdiff-csv.5. */
void report_csv(struct out *out, const struct report *asked);

/* "frame;frame;frame OLD NEW", for drawing flame graphs of a difference; man/hdiff-csv.5. Of a trend
 * the first snapshot against the last. */
void report_folded(struct out *out, const struct report *asked);

#endif
