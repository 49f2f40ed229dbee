#include "diff/report/report_text.h"

#include "diff/report/report_parts.h"

/* Behind a blank, which wide numbers leave. */
#define BYTES_WIDTH 13
#define COUNT_WIDTH 9

static void put_group_growth(struct text_report *report, uint64_t new, uint64_t old, unsigned width)
{
	struct growth growth = growth_of(new, old);

	out_char(report->out, ' ');
	out_signed(report->out, growth.sign, growth.amount, report->base, width);
}

static void put_change(struct text_report *report, const struct change *change)
{
	put_group_growth(report, change->new.requested_bytes, change->old.requested_bytes, BYTES_WIDTH);
	put_group_growth(report, change->new.block_count, change->old.block_count, COUNT_WIDTH);
}

/* In columns of a trend. */
enum { VERDICT_WIDTH = 11, RATE_WIDTH = 13, SPARK_COLUMNS = 24 };

static void put_trend(struct text_report *report, const struct trend *trend, bool is_any)
{
	const char *verdict = is_any ? trend_verdict_name(trend->verdict) : "-";

	out_printf(report->out, "  %-*s ", VERDICT_WIDTH - 2, verdict);
	if (is_any && has_rates(report->comparison))
		text_rate(report->out, trend->bytes_per_hour, true, RATE_WIDTH);
	else
		out_printf(report->out, "%*s", RATE_WIDTH, is_any ? "?" : "-");
}

static void put_name(struct text_report *report, const struct view_group_row *group)
{
	out_text(report->out, "  ");
	out_harmless(report->out, group->name);
	out_char(report->out, '\n');
}

static void put_group_of_trend(struct text_report *report, const struct view_group_row *group)
{
	put_change(report, &group->self);
	put_trend(report, &group->self_trend, group->self_of);
	put_change(report, &group->total);
	put_trend(report, &group->total_trend, group->total_of);
	if (report->spark.style != SPARK_NONE)
		out_text(report->out, "  ");
	spark_put(report->out, &report->spark, group->total_of);
	put_name(report, group);
}

static void put_group(struct text_report *report, const struct view_group_row *group)
{
	put_change(report, &group->self);
	put_change(report, &group->total);
	put_name(report, group);
}

void text_groups(struct text_report *report)
{
	const struct view *view = report->view;
	const struct trend_axis *axis = report->comparison->axis;

	if (axis)
		spark_make(&report->spark, axis, report->spark.style, SPARK_COLUMNS);
	for (size_t i = 0; i < view->shown_count && !report->out->err.code; i++) {
		if (axis)
			put_group_of_trend(report, &view->groups[i]);
		else
			put_group(report, &view->groups[i]);
	}
}

static void put_columns(struct text_report *report)
{
	struct spark spark;

	if (!report->comparison->axis) {
		out_text(report->out, "//  self bytes    blocks   total bytes    blocks  name\n");
		return;
	}
	spark_make(&spark, report->comparison->axis, report->spark.style, SPARK_COLUMNS);
	out_text(report->out,
		"//  self bytes    blocks  verdict         bytes/h   total bytes    blocks  verdict"
		"         bytes/h  ");
	if (report->spark.style != SPARK_NONE)
		out_printf(report->out, "%-*s  ", (int)spark.count, "total");
	out_text(report->out, "name\n");
}

void text_groups_legend(struct text_report *report)
{
	struct out *out = report->out;

	out_printf(out,
		"// Growth by %s, in bytes asked for and in blocks. Groups: %zu, of stacks: %zu.\n"
		"//\n"
		"// self    of the stacks whose innermost frame is in the group\n"
		"// total   of the stacks with any frame in the group; each counts once\n"
		"//\n",
		group_kind_name(report->view->group), report->view->group_count,
		report->view->row_count);
	if (report->comparison->axis)
		text_trend_legend(report);
	out_printf(out,
		"// A stack is in the total of every group on it: totals of groups overlap, and "
		"do\n"
		"// not add up to the last line. Numbers are %s.\n"
		"//\n",
		report->base == 16 ? "hexadecimal" : "decimal");
	put_columns(report);
}
