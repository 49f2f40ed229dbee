/* Figures and names in the report for people: growth, rates, trends, and places in the source. */
#include "diff/report/report_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/dump/model.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"

void report_text_colour(struct text_report *text, const char *code)
{
	if (text->whole->style.is_coloured)
		out_printf(text->out, "\033[%sm", code);
}

void report_text_bytes(struct text_report *text, const struct change *change, unsigned width)
{
	struct growth growth = growth_of(change->now.requested_bytes, change->old.requested_bytes);
	char size[REPORT_SIZE_BYTES], word[REPORT_SIZE_BYTES + 1];

	snprintf(word, sizeof(word), "%s%s",
		text->is_single ? "" :
		growth.amount	? (growth.sign == '+' ? "+" : "-") :
				  "",
		report_size(growth.amount, size));
	if (growth.amount && !text->is_single)
		report_text_colour(text, growth.sign == '+' ? "31" : "36");
	out_printf(text->out, "%*s", (int)width, word);
	if (growth.amount && !text->is_single)
		report_text_colour(text, "0");
}

void report_text_blocks(struct text_report *text, const struct change *change, unsigned width)
{
	struct growth growth = growth_of(change->now.block_count, change->old.block_count);
	char count[REPORT_COUNT_BYTES], word[REPORT_COUNT_BYTES + 1];

	snprintf(word, sizeof(word), "%s%s",
		text->is_single || !growth.amount ? "" :
		growth.sign == '+'		  ? "+" :
						    "-",
		report_count(growth.amount, count));
	if (text->comparison->lacks_blocks)
		snprintf(word, sizeof(word), "?");
	/* A blank separates the columns even if the number is as wide as its column. */
	out_printf(text->out, width ? " %*s" : "%*s", width ? (int)width - 1 : 0, word);
}

void report_text_rate(
	struct text_report *text, const struct trend *trend, bool with_bounds, unsigned width)
{
	static const char units[] = "BKMGTPE";
	double rate = trend->bytes_per_hour, most = fabs(rate);
	char word[60], unit[5];
	unsigned power = 0;

	if (most < 1 && with_bounds)
		most = -trend->low_bytes_per_hour > trend->high_bytes_per_hour ?
			       -trend->low_bytes_per_hour :
			       trend->high_bytes_per_hour;
	for (; most >= 1023.95 && units[power + 1]; most /= 1024)
		power++;
	snprintf(unit, sizeof(unit), power ? "%ciB" : "%c", units[power]);
	snprintf(word, sizeof(word), "%s%s %s/h", rate >= 1 ? "+" : "",
		report_tenths(ldexp(rate, -10 * (int)power), (char[REPORT_SIZE_BYTES]){0}), unit);
	out_printf(text->out, "%*s", (int)width, word);
	if (!with_bounds)
		return;
	out_printf(text->out, " (%s to %s)",
		report_tenths(ldexp(trend->low_bytes_per_hour, -10 * (int)power),
			(char[REPORT_SIZE_BYTES]){0}),
		report_tenths(ldexp(trend->high_bytes_per_hour, -10 * (int)power),
			(char[REPORT_SIZE_BYTES]){0}));
}

void report_text_trend(
	struct text_report *text, const struct trend *trend, const struct block_totals *totals)
{
	out_text(text->out, trend_verdict_name(trend->verdict));
	if (report_has_rates(text->comparison)) {
		out_text(text->out, ", ");
		report_text_rate(text, trend, true, 0);
	}
	if (text->spark.style != SPARK_NONE)
		out_text(text->out, "  ");
	spark_print(text->out, &text->spark, totals);
	out_char(text->out, '\n');
}

void report_text_add_place(struct buf *word, const struct frame *frame)
{
	if (!frame->file || !frame->line)
		return;
	clean_text(word, module_path_base(frame->file), true);
	buf_printf(word, ":%" PRIu32, frame->line);
}

void report_text_add_function(struct buf *word, const struct frame *frame, bool with_module)
{
	struct frame shown = *frame;

	if (frame->function && !with_module && frame->file)
		shown.module = NULL;
	clean_frame(word, &shown, true);
}

void report_text_rest(struct text_report *text, const struct change *change)
{
	if (!text->comparison->lacks_rows) {
		report_text_sum(text, change);
		return;
	}
	report_text_bytes(text, change, 0);
	out_text(text->out, ", ? blocks");
}

void report_text_sum(struct text_report *text, const struct change *change)
{
	report_text_bytes(text, change, 0);
	out_text(text->out, ", ");
	report_text_blocks(text, change, 0);
	out_text(
		text->out, growth_of(change->now.block_count, change->old.block_count).amount == 1 ?
				   " block" :
				   " blocks");
}
