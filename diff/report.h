/*
 * Reports: one function and one file for each form. They write; what is wrong with the output is
 * kept in out.
 */
#ifndef DIFF_REPORT_H
#define DIFF_REPORT_H

#include <stdbool.h>

#include "core/out.h"
#include "diff/view.h"

struct report_style {
	bool hex; /* numbers; offsets and addresses always are */
};

/* What can be asked for by name; ends with an entry without one. */
struct report_format {
	const char *name;
	void (*write)(struct out *out, const struct view *view, const struct report_style *style);
};
extern const struct report_format report_formats[];

/* UMDH's comparison. */
void report_text(struct out *out, const struct view *view, const struct report_style *style);

#endif
