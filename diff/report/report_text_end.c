#include "diff/report/report_text.h"

#include "diff/report/report_parts.h"

/* Columns for "requested", "overhead" and "blocks", each behind a blank. */
enum { REQUESTED_WIDTH = 13, OVERHEAD_WIDTH = 13, BLOCKS_WIDTH = 10 };

static void put_signed(struct text_report *report, uint64_t new, uint64_t old, unsigned width)
{
	struct growth growth = growth_of(new, old);

	out_signed(report->out, growth.sign, growth.amount, report->base, width);
}

/* A line of the sum that a reader may want to check. */
static void put_share(struct text_report *report, const struct change *change, bool has_overhead,
	const char *what)
{
	const struct census *new = &change->new, *old = &change->old;

	out_text(report->out, "// ");
	put_signed(report, new->requested_bytes, old->requested_bytes, REQUESTED_WIDTH);
	out_char(report->out, ' ');
	if (has_overhead)
		put_signed(report, new->overhead_bytes, old->overhead_bytes, OVERHEAD_WIDTH);
	else
		out_text(report->out, "            ?");
	out_char(report->out, ' ');
	put_signed(report, new->block_count, old->block_count, BLOCKS_WIDTH);
	out_text(report->out, "  ");
	out_text(report->out, what);
}

static void put_shares(struct text_report *report)
{
	const struct view *view = report->view;
	bool has_overhead = rows_have_overhead(report->comparison);
	struct change left_out = view_left_out(view);

	out_text(report->out,
		"//\n"
		"// What all blocks add up to, and where it went; the last line has what is\n"
		"// selected:\n"
		"//\n"
		"//     requested      overhead     blocks\n");
	put_share(report, &view->selected, has_overhead, "selected");
	out_printf(report->out, ": %zu stacks\n", view->row_count);
	put_share(report, &view->suppressed, has_overhead, "suppressed");
	out_printf(report->out, ": %zu stacks\n", view->suppressed_count);
	put_share(report, &left_out, has_overhead, "left out\n");
	put_share(report, &view->all, report->comparison->has_overhead, "all\n");
	out_text(report->out, "//\n");
}

static void put_rest(struct text_report *report)
{
	size_t count;
	struct change rest = view_not_shown(report->view, &count);

	if (!count)
		return;
	if (report->view->group != GROUP_STACK) {
		out_printf(report->out, "// %zu more groups are not shown\n", count);
		return;
	}
	out_printf(report->out, "// %zu more stacks are not shown; they add up to ", count);
	put_signed(report, rest.new.requested_bytes, rest.old.requested_bytes, 0);
	out_text(report->out, " bytes, ");
	put_signed(report, rest.new.block_count, rest.old.block_count, 0);
	out_text(report->out, " blocks\n");
}

/* Right-justified in six, with a sign when it goes against the direction of the whole. */
static void put_part(
	struct text_report *report, char direction, uint64_t new, uint64_t old, const char *behind)
{
	struct growth growth = growth_of(new, old);
	bool is_against = growth.amount && growth.sign != direction;

	out_char(report->out, ' ');
	out_signed(report->out, is_against ? '-' : '\0', growth.amount, report->base, 6);
	out_text(report->out, behind);
}

static void put_total(struct text_report *report)
{
	const struct census *new = &report->view->selected.new, *old = &report->view->selected.old;
	bool has_overhead = selected_has_overhead(report->view);
	/* These fit: see sum.h. */
	uint64_t new_sum = new->requested_bytes + (has_overhead ? new->overhead_bytes : 0);
	uint64_t old_sum = old->requested_bytes + (has_overhead ? old->overhead_bytes : 0);
	char direction = new_sum > old_sum ? '+' : '-'; /* no change is a decrease to UMDH */

	out_printf(report->out, "\n\n\nTotal %s ==", direction == '+' ? "increase" : "decrease");
	if (!has_overhead) {
		/* UMDH's old form: its number is not padded. */
		out_char(report->out, ' ');
		out_number(report->out, growth_of(new_sum, old_sum).amount, report->base, 0);
		out_char(report->out, '\n');
		return;
	}
	put_part(report, direction, new->requested_bytes, old->requested_bytes, " requested +");
	put_part(report, direction, new->overhead_bytes, old->overhead_bytes, " overhead =");
	put_part(report, direction, new_sum, old_sum, "\n");
}

/* The last line, for the total alone has to be read twice to see that. */
static void put_unchanged(struct text_report *report)
{
	const struct view *view = report->view;
	struct delta delta = change_delta(&view->selected);
	bool is_known = !report->comparison->is_cut && !report->comparison->may_lack_rows;

	if (!is_known || view->row_count || delta.requested_bytes || delta.block_count ||
		delta.overhead_bytes)
		return;
	out_printf(report->out, "// No stack%s changed.\n",
		view->is_filtered ? " that was selected" : "");
}

void text_end(struct text_report *report)
{
	put_rest(report);
	if (report->view->is_filtered)
		put_shares(report);
	put_total(report);
	put_unchanged(report);
}
