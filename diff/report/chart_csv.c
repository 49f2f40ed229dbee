/* Charts of a recording as CSV. man/hdiff-csv.5 documents them and must change with this file. */
#include "diff/report/clean.h"
#include "diff/report/csv.h"
#include "diff/report/numbers.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

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

		csv_comma(csv);
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
