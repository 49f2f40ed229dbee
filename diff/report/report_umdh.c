/* The report in UMDH's form: windows, groups, totals, and rows with their notes. */
#include "core/base/text.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

#include <inttypes.h>
#include <string.h>

/* ---------------------------------------------------------------- frames */

static void write_place(struct out *out, const struct frame *frame)
{
	if (frame->module) {
		out_harmless(out, frame_module(frame));
		out_char(out, '+');
		out_hex(out, frame->offset_bytes);
		if (frame->has_addr)
			out_text(out, " : ");
	}
	if (frame->has_addr)
		out_hex(out, frame->addr);
	else if (!frame->module)
		out_char(out, '?');
}

static void write_symbol(struct out *out, const struct frame *frame)
{
	/* "???" of UMDH; only the address distinguishes such frames */
	const bool is_unknown = frame->has_addr && !frame->function[strspn(frame->function, "?")];

	if (frame->module) {
		out_harmless(out, frame_module(frame));
		out_char(out, '!');
	}
	out_harmless(out, frame->function);
	if (frame->offset_bytes || is_unknown) {
		out_char(out, '+');
		out_hex(out, frame->offset_bytes);
	}
	if (is_unknown) {
		out_text(out, " : ");
		out_hex(out, frame->addr);
	}
	if (frame->file && frame->line) {
		out_text(out, " (");
		out_harmless(out, frame->file);
		out_text(out, ", ");
		out_number(out, frame->line, 10, 0);
		out_char(out, ')');
	}
	if (frame->is_inline)
		out_text(out, " [inline]");
}

/* Writes each frame on a line that starts with `before`. */
static void write_frames(struct out *out, const char *before, const struct frames *frames)
{
	size_t part = 0;

	for (size_t i = 0; i < frames->count; i++) {
		for (; part < frames->part_count && frames->part_at[part] <= i; part++) {
			out_text(out, before);
			out_text(out, "Alias\n");
		}
		out_text(out, before);
		if (frames->items[i].function)
			write_symbol(out, &frames->items[i]);
		else
			write_place(out, &frames->items[i]);
		out_char(out, '\n');
	}
}

/* ---------------------------------------------------------------- windows */

static void write_sum(struct umdh_report *report, const char *what, const struct block_totals *sum)
{
	out_text(report->out, what);
	out_number(report->out, sum->requested_bytes, report->base, 0);
	out_text(report->out, " in ");
	out_number(report->out, sum->block_count, report->base, 0);
}

static void write_span(struct umdh_report *report, const char *what, const struct time_span *span)
{
	if (span->first_ms > span->last_ms)
		return;
	out_text(report->out, what);
	umdh_seconds(report->out, span->first_ms);
	if (span->first_ms == span->last_ms)
		return;
	out_text(report->out, " to ");
	umdh_seconds(report->out, span->last_ms);
}

static void write_fraction(
	struct umdh_report *report, const char *before, double value, const char *behind)
{
	char text[FRACTION_TEXT_BYTES];
	const char *digits = report_fraction(value, text);

	if (digits)
		out_printf(report->out, "%s%s%s", before, digits, behind);
}

static void write_heap(struct out *out, uint64_t heap)
{
	if (heap_name(heap)) {
		out_text(out, heap_name(heap));
		return;
	}
	out_text(out, "heap ");
	out_hex(out, heap);
}

/* Writes the thread and the heap. If there are several threads or heaps, writes how many there
 * are. */
static void write_who(struct umdh_report *report, const struct window_sums *sums)
{
	struct out *out = report->out;

	if (sums->thread_count == 1)
		out_printf(out, "; thread %" PRIu64, sums->threads[0]);
	else if (sums->thread_count)
		out_printf(out, "; %zu threads", sums->thread_count);
	out_text(out, "; ");
	if (sums->heap_count == 1)
		write_heap(out, sums->heaps[0]);
	else
		out_printf(out, "%zu heaps", sums->heap_count);
}

