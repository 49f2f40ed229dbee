/* man/hdiff-csv.5 says what all this means: what changes here changes there. */
#include "diff/report/csv_trend.h"

#include "core/date.h"
#include "diff/report/report_parts.h"

/* ---------------------------------------------------------------- before */

void csv_trend_columns(struct csv *csv, bool is_grouped)
{
	csv_columns(csv, "series,image,pid,start");
	if (is_grouped)
		csv_columns(csv, "self_verdict,self_bytes_per_hour,self_low_bytes_per_hour,"
				 "self_high_bytes_per_hour,self_blocks_per_hour,"
				 "self_net_bytes,self_net_blocks");
	csv_columns(csv, "verdict,bytes_per_hour,low_bytes_per_hour,high_bytes_per_hour,"
			 "blocks_per_hour,net_bytes,net_blocks");
}

int csv_process(struct csv *csv, const struct view *view)
{
	const struct sums *first = view->comparison->dumps;
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

void csv_trend(struct csv *csv, const struct view *view, const struct trend *trend)
{
	csv_text(csv, trend_verdict_name(trend->verdict));
	if (has_rates(view->comparison)) {
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
static int put_column(struct csv *csv, const char *word, const struct sums *dump)
{
	char time[DATE_TEXT_BYTES];
	bool is_known = *dump_time(dump, time);
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

int csv_series_columns(struct csv *csv, const struct report *report)
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

void csv_series(
	struct csv *csv, const struct report *report, size_t series, const struct census *of)
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
