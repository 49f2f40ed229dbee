#include "diff/report/csv_write.h"

#include <string.h>

#include "core/text.h"
#include "diff/report/fraction.h"
#include "diff/report/report_parts.h"

void csv_init(struct csv *csv, struct out *out)
{
	*csv = (struct csv){.out = out, .is_first = true};
	buf_init(&csv->field);
}

void csv_release(struct csv *csv)
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

void csv_text(struct csv *csv, const char *text)
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

int csv_name(struct csv *csv, const char *text)
{
	int rc;

	buf_clear(&csv->field);
	rc = clean_text(&csv->field, text ? text : "", false);
	if (!rc)
		csv_text(csv, csv->field.data);
	return rc;
}

void csv_number(struct csv *csv, uint64_t value)
{
	put_comma(csv);
	out_number(csv->out, value, 10, 0);
}

void csv_signed(struct csv *csv, int64_t value)
{
	uint64_t bits = (uint64_t)value;

	put_comma(csv);
	out_signed(csv->out, value < 0 ? '-' : '\0', value < 0 ? 0 - bits : bits, 10, 0);
}

void csv_growth(struct csv *csv, uint64_t new, uint64_t old)
{
	struct growth growth = growth_of(new, old);

	put_comma(csv);
	out_signed(csv->out, growth.sign == '-' ? '-' : '\0', growth.amount, 10, 0);
}

void csv_fraction(struct csv *csv, double value)
{
	char text[FRACTION_TEXT_BYTES];
	const char *digits = fraction_text(value, text);

	put_comma(csv);
	out_text(csv->out, digits ? digits : "");
}

void csv_empty(struct csv *csv, size_t count)
{
	while (count--)
		put_comma(csv);
}

void csv_columns(struct csv *csv, const char *names)
{
	put_comma(csv);
	out_text(csv->out, names);
}

void csv_end(struct csv *csv)
{
	out_text(csv->out, "\r\n");
	csv->is_first = true;
}
