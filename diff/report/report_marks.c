/* The parts of a recording between its marks: as a table for people, as JSON, and as CSV.
 * man/hdiff-json.5 and man/hdiff-csv.5 document the latter and must change with this file. */
#include <stdlib.h>

#include "core/base/text.h"
#include "diff/query/mark_parts.h"
#include "diff/report/clean.h"
#include "diff/report/csv.h"
#include "diff/report/json.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"
#include "diff/report/report_text.h"

#define SCHEMA "hdiff-marks/1"
#define NO_LABEL "(start)"

/* ---------------------------------------------------------------- selection */

/* Orders parts that kept more before others. Equal parts stay in order of time. */
static int by_kept(const void *a, const void *b)
{
	const struct mark_part *x = *(const struct mark_part *const *)a,
			       *y = *(const struct mark_part *const *)b;

	if (x->kept.requested_bytes != y->kept.requested_bytes)
		return x->kept.requested_bytes > y->kept.requested_bytes ? -1 : 1;
	if (x->kept.block_count != y->kept.block_count)
		return x->kept.block_count > y->kept.block_count ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Returns an array, indexed by part. An element is true if the part is one of the `parts_max` parts
 * that kept most. */
static bool *find_shown(const struct report *report)
{
	const struct mark_parts *parts = report->parts;
	const struct mark_part **sorted = xcalloc(parts->count, sizeof(*sorted));
	bool *shown = xcalloc(parts->count, sizeof(*shown));

	for (size_t i = 0; i < parts->count; i++)
		sorted[i] = &parts->items[i];
	qsort(sorted, parts->count, sizeof(*sorted), by_kept);
	for (size_t i = 0; i < parts->count && i < report->parts_max; i++)
		shown[sorted[i] - parts->items] = true;
	free(sorted);
	return shown;
}

/* ---------------------------------------------------------------- text */

static void write_headings(struct text_report *text)
{
	report_text_colour(text, "2");
	out_printf(text->out, "%*s%*s%*s%*s%*s%*s  from mark\n", TEXT_NUMBER, "", TEXT_BYTES,
		"kept", TEXT_BLOCKS, "blocks", TEXT_BYTES, "left", TEXT_BYTES, "transient",
		TEXT_BYTES, "peak");
	report_text_colour(text, "0");
}

/* Writes the function that kept most, with its place: the innermost one that does not belong to an
 * allocator. */
static void write_stack(struct text_report *text, const struct mark_part *part)
{
	char bytes[REPORT_SIZE_BYTES], blocks[REPORT_COUNT_BYTES], space[ROW_WORDS_BYTES];

	buf_clear(&text->word);
	buf_printf(&text->word, "%*s %s in %s: ", TEXT_NUMBER + 1, "",
		report_size(part->row_kept.requested_bytes, bytes),
		report_count(part->row_kept.block_count, blocks));
	naming_frames(&text->view->naming, part->row, &text->frames);
	strip_frames(text->whole->strip, &text->frames);
	if (text->frames.count) {
		report_text_add_function(&text->word, &text->frames.items[0], false);
		buf_add_text(&text->word, "  ");
		report_text_add_place(&text->word, &text->frames.items[0]);
	} else {
		buf_add_text(
			&text->word, report_row_words(&text->comparison->rows[part->row], space));
	}
	while (text->word.data[text->word.len - 1] == ' ')
		text->word.data[--text->word.len] = '\0';
	report_write_cut(text->out, text->word.data, text->columns);
	out_char(text->out, '\n');
}

static void write_part(struct text_report *text, size_t number, const struct mark_part *part)
{
	const uint64_t bytes[] = {
		part->left.requested_bytes, part->transient.requested_bytes, part->peak_bytes};
	char size[REPORT_SIZE_BYTES], blocks[REPORT_COUNT_BYTES];

	out_printf(text->out, "%*zu ", TEXT_NUMBER - 1, number);
	out_printf(text->out, "%*s", TEXT_BYTES, report_size(part->kept.requested_bytes, size));
	out_printf(text->out, "%*s", TEXT_BLOCKS, report_count(part->kept.block_count, blocks));
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		out_printf(text->out, "%*s", TEXT_BYTES, report_size(bytes[i], size));
	buf_clear(&text->word);
	clean_text(&text->word, part->label ? part->label : NO_LABEL, true);
	out_printf(text->out, "  %s\n", text->word.data);
	if (part->row != MARK_NO_ROW)
		write_stack(text, part);
}

void report_marks_text(struct out *out, const struct report *report)
{
	const struct mark_parts *parts = report->parts;
	struct text_report text = {.out = out,
		.whole = report,
		.view = report->views,
		.comparison = report->views->comparison,
		.is_single = true,
		.columns = report->style.columns ? report->style.columns : 80};
	bool *shown = find_shown(report);
	struct block_totals rest = {0};
	char bytes[REPORT_SIZE_BYTES], blocks[REPORT_COUNT_BYTES];

	frames_init(&text.frames);
	buf_init(&text.word);
	report_text_head(&text);
	write_headings(&text);
	for (size_t i = 0; i < parts->count; i++) {
		if (shown[i])
			write_part(&text, i + 1, &parts->items[i]);
		else
			block_totals_add(&rest, &parts->items[i].kept);
	}
	if (report->parts_max < parts->count)
		out_printf(out, "\n%zu more kept %s, %s block%s\n",
			parts->count - report->parts_max, report_size(rest.requested_bytes, bytes),
			report_count(rest.block_count, blocks), text_plural(rest.block_count));
	out_text(out,
		"\nkept: live at the end of its part. left: live at the end of the recording.\n");
	frames_release(&text.frames);
	buf_release(&text.word);
	free(shown);
}

/* ---------------------------------------------------------------- JSON */

static void json_totals(struct json *json, const char *key, const struct block_totals *totals)
{
	json_open(json, key, '{');
	json_number(json, "bytes", totals->requested_bytes);
	json_number(json, "blocks", totals->block_count);
	json_close(json, '}');
}

static void json_part(struct json *json, const struct mark_part *part, struct frames *frames)
{
	json_open_line(json, NULL, '{');
	if (part->label)
		json_text(json, "label", part->label);
	json_number(json, "from_ms", part->from_ms);
	json_number(json, "to_ms", part->to_ms);
	json_totals(json, "kept", &part->kept);
	json_totals(json, "left", &part->left);
	json_totals(json, "transient", &part->transient);
	json_number(json, "peak_bytes", part->peak_bytes);
	if (part->row != MARK_NO_ROW) {
		json_open(json, "stack", '{');
		json_totals(json, "kept", &part->row_kept);
		json_open(json, "frames", '[');
		view_frames(json->view, part->row, frames);
		for (size_t i = 0; i < frames->count; i++) {
			json_open_frame(json, &frames->items[i]);
			json_close(json, '}');
		}
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, '}');
}

void report_marks_json(struct out *out, const struct report *report)
{
	const struct view *view = report->views;
	const struct dump_sums *sums = view->comparison->dumps;
	struct json json = {
		.out = out, .is_first = true, .view = view, .comparison = view->comparison};
	bool *shown = find_shown(report);
	struct frames frames;

	frames_init(&frames);
	json_open(&json, NULL, '{');
	json_text(&json, "schema", SCHEMA);
	json_line(&json);
	json_text(&json, "tool", "hdiff " HSNAP_VERSION);
	json_line(&json);
	json_text(&json, "path", sums->id.path);
	if (sums->id.image)
		json_text(&json, "image", sums->id.image);
	json_number(&json, "pid", sums->id.pid);
	if (sums->quality.sample_bytes)
		json_number(&json, "sample_bytes", sums->quality.sample_bytes);
	json_bool(&json, "incomplete", sums->quality.is_incomplete);
	json_open_line(&json, "parts", '[');
	for (size_t i = 0; i < report->parts->count; i++) {
		if (shown[i])
			json_part(&json, &report->parts->items[i], &frames);
	}
	json_close(&json, ']');
	json_close(&json, '}');
	out_char(out, '\n');
	frames_release(&frames);
	free(shown);
}

/* ---------------------------------------------------------------- CSV */

static void csv_totals(struct csv *csv, const struct block_totals *totals)
{
	csv_number(csv, totals->requested_bytes);
	csv_number(csv, totals->block_count);
}

/* Writes the function that kept most, with its place, as in the text. */
static void csv_stack(struct csv *csv, const struct mark_part *part, struct frames *frames)
{
	char space[ROW_WORDS_BYTES];

	csv_totals(csv, &part->row_kept);
	if (part->row == MARK_NO_ROW) {
		csv_empty(csv, 3);
		return;
	}
	naming_frames(&csv->view->naming, part->row, frames);
	strip_frames(csv->report->strip, frames);
	if (!frames->count) {
		csv_text(csv, report_row_words(&csv->comparison->rows[part->row], space));
		csv_empty(csv, 2);
		return;
	}
	buf_clear(&csv->field);
	clean_frame(&csv->field, &frames->items[0], true);
	csv_field(csv);
	csv_name(csv, frames->items[0].file);
	csv_known(csv, frames->items[0].line);
}

void report_marks_csv(struct out *out, const struct report *report)
{
	struct csv csv = {.out = out,
		.is_first = true,
		.report = report,
		.view = report->views,
		.comparison = report->views->comparison};
	const uint64_t sample = csv.comparison->dumps->quality.sample_bytes;
	bool *shown = find_shown(report);
	struct frames frames;

	frames_init(&frames);
	buf_init(&csv.field);
	csv_columns(&csv, "mark,from_ms,to_ms,kept_bytes,kept_count,left_bytes,left_count,"
			  "transient_bytes,transient_count,peak_bytes,stack_bytes,stack_count,"
			  "function,file,line");
	if (sample)
		csv_columns(&csv, "sample_bytes");
	csv_end(&csv);
	for (size_t i = 0; i < report->parts->count; i++) {
		const struct mark_part *part = &report->parts->items[i];

		if (!shown[i])
			continue;
		csv_name(&csv, part->label);
		csv_number(&csv, part->from_ms);
		csv_number(&csv, part->to_ms);
		csv_totals(&csv, &part->kept);
		csv_totals(&csv, &part->left);
		csv_totals(&csv, &part->transient);
		csv_number(&csv, part->peak_bytes);
		csv_stack(&csv, part, &frames);
		if (sample)
			csv_number(&csv, sample);
		csv_end(&csv);
	}
	buf_release(&csv.field);
	frames_release(&frames);
	free(shown);
}
