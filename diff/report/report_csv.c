/* The CSV report. man/hdiff-csv.5 documents it and must change with this file. */
#include <inttypes.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

/* CSV output (RFC 4180). A text that a spreadsheet would execute gets an apostrophe before it.
 * Output errors are stored in `out`. */
struct csv {
	struct out *out;
	struct buf field; /* scratch, for composing a field */
	bool is_first; /* no field of the current record has been written yet */
	const struct report *report;
	size_t series; /* index of the current view */
	const struct view *view;
	const struct comparison *comparison;
	bool is_trend, has_sample; /* optional columns */
};

static void write_comma(struct csv *csv)
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

/* Writes a sanitized text. Quotes it if necessary, and adds an apostrophe if it could be
 * executed. */
static void csv_text(struct csv *csv, const char *text)
{
	const char *quote;

	write_comma(csv);
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

static void csv_field(struct csv *csv)
{
	csv_text(csv, csv->field.data);
}

/* Writes any text, sanitized. Writes an empty field for NULL. */
static void csv_name(struct csv *csv, const char *text)
{
	buf_clear(&csv->field);
	clean_text(&csv->field, text ? text : "", false);
	csv_field(csv);
}

static void csv_number(struct csv *csv, uint64_t value)
{
	write_comma(csv);
	out_number(csv->out, value, 10, 0);
}

/* Writes a number. Writes an empty field for 0, which means unknown. */
static void csv_known(struct csv *csv, uint64_t value)
{
	write_comma(csv);
	if (value)
		out_number(csv->out, value, 10, 0);
}

static void csv_signed(struct csv *csv, int64_t value)
{
	uint64_t bits = (uint64_t)value;

	write_comma(csv);
	out_signed(csv->out, value < 0 ? '-' : '\0', value < 0 ? 0 - bits : bits, 10, 0);
}

/* Writes new - old as a signed number. */
static void csv_growth(struct csv *csv, uint64_t now, uint64_t old)
{
	struct growth growth = growth_of(now, old);

	write_comma(csv);
	out_signed(csv->out, growth.sign == '-' ? '-' : '\0', growth.amount, 10, 0);
}

/* Writes a number like report_fraction(), or an empty field if the number is not finite. */
static void csv_fraction(struct csv *csv, double value)
{
	char text[FRACTION_TEXT_BYTES];
	const char *digits = report_fraction(value, text);

	write_comma(csv);
	out_text(csv->out, digits ? digits : "");
}

static void csv_empty(struct csv *csv, size_t count)
{
	while (count--)
		write_comma(csv);
}

/* Writes column names: plain text, separated by commas. */
static void csv_columns(struct csv *csv, const char *names)
{
	write_comma(csv);
	out_text(csv->out, names);
}

static void csv_end(struct csv *csv)
{
	out_text(csv->out, "\r\n");
	csv->is_first = true;
}

/* ---------------------------------------------------------------- columns of a trend */

/* Writes the names of the first columns, which contain the process of the series and its trend. For
 * groups, the trend of `self` precedes the trend of `total`. */
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

static void csv_process(struct csv *csv)
{
	const struct dump_sums *first = csv->comparison->dumps;
	char text[DATE_TEXT_BYTES];

	csv_number(csv, csv->view->series_number);
	csv_name(csv, first->id.image);
	csv_known(csv, first->id.pid);
	csv_text(csv, first->id.start_ms ? date_text(first->id.start_ms, text) : "");
}

static void csv_trend(struct csv *csv, const struct trend *trend)
{
	csv_text(csv, trend_verdict_name(trend->verdict));
	if (report_has_rates(csv->comparison)) {
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

/* Writes the names of the last columns, one for each snapshot of each series. A name consists of
 * `word` and the snapshot's time. If the time is unknown, the name contains the snapshot's path
 * instead. */
static void csv_snapshot_columns(struct csv *csv, const char *word)
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

/* Returns the number of snapshots in series [from, end). */
static size_t snapshot_count(const struct report *report, size_t from, size_t end)
{
	size_t count = 0;

	for (size_t i = from; i < end; i++)
		count += report->views[i].comparison->dump_count;
	return count;
}

/* Writes the sums of each snapshot of the current series. The fields for snapshots of other series
 * are empty. */
static void csv_series(struct csv *csv, const struct block_totals *sums)
{
	size_t before = snapshot_count(csv->report, 0, csv->series);
	size_t behind = snapshot_count(csv->report, csv->series + 1, csv->report->view_count);
	size_t count = csv->comparison->dump_count;

	csv_empty(csv, before);
	for (size_t i = 0; i < count; i++)
		csv_number(csv, sums[i].requested_bytes);
	csv_empty(csv, behind + before);
	for (size_t i = 0; i < count; i++)
		csv_number(csv, sums[i].block_count);
	csv_empty(csv, behind);
}

/* ---------------------------------------------------------------- sums */

/* Writes growth, NEW and OLD of a sum, or empty fields if unknown. */
static void write_sums(struct csv *csv, uint64_t now, uint64_t old, bool is_known)
{
	if (!is_known) {
		csv_empty(csv, 3);
		return;
	}
	csv_growth(csv, now, old);
	csv_number(csv, now);
	csv_number(csv, old);
}

static void write_change(struct csv *csv, const struct change *change)
{
	const struct block_totals *now = &change->now, *old = &change->old;

	write_sums(csv, now->requested_bytes, old->requested_bytes, true);
	write_sums(csv, now->block_count, old->block_count, true);
	write_sums(csv, now->overhead_bytes, old->overhead_bytes,
		report_rows_have_overhead(csv->comparison));
}

/* Returns the largest `sample_bytes` of the dumps, or 0 if figures are not estimates. */
static uint64_t sample_bytes(const struct comparison *comparison)
{
	uint64_t most = 0;

	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++) {
		if (comparison->dumps[i].quality.sample_bytes > most)
			most = comparison->dumps[i].quality.sample_bytes;
	}
	return most;
}

/* ---------------------------------------------------------------- stacks */

static void add_frames(struct csv *csv, const struct frames *frames)
{
	const char *between = csv->view->is_inverted ? " -> " : " <- ";
	size_t part = 0;

	for (size_t i = 0; i < frames->count; i++) {
		bool starts = part < frames->part_count && frames->part_at[part] <= i;

		while (part < frames->part_count && frames->part_at[part] <= i)
			part++;
		if (i)
			buf_add_text(&csv->field, starts ? " | " : between);
		clean_frame(&csv->field, &frames->items[i], false);
	}
}

static void write_stack(struct csv *csv, const struct row *row, const struct frames *frames)
{
	char space[ROW_WORDS_BYTES];

	buf_clear(&csv->field);
	if (!frames->count)
		buf_add_text(&csv->field, report_row_words(row, space));
	add_frames(csv, frames);
	csv_field(csv);
}

/* ---------------------------------------------------------------- windows */

static const char window_columns[] =
	"ai_bytes,aifo_bytes,aifi_bytes,aofi_bytes,aofo_bytes,"
	"ai_count,aifo_count,aifi_count,aofi_count,aofo_count,"
	"allocated_per_second,peak_bytes,peak_ms,first_allocated_ms,last_allocated_ms,"
	"first_freed_ms,last_freed_ms,shortest_life_ms,mean_life_ms,median_life_ms,longest_life_ms,"
	"freed_by_stacks,freed_by_bytes,freed_by_count,freed_by,threads,heaps";

static void write_span(struct csv *csv, const struct time_span *span)
{
	if (span->first_ms > span->last_ms) {
		csv_empty(csv, 2);
		return;
	}
	csv_number(csv, span->first_ms);
	csv_number(csv, span->last_ms);
}

/* Appends a heap's address with a prefix. Without the prefix, spreadsheets would read 1E5 as a
 * number. */
static void add_heap(struct buf *field, uint64_t heap)
{
	if (heap_name(heap))
		buf_add_text(field, heap_name(heap));
	else
		buf_printf(field, "0x%" PRIX64, heap);
}

/* Writes heaps in the same form as in rows. Heaps are separated by commas, because their names
 * contain blanks. */
static void write_heaps(struct csv *csv, const struct window_sums *sums)
{
	buf_clear(&csv->field);
	buf_add_text(&csv->field, "");
	for (size_t i = 0; i < sums->heap_count; i++) {
		buf_add_text(&csv->field, i ? ", " : "");
		add_heap(&csv->field, sums->heaps[i]);
	}
	csv_field(csv);
}

static void write_freed_by(struct csv *csv, const struct window_sums *sums)
{
	struct frames frames;

	if (!sums->freed_by) {
		csv_empty(csv, 4);
		return;
	}
	csv_number(csv, sums->freed_by_count);
	csv_number(csv, sums->freed_by_sum.requested_bytes);
	csv_number(csv, sums->freed_by_sum.block_count);
	frames_init(&frames);
	view_freed_by_frames(csv->view, sums, &frames);
	buf_clear(&csv->field);
	add_frames(csv, &frames);
	csv_field(csv);
	frames_release(&frames);
}

static void write_window_sums(struct csv *csv, const struct window_sums *sums)
{
	static const enum block_fate fates[] = {
		FATE_AI, FATE_AIFO, FATE_AIFI, FATE_AOFI, FATE_AOFO};
	const size_t count = sizeof(fates) / sizeof(*fates);

	for (size_t i = 0; i < count; i++)
		csv_number(csv, sums->by_fate[fates[i]].requested_bytes);
	for (size_t i = 0; i < count; i++)
		csv_number(csv, sums->by_fate[fates[i]].block_count);
	csv_fraction(csv, report_window_rate(csv->comparison, sums));
	csv_number(csv, sums->peak_bytes);
	csv_number(csv, sums->peak_ms);
	write_span(csv, &sums->allocated);
	write_span(csv, &sums->freed);
	if (sums->by_fate[FATE_AIFI].block_count) {
		csv_number(csv, sums->shortest_ms);
		csv_fraction(csv, report_window_life(sums));
		csv_number(csv, sums->median_ms);
		csv_number(csv, sums->longest_ms);
	} else {
		csv_empty(csv, 4);
	}
	write_freed_by(csv, sums);
	buf_clear(&csv->field);
	buf_add_text(&csv->field, "");
	for (size_t i = 0; i < sums->thread_count; i++)
		buf_printf(&csv->field, "%s%" PRIu64, i ? " " : "", sums->threads[i]);
	csv_field(csv);
	write_heaps(csv, sums);
}

/* Writes the last fields of a row or group and ends the record. */
static void end_record(struct csv *csv, size_t shown, const struct block_totals *sums)
{
	if (csv->view->window)
		write_window_sums(csv, &csv->view->window[shown + 1]);
	if (csv->has_sample)
		csv_known(csv, sample_bytes(csv->comparison));
	if (csv->is_trend)
		csv_series(csv, sums);
	csv_end(csv);
}

/* ---------------------------------------------------------------- rows */

static void write_heap(struct csv *csv, uint64_t heap)
{
	buf_clear(&csv->field);
	buf_add_text(&csv->field, "");
	if (heap)
		add_heap(&csv->field, heap);
	csv_field(csv);
}

static void write_ids(struct csv *csv, const struct row *row)
{
	buf_clear(&csv->field);
	buf_add_text(&csv->field, "");
	for (size_t i = 0; i < row->id_count; i++) {
		buf_add_text(&csv->field, i ? " BackTrace" : "BackTrace");
		clean_text(&csv->field, row->ids[i], false);
	}
	csv_field(csv);
}

static void write_row(struct csv *csv, size_t shown, struct frames *frames)
{
	uint32_t number = csv->view->rows[shown];
	const struct row *row = &csv->comparison->rows[number];
	struct change change = row_change(csv->comparison, row);
	const struct frame none = {0}, *first;

	view_frames(csv->view, number, frames);
	first = frames->count ? frames->items : &none;
	if (csv->is_trend) {
		csv_process(csv);
		csv_trend(csv, row_trend(csv->comparison, row));
	}
	write_change(csv, &change);
	csv_text(csv, report_row_kind(row->kind));
	write_heap(csv, row->heap);
	write_ids(csv, row);
	csv_name(csv, first->module);
	csv_name(csv, first->function);
	csv_name(csv, first->file);
	csv_known(csv, first->line);
	write_stack(csv, row, frames);
	end_record(csv, shown, row->totals);
}

static void write_group(struct csv *csv, size_t shown)
{
	const struct view_group_row *group = &csv->view->groups[shown];

	if (csv->is_trend) {
		csv_process(csv);
		csv_trend(csv, &group->self_trend);
		csv_trend(csv, &group->total_trend);
	}
	write_change(csv, &group->self);
	write_change(csv, &group->total);
	csv_text(csv, report_group_kind(csv->view->group));
	csv_name(csv, group->name);
	end_record(csv, shown, group->total_of);
}

/* ---------------------------------------------------------------- the report */

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

void report_csv(struct out *out, const struct report *report)
{
	/* report->style is not used, because numbers in CSV are always decimal. */
	struct csv csv = {.out = out,
		.is_first = true,
		.report = report,
		.is_trend = report->views[0].comparison->axis};
	bool is_grouped = report->views[0].group != GROUP_STACK;
	struct frames frames;

	frames_init(&frames);
	buf_init(&csv.field);
	for (size_t i = 0; i < report->view_count; i++)
		csv.has_sample |= sample_bytes(report->views[i].comparison) != 0;
	if (csv.is_trend)
		csv_trend_columns(&csv, is_grouped);
	csv_columns(&csv, is_grouped ? group_columns : row_columns);
	if (report->views[0].window)
		csv_columns(&csv, window_columns);
	if (csv.has_sample)
		csv_columns(&csv, "sample_bytes");
	if (csv.is_trend) {
		csv_snapshot_columns(&csv, "bytes");
		csv_snapshot_columns(&csv, "blocks");
	}
	csv_end(&csv);
	for (; csv.series < report->view_count; csv.series++) {
		csv.view = &report->views[csv.series];
		csv.comparison = csv.view->comparison;
		for (size_t i = 0; i < csv.view->shown_count && !out->err.code; i++) {
			if (is_grouped)
				write_group(&csv, i);
			else
				write_row(&csv, i, &frames);
		}
	}
	buf_release(&csv.field);
	frames_release(&frames);
}

/* ---------------------------------------------------------------- charts */

static void csv_use(struct csv *csv, struct use use)
{
	csv_number(csv, use.bytes);
	csv_number(csv, use.count);
}

/* Writes the labels of the marks up to `end_ms`. `at` is the number of the next mark. */
static void csv_marks(struct csv *csv, const struct chart *chart, uint64_t end_ms, size_t *at)
{
	const struct record_mark *mark;

	buf_clear(&csv->field);
	buf_add_text(&csv->field, "");
	while ((mark = chart_mark(chart, at, end_ms))) {
		if (csv->field.len)
			buf_add_text(&csv->field, "; ");
		clean_text(&csv->field, mark->label, true);
	}
	csv_field(csv);
}

static void write_over_time(struct csv *csv, const struct chart *chart)
{
	const struct use_over_time *over_time = chart->over_time;
	size_t mark = 0;

	csv_columns(csv, "time_ms,bytes,count,highest_bytes,highest_ms,allocated_bytes,"
			 "allocated_count,freed_bytes,freed_count");
	for (size_t k = 0; k < RECORD_MEMORIES; k++) {
		const char *name = use_memory_name(chart_memories[k]);

		write_comma(csv);
		out_printf(csv->out, "%s_bytes,%s_count", name, name);
	}
	csv_columns(csv, csv->has_sample ? "marks,sample_bytes" : "marks");
	csv_end(csv);
	for (size_t i = 0; i < over_time->span_count; i++) {
		const struct use_span *span = &over_time->spans[i];

		csv_number(csv, span->end_ms);
		csv_use(csv, use_sum(&over_time->window, span->end));
		csv_number(csv, span->highest_bytes);
		csv_number(csv, span->highest_ms);
		csv_use(csv, span->allocated);
		csv_use(csv, span->freed);
		for (size_t k = 0; k < RECORD_MEMORIES; k++)
			csv_use(csv, span->end[chart_memories[k]]);
		csv_marks(csv, chart, i + 1 < over_time->span_count ? span->end_ms : UINT64_MAX,
			&mark);
		if (csv->has_sample)
			csv_number(csv, chart->sums->quality.sample_bytes);
		csv_end(csv);
	}
}

static void write_sizes(struct csv *csv, const struct use_sizes *sizes, uint64_t sample)
{
	csv_columns(csv, "memory,from_bytes,to_bytes,allocated_bytes,allocated_count,live_bytes,"
			 "live_count");
	if (csv->has_sample)
		csv_columns(csv, "sample_bytes");
	csv_end(csv);
	for (size_t k = 0; k < RECORD_MEMORIES; k++) {
		for (size_t i = 0; i < USE_CLASSES; i++) {
			const struct use *allocated = &sizes->allocated[chart_memories[k]][i];
			const struct use *live = &sizes->live[chart_memories[k]][i];

			if (!allocated->count && !live->count)
				continue;
			csv_text(csv, use_memory_name(chart_memories[k]));
			csv_number(csv, use_class_bytes(i));
			csv_number(csv, use_class_bytes(i + 1) - 1);
			csv_use(csv, *allocated);
			csv_use(csv, *live);
			if (csv->has_sample)
				csv_number(csv, sample);
			csv_end(csv);
		}
	}
}

void chart_csv(struct out *out, const struct chart *chart)
{
	struct csv csv = {
		.out = out, .is_first = true, .has_sample = chart->sums->quality.sample_bytes != 0};

	buf_init(&csv.field);
	if (chart->over_time)
		write_over_time(&csv, chart);
	else
		write_sizes(&csv, chart->sizes, chart->sums->quality.sample_bytes);
	buf_release(&csv.field);
}