static void write_freed_by(struct umdh_report *report, const struct window_sums *sums)
{
	struct out *out = report->out;
	struct frames frames;

	write_sum(report, "//     freed by (", &sums->freed_by_sum);
	if (sums->freed_by_count > 1)
		out_printf(out, "; more by %zu other stack%s", sums->freed_by_count - 1,
			sums->freed_by_count > 2 ? "s" : "");
	out_text(out, "):\n");
	frames_init(&frames);
	view_freed_by_frames(report->view, sums, &frames);
	write_frames(out, "//         ", &frames);
	frames_release(&frames);
}

/* Writes the sums of a row, a group or all selected rows in a window. */
static void write_window(struct umdh_report *report, const struct window_sums *sums)
{
	struct out *out = report->out;

	write_sum(report, "//     size ", &sums->by_fate[FATE_AI]);
	write_fraction(report, " (", report_window_rate(report->comparison, sums), "/s)");
	write_sum(report, "; impacting ", &sums->by_fate[FATE_AIFO]);
	out_text(out, "; peak ");
	out_number(out, sums->peak_bytes, report->base, 0);
	out_text(out, " at ");
	umdh_seconds(out, sums->peak_ms);
	out_text(out, "\n//     ");
	write_span(report, "allocated ", &sums->allocated);
	write_span(
		report, sums->by_fate[FATE_AI].block_count ? "; freed " : "freed ", &sums->freed);
	if (sums->by_fate[FATE_AIFI].block_count) {
		out_printf(out, "; lived %" PRIu64 " to %" PRIu64 " ms", sums->shortest_ms,
			sums->longest_ms);
		write_fraction(report, ", on average ", report_window_life(sums), ", median ");
		out_number(out, sums->median_ms, 10, 0);
	}
	write_who(report, sums);
	out_char(out, '\n');
	if (sums->freed_by)
		write_freed_by(report, sums);
}

/* ---------------------------------------------------------------- groups */

/* Widths of columns, without the separating blank. Large numbers may exceed them. */
#define BYTES_WIDTH 13
#define COUNT_WIDTH 9

static void write_group_growth(
	struct umdh_report *report, uint64_t now, uint64_t old, unsigned width)
{
	struct growth growth = growth_of(now, old);

	out_char(report->out, ' ');
	out_signed(report->out, growth.sign, growth.amount, report->base, width);
}

static void write_change(struct umdh_report *report, const struct change *change)
{
	write_group_growth(
		report, change->now.requested_bytes, change->old.requested_bytes, BYTES_WIDTH);
	write_group_growth(report, change->now.block_count, change->old.block_count, COUNT_WIDTH);
}

/* Widths of a trend's columns. */
enum { VERDICT_WIDTH = 11, RATE_WIDTH = 13 };

static void write_trend(struct umdh_report *report, const struct trend *trend, bool is_any)
{
	const char *verdict = is_any ? trend_verdict_name(trend->verdict) : "-";

	out_printf(report->out, "  %-*s ", VERDICT_WIDTH - 2, verdict);
	if (is_any && report_has_rates(report->comparison))
		umdh_rate(report->out, trend->bytes_per_hour, true, RATE_WIDTH);
	else
		out_printf(report->out, "%*s", RATE_WIDTH, is_any ? "?" : "-");
}

static void write_name(struct umdh_report *report, const struct view_group_row *group)
{
	out_text(report->out, "  ");
	out_harmless(report->out, group->name);
	out_char(report->out, '\n');
}

static void write_group_of_trend(struct umdh_report *report, const struct view_group_row *group)
{
	write_change(report, &group->self);
	write_trend(report, &group->self_trend, group->self_of);
	write_change(report, &group->total);
	write_trend(report, &group->total_trend, group->total_of);
	if (report->spark.style != SPARK_NONE)
		out_text(report->out, "  ");
	spark_print(report->out, &report->spark, group->total_of);
	write_name(report, group);
}

