#include "diff/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/date.h"
#include "core/text.h"

#define ALSO_MAX 64 /* further ids that are listed */

struct text_report {
	struct out *out;
	const struct comparison *comparison;
	const struct view *view;
	bool hex;
	int delta_width, sum_width, count_width;
};

/* Text from a dump or the command line: a control character must not look like a line of ours. */
static void put_safe(struct out *out, const char *text, size_t len)
{
	struct buf copy;

	buf_init(&copy);
	if (!buf_add(&copy, text, len))
		out_text(out, text_harmless(copy.data));
	else if (!out->err.code)
		err_set(&out->err, ERR_NOMEM, NULL, NULL);
	buf_release(&copy);
}

static void put_text(struct out *out, const char *text)
{
	put_safe(out, text, strlen(text));
}

static void put_number(struct text_report *report, int width, uint64_t value)
{
	out_printf(report->out, report->hex ? "%*" PRIx64 : "%*" PRIu64, width, value);
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* ---------------------------------------------------------------- header */

static void put_dump(struct text_report *report, const char *role, const struct sums *sums)
{
	struct out *out = report->out;
	char time[DATE_TEXT_BYTES];

	out_printf(out, "// %s: ", role);
	put_text(out, sums->path);
	if (sums->image) {
		out_text(out, ", ");
		put_text(out, path_base(sums->image));
	}
	if (sums->pid)
		out_printf(out, ", process %" PRIu32, sums->pid);
	if (sums->start_ms)
		out_printf(out, ", started %s", date_text(sums->start_ms, time));
	if (sums->time_ms)
		out_printf(out, ", taken %s", date_text(sums->time_ms, time));
	if (sums->is_cut)
		out_text(out, ", CUT SHORT: sums are of what is there");
	out_text(out, "\n");
}

/* What a dump lacks. */
static void put_warnings(struct out *out, const struct sums *sums)
{
	for (size_t i = 0; i < sums->warning_count && i <= WARNINGS_MAX; i++) {
		out_text(out, "// warning: ");
		put_text(out, sums->path);
		out_text(out, ": ");
		if (i < WARNINGS_MAX)
			put_text(out, sums->warnings[i]);
		else
			out_printf(out, "and %zu more", sums->warning_count - WARNINGS_MAX);
		out_text(out, "\n");
	}
}

static void put_dumps(struct text_report *report)
{
	const struct comparison *comparison = report->comparison;
	size_t count = comparison->dump_count;
	struct out *out = report->out;

	put_dump(report, "NEW", &comparison->dumps[count - 1]);
	if (count > 1)
		put_dump(report, "OLD", &comparison->dumps[0]);
	else
		out_text(out, "// OLD: none: everything counts as new\n");
	put_warnings(out, &comparison->dumps[count - 1]);
	if (count > 1)
		put_warnings(out, &comparison->dumps[0]);
}

/* Where the rows were read. */
static void put_origin(struct out *out, const char *name)
{
	out_text(out, "// READ: the comparison in ");
	put_text(out, name);
	out_text(out, "\n");
}

static void put_header(struct text_report *report)
{
	const struct comparison *comparison = report->comparison;
	struct out *out = report->out;

	out_text(out, "// hdiff " HSNAP_VERSION ": heap growth by stack\n//\n");
	if (comparison->dumps)
		put_dumps(report);
	else
		put_origin(out, comparison->read_from);
	out_printf(out,
		"//\n"
		"// A stack has two lines, then its frames, the innermost first:\n"
		"//\n"
		"// + GROWTH ( NEW - OLD) BLOCKS allocs<TAB>BackTraceID     bytes asked for\n"
		"// + GROWTH ( NEW - OLD)<TAB>BackTraceID<TAB>allocations   number of blocks\n"
		"//\n"
		"// BLOCKS are those in NEW. Numbers are %s; offsets and addresses are\n"
		"// always hexadecimal. The largest growth comes first; what did not change is\n"
		"// left out. ID is what the dumps call the stack, for looking it up there.\n"
		"//\n",
		report->hex ? "hexadecimal" : "decimal");
}

/* ---------------------------------------------------------------- rows */

/* Before the row: readers of UMDH's comparisons pass over it there. */
static void put_notes(
	struct text_report *report, const struct row *row, const struct frames *frames)
{
	struct out *out = report->out;

	if (row->kind == ROW_AMBIGUOUS)
		out_printf(out, "//     ambiguous: one of %zu stacks, unknown which\n",
			frames->part_count + 1);
	if (row->id_count < 2)
		return;
	out_text(out, "//     also");
	for (size_t i = 1; i < row->id_count && i <= ALSO_MAX; i++) {
		out_text(out, " BackTrace");
		put_text(out, row->ids[i]);
	}
	if (row->id_count > ALSO_MAX + 1)
		out_printf(out, " and %zu more", row->id_count - ALSO_MAX - 1);
	out_text(out, "\n");
}

/* "+ GROWTH ( NEW - OLD)", which both lines start with. */
static void put_growth(struct text_report *report, uint64_t new, uint64_t old)
{
	out_text(report->out, new < old ? "-" : "+");
	put_number(report, report->delta_width, new < old ? old - new : new - old);
	out_text(report->out, " ( ");
	put_number(report, report->sum_width, new);
	out_text(report->out, " - ");
	put_number(report, report->sum_width, old);
	out_text(report->out, ")");
}

static void put_label(struct text_report *report, const struct row *row)
{
	out_text(report->out, "\tBackTrace");
	put_text(report->out, row->ids[0]);
}

static void put_sums(struct text_report *report, const struct row *row)
{
	struct census new = row_new(report->comparison, row);
	struct census old = row_old(report->comparison, row);

	put_growth(report, new.requested_bytes, old.requested_bytes);
	out_text(report->out, " ");
	put_number(report, report->count_width, new.block_count);
	out_text(report->out, " allocs");
	put_label(report, row);
	out_text(report->out, "\n");
	put_growth(report, new.block_count, old.block_count);
	put_label(report, row);
	out_text(report->out, "\tallocations\n\n");
}

static void put_place(struct out *out, const struct frame *frame)
{
	if (frame->module) {
		put_text(out, frame->module);
		out_text(out, "+");
		out_hex(out, frame->offset_bytes);
		out_text(out, " : ");
	}
	out_hex(out, frame->addr);
}

static void put_symbol(struct out *out, const struct frame *frame)
{
	if (frame->module) {
		put_text(out, frame->module);
		out_text(out, "!");
	}
	put_text(out, frame->function);
	out_text(out, "+");
	out_hex(out, frame->offset_bytes);
	if (frame->file && frame->line) {
		out_text(out, " (");
		put_text(out, frame->file);
		out_printf(out, ", %" PRIu32 ")", frame->line);
	}
	if (frame->is_inline)
		out_text(out, " [inline]");
}

static void put_stack(
	struct text_report *report, const struct row *row, const struct frames *frames)
{
	size_t part = 0;

	if (row->kind == ROW_ONE_OF)
		out_printf(
			report->out, "\t(one of %zu stacks under this id)\n", row->candidate_count);
	if (row->kind == ROW_UNKNOWN)
		out_text(report->out, "\t(stack not in the dump)\n");
	if (row->kind == ROW_STACKLESS)
		out_text(report->out, "\t(no stack recorded)\n");
	for (size_t i = 0; i < frames->count; i++) {
		for (; part < frames->part_count && frames->part_at[part] <= i; part++)
			out_text(report->out, "\tAlias\n");
		out_text(report->out, "\t");
		if (frames->items[i].function)
			put_symbol(report->out, &frames->items[i]);
		else
			put_place(report->out, &frames->items[i]);
		out_text(report->out, "\n");
	}
	out_text(report->out, "\n");
}

/* ---------------------------------------------------------------- total */

/* Right-justified in six, with a sign when it goes against the direction of the whole. */
static void put_part(struct text_report *report, int64_t value, const char *behind)
{
	char text[32];

	snprintf(text, sizeof(text), report->hex ? "%s%" PRIx64 : "%s%" PRIu64,
		value < 0 ? "-" : "", magnitude(value));
	out_printf(report->out, " %6s%s", text, behind);
}

static void put_total(struct text_report *report)
{
	struct delta delta = comparison_delta(report->comparison);
	int64_t sum = delta.requested_bytes + delta.overhead_bytes; /* fits: see sum.h */
	int direction = sum > 0 ? 1 : -1; /* UMDH calls nothing at all a decrease */
	bool has_overhead = report->comparison->has_overhead;

	out_printf(report->out, "\n\n\nTotal %s ==", sum > 0 ? "increase" : "decrease");
	put_part(report, direction * delta.requested_bytes, has_overhead ? " requested +" : "\n");
	if (!has_overhead)
		return; /* as UMDH did of old, which told requested bytes only */
	put_part(report, direction * delta.overhead_bytes, " overhead =");
	put_part(report, direction * sum, "\n");
}

static void put_row(struct text_report *report, uint32_t number, struct frames *frames)
{
	const struct row *row = &report->comparison->rows[number];

	if (view_frames(report->view, number, frames)) {
		err_set(&report->out->err, ERR_NOMEM, NULL, NULL);
		return;
	}
	put_notes(report, row, frames);
	put_sums(report, row);
	put_stack(report, row, frames);
}

void report_text(struct out *out, const struct view *view, const struct report_style *style)
{
	struct text_report report = {.out = out,
		.comparison = view->comparison,
		.view = view,
		.hex = style->hex,
		.delta_width = 8,
		.sum_width = style->hex ? 5 : 6,
		.count_width = 6};
	struct frames frames;

	frames_init(&frames);
	put_header(&report);
	for (size_t i = 0; i < view->shown_count; i++)
		put_row(&report, view->rows[i], &frames);
	put_total(&report);
	frames_release(&frames);
}
