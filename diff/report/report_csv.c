/* The CSV report. man/hdiff-csv.5 documents it and must change with this file. */
#include <inttypes.h>
#include <math.h>

#include "diff/report/clean.h"
#include "diff/report/csv.h"
#include "diff/report/numbers.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

/* ---------------------------------------------------------------- columns of a trend */

/* Writes the names of the first columns, which contain the process of the series and its trend. For
 * groups, the trend of `self` precedes the trend of `total`. */
static void csv_trend_columns(struct csv *csv, bool is_grouped)
{
	csv_process_columns(csv);
	if (is_grouped)
		csv_columns(csv, "self_verdict,self_bytes_per_hour,self_low_bytes_per_hour,"
				 "self_high_bytes_per_hour,self_blocks_per_hour,"
				 "self_net_bytes,self_net_blocks");
	csv_columns(csv, "verdict,bytes_per_hour,low_bytes_per_hour,high_bytes_per_hour,"
			 "blocks_per_hour,net_bytes,net_blocks");
}

static void csv_trend(struct csv *csv, const struct trend *trend)
{
	csv_text(csv, trend_verdict_name(trend->verdict));
	if (report_has_rates(csv->comparison)) {
		csv_fraction(csv, trend->bytes_per_hour);
		csv_fraction(csv, trend->low_bytes_per_hour);
		csv_fraction(csv, trend->high_bytes_per_hour);
		csv_fraction(csv, csv->comparison->lacks_blocks ? NAN : trend->blocks_per_hour);
	} else {
		csv_empty(csv, 4);
	}
	csv_signed(csv, trend->net_bytes);
	if (csv->comparison->lacks_blocks)
		csv_empty(csv, 1);
	else
		csv_signed(csv, trend->net_blocks);
}

/* Writes the sums of each snapshot of the current series. The fields for snapshots of other series
 * are empty. */
static void csv_series(struct csv *csv, const struct block_totals *sums)
{
	size_t before = csv_snapshot_count(csv, 0, csv->series);
	size_t behind = csv_snapshot_count(csv, csv->series + 1, csv->report->view_count);
	size_t count = csv->comparison->dump_count;

	csv_empty(csv, before);
	for (size_t i = 0; i < count; i++)
		csv_number(csv, sums[i].requested_bytes);
	csv_empty(csv, behind + before);
	for (size_t i = 0; i < count && !csv->comparison->lacks_blocks; i++)
		csv_number(csv, sums[i].block_count);
	csv_empty(csv, csv->comparison->lacks_blocks ? count : 0);
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
	write_sums(csv, now->block_count, old->block_count, !csv->comparison->lacks_blocks);
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

/* Writes heaps in the same form as in rows. Heaps are separated by commas, because their names
 * contain blanks. */
static void write_heaps(struct csv *csv, const struct window_sums *sums)
{
	buf_clear(&csv->field);
	buf_add_text(&csv->field, "");
	for (size_t i = 0; i < sums->heap_count; i++) {
		buf_add_text(&csv->field, i ? ", " : "");
		csv_add_heap(&csv->field, sums->heaps[i]);
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
	csv_heap(csv, row->heap);
	write_ids(csv, row);
	csv_name(csv, frame_module(first));
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

	buf_init(&csv.field);
	if (report->style.shows_heaps) {
		csv_balance(&csv);
		buf_release(&csv.field);
		return;
	}
	frames_init(&frames);
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
