#include "diff/report/report_text.h"

#include "diff/report/report_parts.h"

#define ALSO_MAX 64 /* further ids that are listed */

static void put_number(struct text_report *report, unsigned width, uint64_t value)
{
	out_number(report->out, value, report->base, width);
}

/* Before the row: readers of UMDH's comparisons pass over it there. */
static void put_notes(
	struct text_report *report, const struct row *row, const struct frames *frames)
{
	struct out *out = report->out;

	if (report->comparison->axis) {
		out_text(out, "//     ");
		text_trend(report, &row->trend, row->of);
	}
	if (row->heap) {
		out_text(out, "//     heap ");
		if (heap_name(row->heap))
			out_text(out, heap_name(row->heap));
		else
			out_hex(out, row->heap);
		out_char(out, '\n');
	}
	if (row->kind == ROW_AMBIGUOUS)
		out_printf(out, "//     ambiguous: one of %zu stacks, unknown which\n",
			frames->part_count + 1);
	if (row->id_stack_count > 1)
		out_printf(out, "//     %zu different stacks have this id: one is shown\n",
			row->id_stack_count);
	if (row->id_count < 2)
		return;
	out_text(out, "//     also");
	for (size_t i = 1; i < row->id_count && i <= ALSO_MAX; i++) {
		out_text(out, " BackTrace");
		out_harmless(out, row->ids[i]);
	}
	if (row->id_count > ALSO_MAX + 1)
		out_printf(out, " and %zu more", row->id_count - ALSO_MAX - 1);
	out_char(out, '\n');
}

/* "+ GROWTH ( NEW - OLD)", which both lines start with. */
static void put_growth(struct text_report *report, uint64_t new, uint64_t old)
{
	struct growth growth = growth_of(new, old);

	out_char(report->out, growth.sign);
	put_number(report, report->delta_width, growth.amount);
	out_text(report->out, " ( ");
	put_number(report, report->sum_width, new);
	out_text(report->out, " - ");
	put_number(report, report->sum_width, old);
	out_char(report->out, ')');
}

static void put_label(struct text_report *report, const struct row *row)
{
	out_text(report->out, "\tBackTrace");
	out_harmless(report->out, row->id_count ? row->ids[0] : "0");
}

static void put_sums(struct text_report *report, const struct row *row)
{
	struct census new = row_new(report->comparison, row);
	struct census old = row_old(report->comparison, row);

	put_growth(report, new.requested_bytes, old.requested_bytes);
	out_char(report->out, ' ');
	put_number(report, report->count_width, new.block_count);
	out_text(report->out, " allocs");
	put_label(report, row);
	out_char(report->out, '\n');
	put_growth(report, new.block_count, old.block_count);
	put_label(report, row);
	out_text(report->out, "\tallocations\n\n");
}

static void put_place(struct out *out, const struct frame *frame)
{
	if (frame->module) {
		out_harmless(out, frame->module);
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

static void put_symbol(struct out *out, const struct frame *frame)
{
	if (frame->module) {
		out_harmless(out, frame->module);
		out_char(out, '!');
	}
	out_harmless(out, frame->function);
	if (frame->offset_bytes) {
		out_char(out, '+');
		out_hex(out, frame->offset_bytes);
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

static void put_frames(struct out *out, const struct frames *frames)
{
	size_t part = 0;

	for (size_t i = 0; i < frames->count; i++) {
		for (; part < frames->part_count && frames->part_at[part] <= i; part++)
			out_text(out, "\tAlias\n");
		out_char(out, '\t');
		if (frames->items[i].function)
			put_symbol(out, &frames->items[i]);
		else
			put_place(out, &frames->items[i]);
		out_char(out, '\n');
	}
}

static void put_row(struct text_report *report, uint32_t number, struct frames *frames)
{
	const struct row *row = &report->comparison->rows[number];
	char space[ROW_WORDS_BYTES];

	if (view_frames(report->view, number, frames)) {
		err_set(&report->out->err, ERR_NOMEM, NULL, NULL);
		return;
	}
	put_notes(report, row, frames);
	put_sums(report, row);
	if (!frames->count) {
		out_char(report->out, '\t');
		out_text(report->out, row_words(row, space));
		out_char(report->out, '\n');
	}
	put_frames(report->out, frames);
	out_char(report->out, '\n');
}

static void put_rows(struct text_report *report)
{
	struct frames frames;

	frames_init(&frames);
	for (size_t i = 0; i < report->view->shown_count && !report->out->err.code; i++)
		put_row(report, report->view->rows[i], &frames);
	frames_release(&frames);
}

static void put_view(struct out *out, const struct view *view, const struct report *asked)
{
	const struct report_style *style = &asked->style;
	struct text_report report = {.out = out,
		.asked = asked,
		.comparison = view->comparison,
		.view = view,
		.base = style->hex ? 16 : 10,
		.delta_width = 8,
		.sum_width = style->hex ? 5 : 6,
		.count_width = 6};

	if (view->comparison->axis)
		spark_make(&report.spark, view->comparison->axis, style->spark, SPARK_WIDTH);
	text_head(&report);
	if (view->group == GROUP_STACK)
		put_rows(&report);
	else
		text_groups(&report);
	text_end(&report);
}

void report_text(struct out *out, const struct report *report)
{
	for (size_t i = 0; i < report->view_count && !out->err.code; i++) {
		if (i)
			out_text(out, "\n\n");
		put_view(out, report->views[i], report);
	}
}
