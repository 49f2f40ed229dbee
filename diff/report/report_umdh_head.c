/* The head of the report in UMDH's form: the dumps with their warnings, and the legend. */
#include "diff/report/balance_text.h"
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/dump/model.h"
#include "diff/read/dump_sums.h"

/* Lists input files that are in no view. */
static void write_left_out(struct out *out, const struct report *report)
{
	if (!report->left_out_count)
		return;
	out_printf(out, "// files that were left out: %zu:", report->left_out_count);
	for (size_t i = 0; i < report->left_out_count && i < WARNINGS_MAX; i++) {
		out_text(out, i ? ", " : " ");
		out_harmless(out, report->left_out[i]);
	}
	if (report->left_out_count > WARNINGS_MAX)
		out_printf(out, " and %zu more", report->left_out_count - WARNINGS_MAX);
	out_text(out, "\n");
}

/* Writes the reserved address space, which is in no sum. */
static void write_reserved(struct umdh_report *report)
{
	const struct change *reserved = &report->comparison->reserved;
	struct growth growth =
		growth_of(reserved->now.requested_bytes, reserved->old.requested_bytes);

	if (!report->comparison->hides_reserved)
		return;
	out_text(report->out, "// reserved but uncommitted address space, not counted here: ");
	out_signed(report->out, growth.sign, growth.amount, report->base, 0);
	out_text(report->out, " ( ");
	out_number(report->out, reserved->now.requested_bytes, report->base, 0);
	out_text(report->out, " - ");
	out_number(report->out, reserved->old.requested_bytes, report->base, 0);
	out_char(report->out, ')');
	if (report->comparison->axis) {
		out_text(report->out, ", ");
		out_number(report->out, report->comparison->reserved_most, report->base, 0);
		out_text(report->out, " at most");
	}
	out_text(report->out, "; --heap reserved shows its stacks\n");
}

static void write_read(struct out *out, const struct comparison *comparison)
{
	const char *path = comparison->read_from ? comparison->read_from : "";

	out_text(out, "// COMPARISON: ");
	out_harmless(out, path);
	out_text(out, ": read as printed, not computed from dumps");
	if (comparison->is_cut)
		out_text(out, CUT_SHORT);
	out_text(out, "\n");
	umdh_warnings(out, "// ", path, comparison->warnings, comparison->warning_count);
}

/* Returns true if the rows shown are in order of growth, largest first. Only then, the header
 * states this order. */
static bool largest_come_first(const struct view *view)
{
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < view->shown_count; i++) {
		struct change change =
			row_change(view->comparison, &view->comparison->rows[view->rows[i]]);
		struct growth growth =
			growth_of(change.now.requested_bytes, change.old.requested_bytes);
		/* Growth is the difference of two sums below 2^63. Adding 2^63 makes it
		 * non-negative and preserves the order. */
		uint64_t place = (UINT64_C(1) << 63) +
				 (growth.sign == '-' ? 0 - growth.amount : growth.amount);

		if (place > last)
			return false;
		last = place;
	}
	return true;
}

/* Writes the order of the rows, and a note that unchanged rows are left out. */
static void write_order(struct umdh_report *report)
{
	const struct view *view = report->view;
	bool is_judged = view->trend.verdict != TREND_TOO_FEW;
	const char *first = NULL;

	if (view->sort == SORT_VERDICT && is_judged)
		first = "The most certain leak";
	else if (view->sort == SORT_SLOPE)
		first = "The fastest growth";
	else if (largest_come_first(view))
		first = "The largest growth";
	if (first)
		out_printf(report->out, "%s comes first; what did not change is\n// left out. ",
			first);
	else
		out_text(report->out, "What did not change is left out.\n// ");
}

