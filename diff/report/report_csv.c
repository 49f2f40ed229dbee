#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

static void csv_init(struct csv *csv, struct out *out)
{
	*csv = (struct csv){.out = out, .is_first = true};
	buf_init(&csv->field);
}

static void csv_release(struct csv *csv)
{
	buf_release(&csv->field);
}

static void put_comma(struct csv *csv)
{
	if (!csv->is_first)
		out_char(csv->out, ',');
	csv->is_first = false;
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
static void csv_text(struct csv *csv, const char *text)
{
	const char *quote;

	put_comma(csv);
	if (!text[strcspn(text, ",\"\r\n")]) {
		if (is_formula(text))
			out_char(csv->out, '\'');
		out_text(csv->out, text);
		return;
	}
	out_char(csv->out, '"');
	if (is_formula(text))
		out_char(csv->out, '\'');
	for (; (quote = strchr(text, '"')); text = quote + 1) {
		out_write(csv->out, text, (size_t)(quote - text + 1));
		out_char(csv->out, '"');
	}
	out_text(csv->out, text);
	out_char(csv->out, '"');
}

/* Any text, made clean; NULL: nothing. 0 or -ERR_NOMEM. */
static int csv_name(struct csv *csv, const char *text)
{
	int rc;

	buf_clear(&csv->field);
	rc = clean_text(&csv->field, text ? text : "", false);
	if (!rc)
		csv_text(csv, csv->field.data);
	return rc;
}

static void csv_number(struct csv *csv, uint64_t value)
{
	put_comma(csv);
	out_number(csv->out, value, 10, 0);
}

static void csv_signed(struct csv *csv, int64_t value)
{
	uint64_t bits = (uint64_t)value;

	put_comma(csv);
	out_signed(csv->out, value < 0 ? '-' : '\0', value < 0 ? 0 - bits : bits, 10, 0);
}

/* new - old, a number with a sign. */
static void csv_growth(struct csv *csv, uint64_t new, uint64_t old)
{
	struct growth growth = growth_of(new, old);

	put_comma(csv);
	out_signed(csv->out, growth.sign == '-' ? '-' : '\0', growth.amount, 10, 0);
}

/* As fraction_text() has it; empty when value is no number. */
static void csv_fraction(struct csv *csv, double value)
{
	char text[FRACTION_TEXT_BYTES];
	const char *digits = fraction_text(value, text);

	put_comma(csv);
	out_text(csv->out, digits ? digits : "");
}

/* count fields without anything. */
static void csv_empty(struct csv *csv, size_t count)
{
	while (count--)
		put_comma(csv);
}

/* Names of columns, with commas between; plain text. */
static void csv_columns(struct csv *csv, const char *names)
{
	put_comma(csv);
	out_text(csv->out, names);
}

static void csv_end(struct csv *csv)
{
	out_text(csv->out, "\r\n");
	csv->is_first = true;
}

/* man/hdiff-csv.5 says what all this means: what changes here changes there. */

/* ---------------------------------------------------------------- before */

/* What stands before: whose series it is, and what it says; of groups what self says comes first. */
static void csv_trend_columns(struct csv *csv, bool is_grouped)
{
	csv_columns(csv, "series,image,pid,start");
	if (is_grouped)
		csv_columns(csv, "self_verdict,self_bytes_per_hour,self_low_bytes_per_hour,"
				 "self_high_bytes_per_hour,self_blocks_per_hour,"
				 "self_net_bytes,self_net_blocks");
	csv_columns(csv, "verdict,bytes_per_hour,low_bytes_per_hour,high_bytes_per_hour,"
			 "blocks_per_hour,net_bytes,net_blocks");
}

static int csv_process(struct csv *csv, const struct view *view)
{
	const struct dump_sums *first = view->comparison->dumps;
	char text[DATE_TEXT_BYTES];
	int rc;

	csv_number(csv, view->series_number);
	rc = csv_name(csv, first->image);
	if (first->pid)
		csv_number(csv, first->pid);
	else
		csv_empty(csv, 1);
	csv_text(csv, first->start_ms ? date_text(first->start_ms, text) : "");
	return rc;
}

/* 0 or -ERR_NOMEM. */
static void csv_trend(struct csv *csv, const struct view *view, const struct trend *trend)
{
	csv_text(csv, trend_verdict_name(trend->verdict));
	if (report_has_rates(view->comparison)) {
		csv_fraction(csv, trend->bytes_per_hour);
		csv_fraction(csv, trend->low_bytes_per_hour);
		csv_fraction(csv, trend->high_bytes_per_hour);
		csv_fraction(csv, trend->blocks_per_hour);
	} else {
		csv_empty(csv, 4);
	}
	csv_signed(csv, trend->net_bytes);
	csv_signed(csv, trend->net_blocks);
}

/* ---------------------------------------------------------------- behind */

/* The word and when the snapshot was taken; where that is not known, its path. */
static int put_column(struct csv *csv, const char *word, const struct dump_sums *dump)
{
	char time[DATE_TEXT_BYTES];
	bool is_known = *report_dump_time(dump, time);
	int rc;

	buf_clear(&csv->field);
	rc = buf_printf(&csv->field, "%s ", word);
	if (!rc)
		rc = clean_text(&csv->field, is_known ? time : dump->path, true);
	if (!rc)
		csv_text(csv, csv->field.data);
	return rc;
}

static int put_columns(struct csv *csv, const struct report *report, const char *word)
{
	int rc = 0;

	for (size_t series = 0; series < report->view_count; series++) {
		const struct comparison *comparison = report->views[series]->comparison;

		for (size_t i = 0; !rc && i < comparison->dump_count; i++)
			rc = put_column(csv, word, &comparison->dumps[i]);
	}
	return rc;
}

/* What stands behind: bytes at each snapshot of each series, then blocks. 0 or -ERR_NOMEM. */
static int csv_series_columns(struct csv *csv, const struct report *report)
{
	int rc = put_columns(csv, report, "bytes");

	return rc ? rc : put_columns(csv, report, "blocks");
}

/* How many snapshots the series from..end have. */
static size_t snapshot_count(const struct report *report, size_t from, size_t end)
{
	size_t count = 0;

	for (size_t i = from; i < end; i++)
		count += report->views[i]->comparison->dump_count;
	return count;
}

/* of: a sum for each snapshot of view number series. */
static void csv_series(
	struct csv *csv, const struct report *report, size_t series, const struct block_totals *of)
{
	size_t before = snapshot_count(report, 0, series);
	size_t behind = snapshot_count(report, series + 1, report->view_count);
	size_t count = report->views[series]->comparison->dump_count;

	csv_empty(csv, before);
	for (size_t i = 0; i < count; i++)
		csv_number(csv, of[i].requested_bytes);
	csv_empty(csv, behind + before);
	for (size_t i = 0; i < count; i++)
		csv_number(csv, of[i].block_count);
	csv_empty(csv, behind);
}

/* man/hdiff-csv.5 says what all this means: what changes here changes there. */

struct csv_report {
	struct csv csv;
	const struct report *asked;
	size_t series; /* of the views: the one at hand */
	const struct view *view;
	const struct comparison *comparison;
	bool is_trend, has_sample; /* columns that are not always there */
	struct buf stack;
};

/* ---------------------------------------------------------------- sums */

/* Growth, NEW and OLD of one sum; empty when it is not known. */
static void put_sums(struct csv *csv, uint64_t new, uint64_t old, bool is_known)
{
	if (!is_known) {
		csv_empty(csv, 3);
		return;
	}
	csv_growth(csv, new, old);
	csv_number(csv, new);
	csv_number(csv, old);
}

static void put_change(struct csv_report *report, const struct change *change)
{
	const struct block_totals *new = &change->new, *old = &change->old;

	put_sums(&report->csv, new->requested_bytes, old->requested_bytes, true);
	put_sums(&report->csv, new->block_count, old->block_count, true);
	put_sums(&report->csv, new->overhead_bytes, old->overhead_bytes,
		report_rows_have_overhead(report->comparison));
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

static bool has_sample(const struct report *asked)
{
	for (size_t i = 0; i < asked->view_count; i++) {
		if (sample_bytes(asked->views[i]->comparison))
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- what all records have */

static int put_header(struct csv_report *report, const char *columns)
{
	struct csv *csv = &report->csv;
	int rc = 0;

	if (report->is_trend)
		csv_trend_columns(csv, report->asked->views[0]->group != GROUP_STACK);
	csv_columns(csv, columns);
	if (report->has_sample)
		csv_columns(csv, "sample_bytes");
	if (report->is_trend)
		rc = csv_series_columns(csv, report->asked);
	csv_end(csv);
	return rc;
}

static void end_record(struct csv_report *report, const struct block_totals *of)
{
	uint64_t sample = sample_bytes(report->comparison);

	if (sample)
		csv_number(&report->csv, sample);
	else if (report->has_sample)
		csv_empty(&report->csv, 1);
	if (report->is_trend)
		csv_series(&report->csv, report->asked, report->series, of);
	csv_end(&report->csv);
}

/* ---------------------------------------------------------------- rows */

/* With letters before it, so that no spreadsheet reads 1E5 as a number. */
static int put_heap(struct csv_report *report, uint64_t heap)
{
	int rc = 0;

	buf_clear(&report->csv.field);
	if (!heap) {
		csv_empty(&report->csv, 1);
		return 0;
	}
	rc = buf_add_text(&report->csv.field, heap_name(heap) ? heap_name(heap) : "0x");
	if (!rc && !heap_name(heap))
		rc = clean_hex(&report->csv.field, heap);
	if (!rc)
		csv_text(&report->csv, report->csv.field.data);
	return rc;
}

static int put_ids(struct csv_report *report, const struct row *row)
{
	int rc = buf_reserve(&report->csv.field, 0);

	buf_clear(&report->csv.field);
	for (size_t i = 0; !rc && i < row->id_count; i++) {
		rc = buf_add_text(&report->csv.field, i ? " BackTrace" : "BackTrace");
		if (!rc)
			rc = clean_text(&report->csv.field, row->ids[i], false);
	}
	if (!rc)
		csv_text(&report->csv, report->csv.field.data);
	return rc;
}

static int put_first_frame(struct csv_report *report, const struct frames *frames)
{
	const struct frame none = {0}, *frame = frames->count ? frames->items : &none;
	int rc = csv_name(&report->csv, frame->module);

	if (!rc)
		rc = csv_name(&report->csv, frame->function);
	if (!rc)
		rc = csv_name(&report->csv, frame->file);
	if (frame->line)
		csv_number(&report->csv, frame->line);
	else
		csv_empty(&report->csv, 1);
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
		rc = buf_add_text(&report->stack, report_row_words(row, space));
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
		csv_text(&report->csv, report->stack.data);
	return rc;
}

static int put_row(struct csv_report *report, uint32_t number, struct frames *frames)
{
	const struct row *row = &report->comparison->rows[number];
	struct change change = row_change(report->comparison, row);
	int rc = view_frames(report->view, number, frames);

	if (!rc && report->is_trend)
		rc = csv_process(&report->csv, report->view);
	if (rc)
		return rc;
	if (report->is_trend)
		csv_trend(&report->csv, report->view, &row->trend);
	put_change(report, &change);
	csv_text(&report->csv, report_row_kind(row->kind));
	rc = put_heap(report, row->heap);
	if (!rc)
		rc = put_ids(report, row);
	if (!rc)
		rc = put_first_frame(report, frames);
	if (!rc)
		rc = put_stack(report, row, frames);
	end_record(report, row->of);
	return rc;
}

static int put_rows(struct csv_report *report)
{
	struct frames frames;
	int rc = 0;

	frames_init(&frames);
	for (size_t i = 0; !rc && i < report->view->shown_count && !report->csv.out->err.code; i++)
		rc = put_row(report, report->view->rows[i], &frames);
	frames_release(&frames);
	return rc;
}

static int put_group(struct csv_report *report, const struct view_group_row *group)
{
	int rc = report->is_trend ? csv_process(&report->csv, report->view) : 0;

	if (rc)
		return rc;
	if (report->is_trend) {
		csv_trend(&report->csv, report->view, &group->self_trend);
		csv_trend(&report->csv, report->view, &group->total_trend);
	}
	put_change(report, &group->self);
	put_change(report, &group->total);
	csv_text(&report->csv, report_group_kind(report->view->group));
	rc = csv_name(&report->csv, group->name);
	end_record(report, group->total_of);
	return rc;
}

static int put_groups(struct csv_report *report)
{
	const struct view *view = report->view;
	int rc = 0;

	for (size_t i = 0; !rc && i < view->shown_count && !report->csv.out->err.code; i++)
		rc = put_group(report, &view->groups[i]);
	return rc;
}

/* ---------------------------------------------------------------- all of it */

static const char row_columns[] = "growth_bytes,new_bytes,old_bytes,"
				  "growth_count,new_count,old_count,"
				  "growth_overhead,new_overhead,old_overhead,"
				  "kind,heap,ids,module,function,file,line,stack";

static const char group_columns[] = "self_growth_bytes,self_new_bytes,self_old_bytes,"
				    "self_growth_count,self_new_count,self_old_count,"
				    "self_growth_overhead,self_new_overhead,self_old_overhead,"
				    "growth_bytes,new_bytes,old_bytes,"
				    "growth_count,new_count,old_count,"
				    "growth_overhead,new_overhead,old_overhead,group,name";

static int put_all(struct csv_report *report)
{
	const struct report *asked = report->asked;
	bool is_grouped = asked->views[0]->group != GROUP_STACK;
	int rc = put_header(report, is_grouped ? group_columns : row_columns);

	for (size_t i = 0; !rc && i < asked->view_count; i++) {
		report->series = i;
		report->view = asked->views[i];
		report->comparison = report->view->comparison;
		rc = is_grouped ? put_groups(report) : put_rows(report);
	}
	return rc;
}

void report_csv(struct out *out, const struct report *asked)
{
	/* Of asked->style nothing is used: numbers are decimal for spreadsheets. */
	struct csv_report report = {.asked = asked,
		.is_trend = report_is_trend(asked),
		.has_sample = has_sample(asked)};

	csv_init(&report.csv, out);
	buf_init(&report.stack);
	if (put_all(&report) && !out->err.code)
		err_set(&out->err, ERR_NOMEM, NULL, NULL);
	buf_release(&report.stack);
	csv_release(&report.csv);
}
