/* The head of the report in UMDH's form: the dumps with their warnings, and the legend. */
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

#include <inttypes.h>

#include "core/base/parse.h"
#include "core/dump/model.h"
#include "diff/read/dump_sums.h"

#define CUT_SHORT ", CUT SHORT: sums are of what is there"

void umdh_seconds(struct out *out, uint64_t ms)
{
	out_printf(out, "%" PRIu64 ".%03u s", ms / 1000, (unsigned)(ms % 1000));
}

void umdh_fate(struct out *out, const struct dump_sums *sums)
{
	static const char *const words[] = {
		[FATE_AIFO] = "what was allocated and not freed",
		[FATE_AIFI] = "what was allocated and freed",
		[FATE_AOFI] = "what was there before and was freed",
		[FATE_AOFO] = "what was there before and was not freed",
		[FATE_AI] = "what was allocated",
		[FATE_ALL] = "all that was there",
	};

	if (sums->window.fate == FATE_LIVE)
		return;
	out_printf(out, ", %s from ", words[sums->window.fate]);
	umdh_seconds(out, sums->window.from_ms);
	out_text(out, " to ");
	umdh_seconds(out, sums->window.to_ms);
}

void umdh_dump_notes(struct out *out, const struct dump_sums *sums)
{
	umdh_fate(out, sums);
	if (sums->is_attached)
		out_text(out, ", attached to while it ran");
	if (sums->is_attached && !sums->quality.sample_bytes)
		out_printf(out,
			": %" PRIu64 " block%s of %" PRIu64 " bytes from before %s no stack",
			sums->before.block_count, sums->before.block_count == 1 ? "" : "s",
			sums->before.requested_bytes,
			sums->before.block_count == 1 ? "has" : "have");
	if (sums->quality.sample_bytes)
		out_printf(out, ", ESTIMATES: one in %" PRIu64 " bytes was recorded",
			sums->quality.sample_bytes);
	if (sums->quality.is_cut)
		out_text(out, CUT_SHORT);
}

static void write_dump(struct out *out, const char *role, const struct dump_sums *sums)
{
	char time[DATE_TEXT_BYTES];

	out_printf(out, "// %s: ", role);
	out_harmless(out, sums->id.path);
	if (sums->id.image) {
		out_text(out, ", ");
		out_harmless(out, module_path_base(sums->id.image));
	}
	if (sums->id.pid)
		out_printf(out, ", process %lu", (unsigned long)sums->id.pid);
	if (sums->id.start_ms)
		out_printf(out, ", started %s", date_text(sums->id.start_ms, time));
	if (*report_dump_time(sums, time))
		out_printf(out, ", taken %s", time);
	umdh_dump_notes(out, sums);
	out_text(out, "\n");
}

void umdh_warnings(struct out *out, const char *before, const char *path,
	const char *const *warnings, size_t count)
{
	for (size_t i = 0; i < count && i <= WARNINGS_MAX; i++) {
		out_printf(out, "%swarning: ", before);
		out_harmless(out, path);
		out_text(out, ": ");
		if (i < WARNINGS_MAX)
			out_harmless(out, warnings[i]);
		else
			out_printf(out, "and %zu more", count - WARNINGS_MAX);
		out_text(out, "\n");
	}
}

void umdh_dump(struct out *out, const char *role, const struct dump_sums *sums)
{
	write_dump(out, role, sums);
	umdh_warnings(
		out, "// ", sums->id.path, sums->quality.warnings, sums->quality.warning_count);
}

static void write_all_warnings(struct out *out, const struct comparison *comparison)
{
	for (size_t i = comparison->dump_count; i--;)
		umdh_warnings(out, "// ", comparison->dumps[i].id.path,
			comparison->dumps[i].quality.warnings,
			comparison->dumps[i].quality.warning_count);
}

