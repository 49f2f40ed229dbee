#include "diff/report/report_text.h"

#include "diff/report/report_parts.h"

/* Behind a blank, which wide numbers leave. */
#define BYTES_WIDTH 13
#define COUNT_WIDTH 9

static void put_growth(struct text_report *report, uint64_t new, uint64_t old, unsigned width)
{
	struct growth growth = growth_of(new, old);

	out_char(report->out, ' ');
	out_signed(report->out, growth.sign, growth.amount, report->base, width);
}

static void put_change(struct text_report *report, const struct change *change)
{
	put_growth(report, change->new.requested_bytes, change->old.requested_bytes, BYTES_WIDTH);
	put_growth(report, change->new.block_count, change->old.block_count, COUNT_WIDTH);
}

void text_groups(struct text_report *report)
{
	const struct view *view = report->view;

	for (size_t i = 0; i < view->shown_count && !report->out->err.code; i++) {
		put_change(report, &view->groups[i].self);
		put_change(report, &view->groups[i].total);
		out_text(report->out, "  ");
		out_harmless(report->out, view->groups[i].name);
		out_char(report->out, '\n');
	}
}
