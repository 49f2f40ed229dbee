/*
 * Reports: one function and one file for each form. They write; what is wrong with the output is
 * kept in out.
 */
#ifndef DIFF_REPORT_H
#define DIFF_REPORT_H

#include <stdbool.h>

#include "core/out.h"
#include "diff/ask/view.h"

struct report_style {
	bool hex; /* numbers in text; offsets and addresses always are, everything else never is */
};

/* What can be asked for by name; ends with an entry without one. */
struct report_format {
	const char *name;
	void (*write)(struct out *out, const struct view *view, const struct report_style *style);
};
extern const struct report_format report_formats[];

/* UMDH's comparison; a table when grouped. */
void report_text(struct out *out, const struct view *view, const struct report_style *style);

/* For programs: man/hdiff-json.5. */
void report_json(struct out *out, const struct view *view, const struct report_style *style);

/* For spreadsheets: RFC 4180; man/hdiff-csv.5. */
void report_csv(struct out *out, const struct view *view, const struct report_style *style);

/* "frame;frame;frame OLD NEW", for drawing flame graphs of a difference; man/hdiff-csv.5. */
void report_folded(struct out *out, const struct view *view, const struct report_style *style);

#endif