void umdh_series_warnings(struct out *out, const char *before, const struct comparison *comparison)
{
	struct dump_warnings warnings;
	struct buf words;

	dump_warnings_gather(&warnings, comparison->dumps, comparison->dump_count);
	buf_init(&words);
	for (size_t i = 0; i < warnings.count; i++) {
		buf_clear(&words);
		dump_warning_words(&words, &warnings.items[i]);
		umdh_warnings(out, before, warnings.items[i].first->id.path,
			(const char *const[]){words.data}, 1);
	}
	buf_release(&words);
	dump_warnings_release(&warnings);
}

static void write_dumps(struct out *out, const struct comparison *comparison)
{
	size_t count = comparison->dump_count;

	for (size_t i = 0; comparison->is_sum && i + 1 < count; i++)
		write_dump(out, "NEW", &comparison->dumps[i]);
	write_dump(out, "NEW", &comparison->dumps[count - 1]);
	if (comparison_columns(comparison) > 1)
		write_dump(out, "OLD", &comparison->dumps[0]);
	else
		out_text(out, "// OLD: none: everything counts as new\n");
	write_all_warnings(out, comparison);
}

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
		growth_of(reserved->new.requested_bytes, reserved->old.requested_bytes);

	if (!report->comparison->hides_reserved)
		return;
	out_text(report->out, "// address space reserved and not committed, not counted here: ");
	out_signed(report->out, growth.sign, growth.amount, report->base, 0);
	out_text(report->out, " ( ");
	out_number(report->out, reserved->new.requested_bytes, report->base, 0);
	out_text(report->out, " - ");
	out_number(report->out, reserved->old.requested_bytes, report->base, 0);
	out_char(report->out, ')');
	if (report->comparison->axis) {
		out_text(report->out, ", ");
		out_number(report->out, report->comparison->reserved_most, report->base, 0);
		out_text(report->out, " at most");
	}
	out_text(report->out, "; --heap reserved shows by whom\n");
}

static void write_read(struct out *out, const struct comparison *comparison)
{
	const char *path = comparison->read_from ? comparison->read_from : "";

	out_text(out, "// COMPARISON: ");
	out_harmless(out, path);
	out_text(out, ": read as it is, not made from dumps");
	if (comparison->is_cut)
		out_text(out, CUT_SHORT);
	out_text(out, "\n");
	umdh_warnings(out, "// ", path, comparison->warnings, comparison->warning_count);
}

/* Returns true if rows are in order of growth. The header promises this order only then. */
static bool largest_come_first(const struct view *view)
{
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < view->shown_count; i++) {
		struct change change =
			row_change(view->comparison, &view->comparison->rows[view->rows[i]]);
		struct growth growth =
			growth_of(change.new.requested_bytes, change.old.requested_bytes);
		/* Adding 2^63 makes growth unsigned and preserves its order, because sums are below
		 * 2^63. */
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
		is_trend ? "a line that judges it, two of sums" : "two lines",
		view->is_inverted ? "" : ", the innermost first");
	if (is_trend)
		out_text(report->out,
			"//     VERDICT, BYTES/h (FROM to TO), BLOCKS/h  bytes over time\n");
	out_text(report->out,
		"// + GROWTH ( NEW - OLD) BLOCKS allocs<TAB>BackTraceID     bytes requested\n"
		"// + GROWTH ( NEW - OLD)<TAB>BackTraceID<TAB>allocations   number of blocks\n"
		"//\n");
	if (view->window)
		out_text(report->out,
			"// Lines before them: SIZE is what was allocated in the window, "
			"IMPACTING what of it was\n"
			"// not freed in it; PEAK is the most that was there at once; what "
			"came and went LIVED.\n"
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
		write_dumps(out, report->comparison);
	else
		write_read(out, report->comparison);
	write_left_out(out, report->whole);
	write_reserved(report);
	out_text(out, "//\n");
	if (report->view->group == GROUP_STACK)
		write_stack_legend(report);
	else
		umdh_groups_legend(report);
}
