/* man/hdiff-csv.5 says what all this means: what changes here changes there. */
#include "diff/report/report.h"

#include <string.h>

#include "core/text.h"
#include "diff/report/report_parts.h"

struct csv_report {
	struct out *out;
	const struct view *view;
	const struct comparison *comparison;
	struct buf field, stack;
	bool is_first; /* of its record */
};

/* ---------------------------------------------------------------- fields */

static void put_comma(struct csv_report *report)
{
	if (!report->is_first)
		out_char(report->out, ',');
	report->is_first = false;
}

/* Whether a spreadsheet takes the text for a formula, or for one that was marked. The last four are
 * the signs as wide as a Chinese character, which some take too. */
static bool is_formula(const char *text)
{
	static const uint32_t signs[] = {
		'=', '+', '-', '@', '\'', '\t', '\r', '\n', 0xff1d, 0xff0b, 0xff0d, 0xff20};
	uint32_t first;

	if (!text_utf8(text, &first))
		return false;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (first == signs[i])
			return true;
	}
	return false;
}

/* A text that is clean: quoted where it has to be, marked where it would be run. */
static void put_text(struct csv_report *report, const char *text)
{
	const char *quote;

	put_comma(report);
	if (!text[strcspn(text, ",\"\r\n")]) {
		if (is_formula(text))
			out_char(report->out, '\'');
		out_text(report->out, text);
		return;
	}
	out_char(report->out, '"');
	if (is_formula(text))
		out_char(report->out, '\'');
	for (; (quote = strchr(text, '"')); text = quote + 1) {
		out_write(report->out, text, (size_t)(quote - text + 1));
		out_char(report->out, '"');
	}
	out_text(report->out, text);
	out_char(report->out, '"');
}

static int put_name(struct csv_report *report, const char *text)
{
	int rc;

	buf_clear(&report->field);
	rc = clean_text(&report->field, text ? text : "", false);
	if (!rc)
		put_text(report, report->field.data);
	return rc;
}

static void put_number(struct csv_report *report, uint64_t value)
{
	put_comma(report);
	out_number(report->out, value, 10, 0);
}

/* Growth, NEW and OLD of one sum; empty when it is not known. */
static void put_sums(struct csv_report *report, uint64_t new, uint64_t old, bool is_known)
{
	struct growth growth = growth_of(new, old);

	if (!is_known) {
		out_text(report->out, ",,,");
		return;
	}
	put_comma(report);
	out_signed(report->out, growth.sign == '-' ? '-' : '\0', growth.amount, 10, 0);
	put_number(report, new);
	put_number(report, old);
}

static void put_change(struct csv_report *report, const struct change *change)
{
	const struct census *new = &change->new, *old = &change->old;

	put_sums(report, new->requested_bytes, old->requested_bytes, true);
	put_sums(report, new->block_count, old->block_count, true);
	put_sums(report, new->overhead_bytes, old->overhead_bytes,
		rows_have_overhead(report->comparison));
}

/* The coarsest of the samples that figures are estimated from; 0: they are no estimates. */
static uint64_t sample_bytes(const struct comparison *comparison)
{
	uint64_t most = 0;

	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++) {
		if (comparison->dumps[i].sample_bytes > most)
			most = comparison->dumps[i].sample_bytes;
	}
	return most;
}

static void end_record(struct csv_report *report)
{
	uint64_t sample = sample_bytes(report->comparison);

	if (sample)
		put_number(report, sample);
	out_text(report->out, "\r\n");
	report->is_first = true;
}

static void end_header(struct csv_report *report)
{
	out_text(report->out, sample_bytes(report->comparison) ? ",sample_bytes\r\n" : "\r\n");
}

/* ---------------------------------------------------------------- rows */

/* With letters before it, so that no spreadsheet reads 1E5 as a number. */
static int put_heap(struct csv_report *report, uint64_t heap)
{
	int rc = 0;

	buf_clear(&report->field);
	if (!heap) {
		put_comma(report);
		return 0;
	}
	rc = buf_add_text(&report->field, heap_name(heap) ? heap_name(heap) : "0x");
	if (!rc && !heap_name(heap))
		rc = clean_hex(&report->field, heap);
	if (!rc)
		put_text(report, report->field.data);
	return rc;
}

