/* The parts of the text report: what report_text() is made of, each its own file. */
#ifndef DIFF_REPORT_TEXT_H
#define DIFF_REPORT_TEXT_H

#include "diff/report/report.h"

struct text_report {
	struct out *out;
	const struct comparison *comparison;
	const struct view *view;
	const struct report *asked;
	unsigned base; /* of numbers: 10 or 16 */
	unsigned delta_width, sum_width, count_width;
	struct spark spark; /* of a trend */
};

/* The dumps, and how to read what follows: comments, all of them. */
void text_head(struct text_report *report);

/* Of a trend: its series and snapshots; how to read the line before each row; and that line. */
void text_series(struct text_report *report);
void text_trend_legend(struct text_report *report);
void text_trend(struct text_report *report, const struct trend *trend, const struct census *of);

/* What a dump says of itself that makes its numbers others than they look, behind its name. */
void text_dump_notes(struct out *out, const struct sums *sums);

/* A rate, in no more digits than say something, right-justified in width. */
void text_rate(struct out *out, double rate, bool has_sign, unsigned width);

/* Growth and names, one group a line. */
void text_groups(struct text_report *report);
void text_groups_legend(struct text_report *report);

/* What is not shown, as comments, and the last line. */
void text_end(struct text_report *report);

#endif
