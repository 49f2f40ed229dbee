/* The balance and the heaps of a process as CSV, one figure per record. man/hdiff-csv.5 documents
 * them and must change with this file. */
#include "diff/query/balance_view.h"
#include "diff/query/heap_view.h"
#include "diff/report/csv.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"

static void write_start(struct csv *csv, uint64_t heap, const char *figure, bool is_count)
{
	if (csv->is_trend)
		csv_process(csv);
	csv_heap(csv, heap);
	csv_text(csv, figure);
	csv_text(csv, is_count ? "count" : "bytes");
}

/* Writes growth, NEW and OLD. An unknown figure is an empty field. */
static void write_values(
	struct csv *csv, uint64_t now, uint64_t old, bool is_now_known, bool is_old_known)
{
	if (is_now_known && is_old_known)
		csv_growth(csv, now, old);
	else
		csv_empty(csv, 1);
	if (is_now_known)
		csv_number(csv, now);
	else
		csv_empty(csv, 1);
	if (is_old_known)
		csv_number(csv, old);
	else
		csv_empty(csv, 1);
}

/* Writes the trend of a row and its value in each snapshot. The fields for snapshots of other
 * series are empty. */
static void write_series(struct csv *csv, const struct balance_row *row)
{
	if (row->has_trend) {
		csv_text(csv, trend_verdict_name(row->trend.verdict));
		if (report_has_rates(csv->comparison))
			csv_fraction(csv, row->trend.bytes_per_hour);
		else
			csv_empty(csv, 1);
	} else {
		csv_empty(csv, 2);
	}
	csv_empty(csv, csv_snapshot_count(csv, 0, csv->series));
	for (size_t i = 0; i < csv->comparison->dump_count; i++) {
		if (row->values[i] != BALANCE_UNKNOWN)
			csv_number(csv, row->values[i]);
		else
			csv_empty(csv, 1);
	}
	csv_empty(csv, csv_snapshot_count(csv, csv->series + 1, csv->report->view_count));
}

static void write_balance_row(struct csv *csv, const struct balance_row *row)
{
	const bool is_single = csv->comparison->dump_count == 1;
	const uint64_t now = row->values[csv->comparison->dump_count - 1];

	write_start(csv, 0, row->key, row->is_count);
	if (row->has_change && !is_single)
		write_values(csv, row->last, row->first, true, true);
	else
		write_values(csv, now, row->values[0], now != BALANCE_UNKNOWN,
			!is_single && row->values[0] != BALANCE_UNKNOWN);
	if (csv->is_trend)
		write_series(csv, row);
	csv_end(csv);
}

static void write_heap_figure(struct csv *csv, const struct heap_change *row, const char *figure,
	bool is_count, uint64_t now, uint64_t old, bool needs_space)
{
	const bool is_single = csv->comparison->dump_count == 1;

	write_start(csv, row->addr, figure, is_count);
	write_values(csv, now, old, row->is_now && (row->now.space.is_known || !needs_space),
		!is_single && row->is_old && (row->old.space.is_known || !needs_space));
	if (csv->is_trend)
		csv_empty(csv, 2 + csv_snapshot_count(csv, 0, csv->report->view_count));
	csv_end(csv);
}

static void write_heap(struct csv *csv, const struct heap_change *row)
{
	const struct heap_memory *now = &row->now, *old = &row->old;
	const struct heap_space *space = &now->space, *before = &old->space;
	const struct {
		const char *name;
		bool is_count, needs_space;
		uint64_t now, old;
	} figures[] = {
		{"committed", false, false, now->committed_bytes, old->committed_bytes},
		{"reserved", false, false, now->reserved_bytes, old->reserved_bytes},
		{"bytes", false, false, now->blocks.requested_bytes, old->blocks.requested_bytes},
		{"blocks", true, false, now->blocks.block_count, old->blocks.block_count},
		{"overhead", false, false, now->blocks.overhead_bytes, old->blocks.overhead_bytes},
		{"free", false, false, heap_free_bytes(now), heap_free_bytes(old)},
		{"largest_free", false, true, space->free_run_bytes, before->free_run_bytes},
		{"lfh_blocks", true, true, space->lfh.block_count, before->lfh.block_count},
		{"lfh_bytes", false, true, space->lfh.requested_bytes, before->lfh.requested_bytes},
		{"vs_blocks", true, true, space->vs.block_count, before->vs.block_count},
		{"vs_bytes", false, true, space->vs.requested_bytes, before->vs.requested_bytes},
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		write_heap_figure(csv, row, figures[i].name, figures[i].is_count, figures[i].now,
			figures[i].old, figures[i].needs_space);
}

void csv_balance(struct csv *csv)
{
	if (csv->is_trend)
		csv_process_columns(csv);
	csv_columns(csv, "heap,figure,unit,growth,new,old");
	if (csv->is_trend) {
		csv_columns(csv, "verdict,per_hour");
		csv_snapshot_columns(csv, "value");
	}
	csv_end(csv);
	for (; csv->series < csv->report->view_count; csv->series++) {
		csv->view = &csv->report->views[csv->series];
		csv->comparison = csv->view->comparison;
		for (size_t i = 0; i < csv->view->balance.count; i++)
			write_balance_row(csv, &csv->view->balance.rows[i]);
		for (size_t i = 0; i < csv->view->heaps.count; i++)
			write_heap(csv, &csv->view->heaps.rows[i]);
	}
}