static int put_ids(struct csv_report *report, const struct row *row)
{
	int rc = buf_reserve(&report->field, 0);

	buf_clear(&report->field);
	for (size_t i = 0; !rc && i < row->id_count; i++) {
		rc = buf_add_text(&report->field, i ? " BackTrace" : "BackTrace");
		if (!rc)
			rc = clean_text(&report->field, row->ids[i], false);
	}
	if (!rc)
		put_text(report, report->field.data);
	return rc;
}

static int put_first_frame(struct csv_report *report, const struct frames *frames)
{
	const struct frame none = {0}, *frame = frames->count ? frames->items : &none;
	int rc = put_name(report, frame->module);

	if (!rc)
		rc = put_name(report, frame->function);
	if (!rc)
		rc = put_name(report, frame->file);
	put_comma(report);
	if (frame->line)
		out_number(report->out, frame->line, 10, 0);
	return rc;
}

static int put_stack(struct csv_report *report, const struct row *row, const struct frames *frames)
{
	const char *between = report->view->is_inverted ? " -> " : " <- ";
	char space[ROW_WORDS_BYTES];
	size_t part = 0;
	int rc = 0;

	buf_clear(&report->stack);
	if (!frames->count)
		rc = buf_add_text(&report->stack, row_words(row, space));
	for (size_t i = 0; !rc && i < frames->count; i++) {
		bool starts = part < frames->part_count && frames->part_at[part] <= i;

		while (part < frames->part_count && frames->part_at[part] <= i)
			part++;
		if (i)
			rc = buf_add_text(&report->stack, starts ? " | " : between);
		if (!rc)
			rc = clean_frame(&report->stack, &frames->items[i], false);
	}
	if (!rc)
		put_text(report, report->stack.data);
	return rc;
}

static int put_row(struct csv_report *report, uint32_t number, struct frames *frames)
{
	const struct row *row = &report->comparison->rows[number];
	struct change change = row_change(report->comparison, row);
	int rc = view_frames(report->view, number, frames);

	if (rc)
		return rc;
	put_change(report, &change);
	put_text(report, row_kind_name(row->kind));
	rc = put_heap(report, row->heap);
	if (!rc)
		rc = put_ids(report, row);
	if (!rc)
		rc = put_first_frame(report, frames);
	if (!rc)
		rc = put_stack(report, row, frames);
	end_record(report);
	return rc;
}

static int put_rows(struct csv_report *report)
{
	struct frames frames;
	int rc = 0;

	frames_init(&frames);
	out_text(report->out, "growth_bytes,new_bytes,old_bytes,growth_count,new_count,old_count,"
			      "growth_overhead,new_overhead,old_overhead,"
			      "kind,heap,ids,module,function,file,line,stack");
	end_header(report);
	for (size_t i = 0; !rc && i < report->view->shown_count && !report->out->err.code; i++)
		rc = put_row(report, report->view->rows[i], &frames);
	frames_release(&frames);
	return rc;
}

static int put_groups(struct csv_report *report)
{
	const struct view *view = report->view;
	int rc = 0;

	out_text(report->out, "self_growth_bytes,self_new_bytes,self_old_bytes,"
			      "self_growth_count,self_new_count,self_old_count,"
			      "self_growth_overhead,self_new_overhead,self_old_overhead,"
			      "growth_bytes,new_bytes,old_bytes,growth_count,new_count,old_count,"
			      "growth_overhead,new_overhead,old_overhead,group,name");
	end_header(report);
	for (size_t i = 0; !rc && i < view->shown_count && !report->out->err.code; i++) {
		put_change(report, &view->groups[i].self);
		put_change(report, &view->groups[i].total);
		put_text(report, group_kind_name(view->group));
		rc = put_name(report, view->groups[i].name);
		end_record(report);
	}
	return rc;
}

void report_csv(struct out *out, const struct view *view, const struct report_style *style)
{
	struct csv_report report = {
		.out = out, .view = view, .comparison = view->comparison, .is_first = true};
	int rc;

	(void)style; /* numbers are decimal for spreadsheets */
	buf_init(&report.field);
	buf_init(&report.stack);
	rc = view->group == GROUP_STACK ? put_rows(&report) : put_groups(&report);
	if (rc && !out->err.code)
		err_set(&out->err, ERR_NOMEM, NULL, NULL);
	buf_release(&report.field);
	buf_release(&report.stack);
}