static void write_stack_legend(struct umdh_report *report)
{
	const struct view *view = report->view;
	bool is_trend = report->comparison->axis;

	out_printf(report->out, "// A stack has %s, then its frames%s:\n//\n",
		is_trend ? "a line with its verdict, two lines of sums" : "two lines",
		view->is_inverted ? "" : ", the innermost first");
	if (is_trend)
		out_text(report->out,
			"//     VERDICT, BYTES/h (FROM to TO), BLOCKS/h  bytes over time\n");
	out_text(report->out,
		"// + GROWTH ( NEW - OLD) BLOCKS allocs<TAB>BackTraceID     bytes requested\n"
		"// + GROWTH ( NEW - OLD)<TAB>BackTraceID<TAB>allocations   number of blocks\n"
		"//\n");
	if (view->window)
		out_text(report->out, "// Comments before a stack: SIZE is what was allocated in "
				      "the window, IMPACTING the part\n"
				      "// that was not freed there, PEAK the most in use at once, "
				      "and LIVED the lifetimes of\n"
				      "// blocks that were also freed there.\n"
				      "//\n");
	if (view->is_inverted)
		out_text(report->out, "// frames: outermost first\n//\n");
	if (is_trend)
		umdh_trend_legend(report);
	out_printf(report->out,
		"// BLOCKS are those in NEW. Numbers are %s; offsets and addresses are\n"
		"// always hexadecimal. ",
		report->base == 16 ? "hexadecimal" : "decimal");
	write_order(report);
	out_text(report->out, "ID is the stack's id in the dumps.\n//\n");
}

static void write_columns(struct umdh_report *report)
{
	struct spark spark;

	if (!report->comparison->axis) {
		out_text(report->out, "//  self bytes    blocks   total bytes    blocks  ");
		if (report->view->window)
			out_text(report->out, "  size bytes    blocks    peak bytes  ");
		out_text(report->out, "name\n");
		return;
	}
	spark_make(&spark, report->comparison->axis, report->spark.style, UMDH_SPARK_COLUMNS);
	out_text(report->out,
		"//  self bytes    blocks  verdict         bytes/h   total bytes    blocks  verdict"
		"         bytes/h  ");
	if (report->spark.style != SPARK_NONE)
		out_printf(report->out, "%-*s  ", (int)spark.count, "total");
	out_text(report->out, "name\n");
}

/* Writes the legend of groups. Each group is a line with its growth and its name. */
static void write_groups_legend(struct umdh_report *report)
{
	struct out *out = report->out;

	out_printf(out,
		"// Growth by %s, in requested bytes and in blocks. Groups: %zu, stacks: %zu.\n"
		"//\n"
		"// self    counts the stacks whose innermost frame is in the group\n"
		"// total   counts the stacks with any frame in the group, each once\n"
		"%s//\n",
		report_group_kind(report->view->group), report->view->group_count,
		report->view->row_count,
		report->view->window ? "// size    is what these stacks allocated in the window\n"
				       "// peak    is the most that they had in use at once\n" :
				       "");
	if (report->comparison->axis)
		umdh_trend_legend(report);
	out_printf(out,
		"// A stack counts in the total of every group that it passes through: totals\n// "
		"overlap, and do not add up to the last line. Numbers are %s.\n"
		"//\n",
		report->base == 16 ? "hexadecimal" : "decimal");
	write_columns(report);
}

/* Writes the balance of the process, each line as a comment. */
static void write_balance(struct umdh_report *report)
{
	struct buf words;

	buf_init(&words);
	balance_text(&words, report->view);
	for (char *line = words.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		out_printf(report->out, "// %s\n", line);
	}
	buf_release(&words);
}

void umdh_head(struct umdh_report *report)
{
	struct out *out = report->out;

	out_printf(out, "// hdiff " HSNAP_VERSION ": %s by %s\n//\n",
		report->comparison->axis ? "trend" : "heap growth",
		report_group_kind(report->view->group));
	if (report->comparison->axis) {
		umdh_series(report);
		umdh_series_warnings(out, "// ", report->comparison);
	} else if (report->comparison->dumps)
		umdh_dumps(out, report->comparison);
	else
		write_read(out, report->comparison);
	write_left_out(out, report->whole);
	write_reserved(report);
	write_balance(report);
	out_text(out, "//\n");
	if (report->view->group == GROUP_STACK)
		write_stack_legend(report);
	else
		write_groups_legend(report);
}