static void write_group_window(struct umdh_report *report, const struct window_sums *sums)
{
	const struct block_totals *size = &sums->by_fate[FATE_AI];

	write_group_growth(report, size->requested_bytes, 0, BYTES_WIDTH);
	write_group_growth(report, size->block_count, 0, COUNT_WIDTH);
	write_group_growth(report, sums->peak_bytes, 0, BYTES_WIDTH);
}

static void write_group(struct umdh_report *report, size_t shown)
{
	const struct view_group_row *group = &report->view->groups[shown];

	write_change(report, &group->self);
	write_change(report, &group->total);
	if (report->view->window)
		write_group_window(report, &report->view->window[shown + 1]);
	write_name(report, group);
}

static void umdh_groups(struct umdh_report *report)
{
	const struct view *view = report->view;
	const struct trend_axis *axis = report->comparison->axis;

	if (axis)
		spark_make(&report->spark, axis, report->spark.style, UMDH_SPARK_COLUMNS);
	for (size_t i = 0; i < view->shown_count && !report->out->err.code; i++) {
		if (axis)
			write_group_of_trend(report, &view->groups[i]);
		else
			write_group(report, i);
	}
}

/* Widths of the columns "requested", "overhead" and "blocks", without the separating blank. */
enum { REQUESTED_WIDTH = 13, OVERHEAD_WIDTH = 13, BLOCKS_WIDTH = 10 };

static void write_signed(struct umdh_report *report, uint64_t now, uint64_t old, unsigned width)
{
	struct growth growth = growth_of(now, old);

	out_signed(report->out, growth.sign, growth.amount, report->base, width);
}

/* Writes one part of the total. All parts are written, so that a reader can check that they add up
 * to the total. */
static void write_share(struct umdh_report *report, const struct change *change, bool has_overhead,
	bool has_blocks, const char *what)
{
	const struct block_totals *now = &change->now, *old = &change->old;

	out_text(report->out, "// ");
	write_signed(report, now->requested_bytes, old->requested_bytes, REQUESTED_WIDTH);
	out_char(report->out, ' ');
	if (has_overhead)
		write_signed(report, now->overhead_bytes, old->overhead_bytes, OVERHEAD_WIDTH);
	else
		out_printf(report->out, "%*s", OVERHEAD_WIDTH, "?");
	out_char(report->out, ' ');
	if (has_blocks)
		write_signed(report, now->block_count, old->block_count, BLOCKS_WIDTH);
	else
		out_printf(report->out, "%*s", BLOCKS_WIDTH, "?");
	out_text(report->out, "  ");
	out_text(report->out, what);
}

/* Returns true if all rows are selected of a comparison whose total line counts more than its rows. The
 * report then repeats that line. */
static bool repeats_total(const struct view *view)
{
	return view->comparison->lacks_rows && view->row_count == view->comparison->row_count;
}

static void write_shares(struct umdh_report *report)
{
	const struct view *view = report->view;
	bool has_overhead = report_rows_have_overhead(report->comparison);
	bool has_blocks = !report->comparison->lacks_rows;
	struct change left_out = report_left_out(view);

	out_printf(report->out,
		"//\n"
		"// Totals of the selected stacks, of the other stacks, and of all. "
		"The last line of\n"
		"// the report has %s:\n"
		"//\n"
		"//     requested      overhead     blocks\n",
		repeats_total(view) ? "the sum of all" : "the selected stacks");
	write_share(report, &view->selected, has_overhead, true, "selected");
	out_printf(report->out, ": %zu stack%s\n", view->row_count, text_plural(view->row_count));
	write_share(report, &view->suppressed, has_overhead, true, "suppressed");
	out_printf(report->out, ": %zu stack%s\n", view->suppressed_count,
		text_plural(view->suppressed_count));
	write_share(report, &left_out, has_overhead, has_blocks, "left out\n");
	write_share(report, &view->all, report->comparison->has_overhead, has_blocks, "all\n");
	out_text(report->out, "//\n");
}

