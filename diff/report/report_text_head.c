#include "diff/report/report_text.h"

#include <inttypes.h>

#include "core/date.h"
#include "core/model.h"
#include "diff/report/report_parts.h"

#define CUT_SHORT ", CUT SHORT: sums are of what is there"

static void put_dump(struct out *out, const char *role, const struct sums *sums)
{
	char time[DATE_TEXT_BYTES];

	out_printf(out, "// %s: ", role);
	out_harmless(out, sums->path);
	if (sums->image) {
		out_text(out, ", ");
		out_harmless(out, path_base(sums->image));
	}
	if (sums->pid)
		out_printf(out, ", process %lu", (unsigned long)sums->pid);
	if (sums->start_ms)
		out_printf(out, ", started %s", date_text(sums->start_ms, time));
	if (sums->time_ms)
		out_printf(out, ", taken %s", date_text(sums->time_ms, time));
	if (sums->is_attached)
		out_printf(out,
			", attached to when %" PRIu64 " blocks of %" PRIu64
			" bytes were there, without a stack",
			sums->before.block_count, sums->before.requested_bytes);
	if (sums->sample_bytes)
		out_printf(out, ", ESTIMATES: one in %" PRIu64 " bytes was recorded",
			sums->sample_bytes);
	if (sums->is_cut)
		out_text(out, CUT_SHORT);
	out_text(out, "\n");
}

/* What a file lacks. */
static void put_warnings(
	struct out *out, const char *path, const char *const *warnings, size_t count)
{
	for (size_t i = 0; i < count && i <= WARNINGS_MAX; i++) {
		out_text(out, "// warning: ");
		out_harmless(out, path);
		out_text(out, ": ");
		if (i < WARNINGS_MAX)
			out_harmless(out, warnings[i]);
		else
			out_printf(out, "and %zu more", count - WARNINGS_MAX);
		out_text(out, "\n");
	}
}

static void put_dumps(struct out *out, const struct comparison *comparison)
{
	size_t count = comparison->dump_count;

	for (size_t i = count; i--;)
		put_dump(out,
			i + 1 == count ? "NEW" :
			i	       ? "BETWEEN" :
					 "OLD",
			&comparison->dumps[i]);
	if (count < 2)
		out_text(out, "// OLD: none: everything counts as new\n");
	for (size_t i = count; i--;)
		put_warnings(out, comparison->dumps[i].path, comparison->dumps[i].warnings,
			comparison->dumps[i].warning_count);
}

/* What is no memory, and in none of the sums. */
static void put_reserved(struct text_report *report)
{
	const struct change *reserved = &report->comparison->reserved;
	struct growth growth =
		growth_of(reserved->new.requested_bytes, reserved->old.requested_bytes);

	if (!report->comparison->hides_reserved)
		return;
	out_text(report->out, "// address space reserved and not committed, not counted here: ");
	out_signed(report->out, growth.sign, growth.amount, report->base, 0);
	out_text(report->out, " ( ");
	out_number(report->out, reserved->new.requested_bytes, report->base, 0);
	out_text(report->out, " - ");
	out_number(report->out, reserved->old.requested_bytes, report->base, 0);
	out_text(report->out, "); --heap reserved shows by whom\n");
}

static void put_read(struct out *out, const struct comparison *comparison)
{
	const char *path = comparison->read_from ? comparison->read_from : "";

	out_text(out, "// COMPARISON: ");
	out_harmless(out, path);
	out_text(out, ": read as it is, not made from dumps");
	if (comparison->is_cut)
		out_text(out, CUT_SHORT);
	out_text(out, "\n");
	put_warnings(out, path, comparison->warnings, comparison->warning_count);
}

/* A view may be in any order: the header promises what is so. */
static bool largest_come_first(const struct view *view)
{
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < view->shown_count; i++) {
		struct change change =
			row_change(view->comparison, &view->comparison->rows[view->rows[i]]);
		struct growth growth =
			growth_of(change.new.requested_bytes, change.old.requested_bytes);
		/* A number that is in the order of growth from -2^63 on, as sums are below 2^63. */
		uint64_t place = (UINT64_C(1) << 63) +
				 (growth.sign == '-' ? 0 - growth.amount : growth.amount);

		if (place > last)
			return false;
		last = place;
	}
	return true;
}

static void put_stack_legend(struct text_report *report)
{
	const struct view *view = report->view;

	out_text(report->out, "// A stack has two lines, then its frames");
	out_text(report->out, view->is_inverted ? ":\n" : ", the innermost first:\n");
	out_text(report->out,
		"//\n"
		"// + GROWTH ( NEW - OLD) BLOCKS allocs<TAB>BackTraceID     bytes asked for\n"
		"// + GROWTH ( NEW - OLD)<TAB>BackTraceID<TAB>allocations   number of blocks\n"
		"//\n");
	if (view->is_inverted)
		out_text(report->out, "// frames: outermost first\n//\n");
	out_printf(report->out,
		"// BLOCKS are those in NEW. Numbers are %s; offsets and addresses are\n"
		"// always hexadecimal. ",
		report->base == 16 ? "hexadecimal" : "decimal");
	if (largest_come_first(view))
		out_text(report->out,
			"The largest growth comes first; what did not change is\n// left out. ");
	else
		out_text(report->out, "What did not change is left out.\n// ");
	out_text(
		report->out, "ID is what the dumps call the stack, for looking it up there.\n//\n");
}

static void put_group_legend(struct text_report *report)
{
	out_printf(report->out,
		"// Growth by %s, in bytes asked for and in blocks. Groups: %zu, of stacks: %zu.\n"
		"//\n"
		"// self    of the stacks whose innermost frame is in the group\n"
		"// total   of the stacks with any frame in the group; each counts once\n"
		"//\n"
		"// A stack is in the total of every group on it: totals of groups overlap, and "
		"do\n"
		"// not add up to the last line. Numbers are %s.\n"
		"//\n"
		"//  self bytes    blocks   total bytes    blocks  name\n",
		group_kind_name(report->view->group), report->view->group_count,
		report->view->row_count, report->base == 16 ? "hexadecimal" : "decimal");
}

void text_head(struct text_report *report)
{
	struct out *out = report->out;

	out_text(out, "// hdiff " HSNAP_VERSION ": heap growth by ");
	out_text(out, group_kind_name(report->view->group));
	out_text(out, "\n//\n");
	if (report->comparison->dumps)
		put_dumps(out, report->comparison);
	else
		put_read(out, report->comparison);
	put_reserved(report);
	out_text(out, "//\n");
	if (report->view->group == GROUP_STACK)
		put_stack_legend(report);
	else
		put_group_legend(report);
}
