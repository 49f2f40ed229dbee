/* Fields of a CSV report: numbers, and texts that are quoted if necessary. */
#include "diff/report/csv.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"

void csv_comma(struct csv *csv)
{
	if (!csv->is_first)
		out_char(csv->out, ',');
	csv->is_first = false;
}

/* Returns true if a spreadsheet would execute the text as a formula, or if the text begins with an
 * apostrophe, which a spreadsheet would remove. The last four signs are full-width forms, which
 * some spreadsheets also accept. */
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

void csv_text(struct csv *csv, const char *text)
{
	const char *quote;

	csv_comma(csv);
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

void csv_field(struct csv *csv)
{
	csv_text(csv, csv->field.data);
}

void csv_name(struct csv *csv, const char *text)
{
	buf_clear(&csv->field);
	clean_text(&csv->field, text ? text : "", false);
	csv_field(csv);
}

void csv_number(struct csv *csv, uint64_t value)
{
	csv_comma(csv);
	out_number(csv->out, value, 10, 0);
}

void csv_known(struct csv *csv, uint64_t value)
{
	csv_comma(csv);
	if (value)
		out_number(csv->out, value, 10, 0);
}

void csv_signed(struct csv *csv, int64_t value)
{
	uint64_t bits = (uint64_t)value;

	csv_comma(csv);
	out_signed(csv->out, value < 0 ? '-' : '\0', value < 0 ? 0 - bits : bits, 10, 0);
}

void csv_growth(struct csv *csv, uint64_t now, uint64_t old)
{
	struct growth growth = growth_of(now, old);

	csv_comma(csv);
	out_signed(csv->out, growth.sign == '-' ? '-' : '\0', growth.amount, 10, 0);
}

void csv_fraction(struct csv *csv, double value)
{
	char text[FRACTION_TEXT_BYTES];
	const char *digits = report_fraction(value, text);

	csv_comma(csv);
	out_text(csv->out, digits ? digits : "");
}

void csv_empty(struct csv *csv, size_t count)
{
	while (count--)
		csv_comma(csv);
}

void csv_columns(struct csv *csv, const char *names)
{
	csv_comma(csv);
	out_text(csv->out, names);
}

void csv_end(struct csv *csv)
{
	out_text(csv->out, "\r\n");
	csv->is_first = true;
}

void csv_add_heap(struct buf *field, uint64_t heap)
{
	if (heap_name(heap))
		buf_add_text(field, heap_name(heap));
	else
		buf_printf(field, "0x%" PRIX64, heap);
}

void csv_heap(struct csv *csv, uint64_t heap)
{
	buf_clear(&csv->field);
	buf_add_text(&csv->field, "");
	if (heap)
		csv_add_heap(&csv->field, heap);
	csv_field(csv);
}

void csv_process_columns(struct csv *csv)
{
	csv_columns(csv, "series,image,pid,start");
}

void csv_process(struct csv *csv)
{
	const struct dump_sums *first = csv->comparison->dumps;
	char text[DATE_TEXT_BYTES];

	csv_number(csv, csv->view->series_number);
	csv_name(csv, first->id.image);
	csv_known(csv, first->id.pid);
	csv_text(csv, first->id.start_ms ? date_text(first->id.start_ms, text) : "");
}

void csv_snapshot_columns(struct csv *csv, const char *word)
{
	for (size_t series = 0; series < csv->report->view_count; series++) {
		const struct comparison *comparison = csv->report->views[series].comparison;

		for (size_t i = 0; i < comparison->dump_count; i++) {
			const struct dump_sums *dump = &comparison->dumps[i];
			char time[DATE_TEXT_BYTES];
			bool is_known = *report_dump_time(dump, time);

			buf_clear(&csv->field);
			buf_printf(&csv->field, "%s ", word);
			clean_text(&csv->field, is_known ? time : dump->id.path, true);
			csv_field(csv);
		}
	}
}

size_t csv_snapshot_count(const struct csv *csv, size_t from, size_t end)
{
	size_t count = 0;

	for (size_t i = from; i < end; i++)
		count += csv->report->views[i].comparison->dump_count;
	return count;
}