static void write_rest(struct umdh_report *report)
{
	size_t count;
	struct change rest = report_not_shown(report->view, &count);

	if (!count)
		return;
	if (report->view->group != GROUP_STACK) {
		out_printf(report->out, "// %zu more group%s not shown\n", count,
			count == 1 ? " is" : "s are");
		return;
	}
	out_printf(report->out,
		count == 1 ? "// %zu more stack is not shown; it adds up to " :
			     "// %zu more stacks are not shown; they add up to ",
		count);
	write_signed(report, rest.now.requested_bytes, rest.old.requested_bytes, 0);
	out_text(report->out, " bytes, ");
	write_signed(report, rest.now.block_count, rest.old.block_count, 0);
	out_text(report->out, " blocks\n");
}

/* Writes a number right-justified in six columns. Adds a minus sign if the number's direction is
 * opposite to the direction of the total. */
static void write_part(
	struct umdh_report *report, char direction, uint64_t now, uint64_t old, const char *behind)
{
	struct growth growth = growth_of(now, old);
	bool is_against = growth.amount && growth.sign != direction;

	out_char(report->out, ' ');
	out_signed(report->out, is_against ? '-' : '\0', growth.amount, report->base, 6);
	out_text(report->out, behind);
}

static void write_total(struct umdh_report *report)
{
	const struct view *view = report->view;
	const bool is_of_all = repeats_total(view);
	const struct block_totals *now = is_of_all ? &view->all.now : &view->selected.now,
				  *old = is_of_all ? &view->all.old : &view->selected.old;
	bool has_overhead = is_of_all ? view->comparison->has_overhead : report_has_overhead(view);
	/* These sums do not overflow, see dump_sums.h. */
	uint64_t new_sum = now->requested_bytes + (has_overhead ? now->overhead_bytes : 0);
	uint64_t old_sum = old->requested_bytes + (has_overhead ? old->overhead_bytes : 0);
	/* UMDH reports an unchanged total as a decrease */
	char direction = new_sum > old_sum ? '+' : '-';

	out_printf(report->out, "\n\n\nTotal %s ==", direction == '+' ? "increase" : "decrease");
	if (!has_overhead) {
		/* UMDH's old form, without padding. */
		out_char(report->out, ' ');
		out_number(report->out, growth_of(new_sum, old_sum).amount, report->base, 0);
		out_char(report->out, '\n');
		return;
	}
	write_part(report, direction, now->requested_bytes, old->requested_bytes, " requested +");
	write_part(report, direction, now->overhead_bytes, old->overhead_bytes, " overhead =");
	write_part(report, direction, new_sum, old_sum, "\n");
}

/* If no stack changed, reports that in a last line. The total alone is easily misread. */
static void write_unchanged(struct umdh_report *report)
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

/* Writes the sums of blocks that are not shown, as comments, and then the total. */
static void umdh_end(struct umdh_report *report)
{
	write_rest(report);
	if (report->view->is_filtered)
		write_shares(report);
	if (report->view->window && report->view->row_count) {
		out_text(report->out, "// All stacks that are selected:\n");
		write_window(report, report->view->window);
	}
	write_total(report);
	write_unchanged(report);
}

#define ALSO_MAX 64 /* maximum number of further ids that are listed */

static void write_number(struct umdh_report *report, unsigned width, uint64_t value)
{
	out_number(report->out, value, report->base, width);
}

/* Writes notes about a row. The notes are comments before the row. Programs that read UMDH's
 * comparisons skip comments. */
static void write_notes(
	struct umdh_report *report, const struct row *row, const struct frames *frames)
{
	struct out *out = report->out;

