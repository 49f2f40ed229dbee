/* The parts of the text report: what report_text() is made of, each its own file. */
#ifndef DIFF_REPORT_TEXT_H
#define DIFF_REPORT_TEXT_H

#include "diff/report/report.h"

struct text_report {
	struct out *out;
	const struct comparison *comparison;
	const struct view *view;
	unsigned base; /* of numbers: 10 or 16 */
	unsigned delta_width, sum_width, count_width;
};

/* The dumps, and how to read what follows: comments, all of them. */
void text_head(struct text_report *report);

/* Growth and names, one group a line. */
void text_groups(struct text_report *report);

/* What is not shown, as comments, and the last line. */
void text_end(struct text_report *report);

#endif