	if (report->comparison->axis) {
		out_text(out, "//     ");
		umdh_trend(report, row_trend(report->comparison, row), row->totals);
	}
	if (row->heap) {
		out_text(out, heap_name(row->heap) ? "//     heap " : "//     ");
		write_heap(out, row->heap);
		out_char(out, '\n');
	}
	if (row->kind == ROW_AMBIGUOUS)
		out_printf(out, "//     ambiguous: one of %zu stacks, unknown which\n",
			frames->part_count + 1);
	if (row->id_stack_count > 1)
		out_printf(out, "//     %u different stacks have this id: one is shown\n",
			row->id_stack_count);
	if (row->id_count < 2)
		return;
	out_text(out, "//     also");
	for (size_t i = 1; i < row->id_count && i <= ALSO_MAX; i++) {
		out_text(out, " BackTrace");
		out_harmless(out, row->ids[i]);
	}
	if (row->id_count > ALSO_MAX + 1)
		out_printf(out, " and %u more", (unsigned)row->id_count - ALSO_MAX - 1);
	out_char(out, '\n');
}

/* Writes "+ GROWTH ( NEW - OLD)". Both lines of a row start in this form. */
static void write_growth(struct umdh_report *report, uint64_t now, uint64_t old)
{
	struct growth growth = growth_of(now, old);

	out_char(report->out, growth.sign);
	write_number(report, report->delta_width, growth.amount);
	out_text(report->out, " ( ");
	write_number(report, report->sum_width, now);
	out_text(report->out, " - ");
	write_number(report, report->sum_width, old);
	out_char(report->out, ')');
}

static void write_label(struct umdh_report *report, const struct row *row)
{
	out_text(report->out, "\tBackTrace");
	out_harmless(report->out, row->id_count ? row->ids[0] : "0");
}

static void write_sums(struct umdh_report *report, const struct row *row)
{
	struct block_totals now = row_new(report->comparison, row);
	struct block_totals old = row_old(report->comparison, row);

	write_growth(report, now.requested_bytes, old.requested_bytes);
	out_char(report->out, ' ');
	write_number(report, report->count_width, now.block_count);
	out_text(report->out, " allocs");
	write_label(report, row);
	out_char(report->out, '\n');
	write_growth(report, now.block_count, old.block_count);
	write_label(report, row);
	out_text(report->out, "\tallocations\n\n");
}

static void write_row(struct umdh_report *report, size_t shown, struct frames *frames)
{
	uint32_t number = report->view->rows[shown];
	const struct row *row = &report->comparison->rows[number];
	char space[ROW_WORDS_BYTES];

	view_frames(report->view, number, frames);
	write_notes(report, row, frames);
	if (report->view->window)
		write_window(report, &report->view->window[shown + 1]);
	write_sums(report, row);
	if (!frames->count) {
		out_char(report->out, '\t');
		out_text(report->out, report_row_words(row, space));
		out_char(report->out, '\n');
	}
	write_frames(report->out, "\t", frames);
	out_char(report->out, '\n');
}

static void write_rows(struct umdh_report *report)
{
	struct frames frames;

	frames_init(&frames);
	for (size_t i = 0; i < report->view->shown_count && !report->out->err.code; i++)
		write_row(report, i, &frames);
	frames_release(&frames);
}

static void write_view(struct out *out, const struct view *view, const struct report *whole)
{
	const struct report_style *style = &whole->style;
	struct umdh_report report = {.out = out,
		.whole = whole,
		.comparison = view->comparison,
		.view = view,
		.base = style->hex ? 16 : 10,
		.delta_width = 8,
		.sum_width = style->hex ? 5 : 6,
		.count_width = 6};

	if (view->comparison->axis)
		spark_make(&report.spark, view->comparison->axis, style->spark, SPARK_WIDTH);
	umdh_head(&report);
	if (view->group == GROUP_STACK)
		write_rows(&report);
	else
		umdh_groups(&report);
	umdh_end(&report);
}

void report_umdh(struct out *out, const struct report *report)
{
	for (size_t i = 0; i < report->view_count && !out->err.code; i++) {
		if (i)
			out_text(out, "\n\n");
		write_view(out, &report->views[i], report);
	}
}
