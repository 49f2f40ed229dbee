/* man/hdiff-json.5 says what all this means: what changes here changes there. */
#include "diff/report/report_parts.h"

#include "diff/match/row_series.h"

#define SCHEMA "hdiff-trend/1"

/* One series. */
struct json_series {
	struct json *json;
	const struct view *view;
	const struct comparison *comparison;
	bool has_rates;
};

/* ---------------------------------------------------------------- what a series says */

static void put_rate(struct json_series *series, const char *key, double rate)
{
	if (series->has_rates)
		json_fraction(series->json, key, rate);
	else
		json_null(series->json, key);
}

static void put_trend(struct json_series *series, const struct trend *trend)
{
	struct json *json = series->json;

	json_open(json, "trend", '{');
	json_text(json, "verdict", trend_verdict_name(trend->verdict));
	json_signed(json, "net_bytes", trend->net_bytes);
	json_signed(json, "net_blocks", trend->net_blocks);
	put_rate(series, "bytes_per_hour", trend->bytes_per_hour);
	put_rate(series, "low_bytes_per_hour", trend->low_bytes_per_hour);
	put_rate(series, "high_bytes_per_hour", trend->high_bytes_per_hour);
	put_rate(series, "blocks_per_hour", trend->blocks_per_hour);
	json_close(json, '}');
}

/* A number for each snapshot. of is NULL when they are all 0. */
static void put_sums(struct json_series *series, const struct block_totals *of)
{
	struct json *json = series->json;
	size_t count = series->comparison->dump_count;

	json_open(json, "bytes", '[');
	for (size_t i = 0; i < count; i++)
		json_number(json, NULL, of ? of[i].requested_bytes : 0);
	json_close(json, ']');
	json_open(json, "blocks", '[');
	for (size_t i = 0; i < count; i++)
		json_number(json, NULL, of ? of[i].block_count : 0);
	json_close(json, ']');
}

/* ---------------------------------------------------------------- snapshots */

/* Who the snapshots are of: the process that began at snapshot first. */
static void put_process(struct json_series *series, size_t first, size_t count)
{
	const struct dump_sums *dump = &series->comparison->dumps[first];
	struct json *json = series->json;

	json_line(json);
	json_open(json, NULL, '{');
	if (dump->image)
		json_text(json, "image", dump->image);
	if (dump->pid)
		json_number(json, "pid", dump->pid);
	json_date(json, "start", dump->start_ms);
	json_number(json, "first", first);
	json_number(json, "count", count);
	json_close(json, '}');
}

static void put_parts(struct json_series *series)
{
	const struct trend_axis *axis = series->comparison->axis;
	size_t first = 0;

	json_line(series->json);
	json_open(series->json, "parts", '[');
	for (size_t i = 0; i < axis->count; i++) {
		if (!axis_ends(axis, i))
			continue;
		put_process(series, first, i + 1 - first);
		first = i + 1;
	}
	json_close(series->json, ']');
}

static void put_snapshot(struct json_series *series, size_t i)
{
	const struct dump_sums *dump = &series->comparison->dumps[i];
	struct json *json = series->json;

	json_line(json);
	json_open(json, NULL, '{');
	json_text(json, "path", dump->path);
	json_dump_time(json, dump);
	json_census(json, "selected", &series->view->series[i], report_has_overhead(series->view));
	if (series->comparison->hides_reserved)
		json_census(json, "reserved", &dump->reserved, true);
	json_dump_state(json, dump);
	json_close(json, '}');
}

static void put_snapshots(struct json_series *series)
{
	json_line(series->json);
	json_open(series->json, "snapshots", '[');
	for (size_t i = 0; i < series->comparison->dump_count; i++)
		put_snapshot(series, i);
	json_close(series->json, ']');
}

/* ---------------------------------------------------------------- rows */

static void put_row(struct json_series *series, uint32_t number, struct frames *frames)
{
	const struct row *row = &series->comparison->rows[number];
	struct json *json = series->json;

	json_line(json);
	json_open(json, NULL, '{');
	json_row_names(json, row);
	put_trend(series, &row->trend);
	put_sums(series, row->of);
	json_row_frames(json, series->view, number, frames);
	json_close(json, '}');
}

static void put_rows(struct json_series *series)
{
	const struct view *view = series->view;
	struct frames frames;

	frames_init(&frames);
	json_line(series->json);
	json_open(series->json, "rows", '[');
	for (size_t i = 0; i < view->shown_count && !series->json->out->err.code; i++)
		put_row(series, view->rows[i], &frames);
	json_close(series->json, ']');
	frames_release(&frames);
}

static void put_part(struct json_series *series, const char *key, const struct change *change,
	const struct trend *trend, const struct block_totals *of)
{
	struct json *json = series->json;

	json_open(json, key, '{');
	json_change(json, change, report_rows_have_overhead(series->comparison));
	put_trend(series, trend);
	put_sums(series, of);
	json_close(json, '}');
}

static void put_group(struct json_series *series, const struct view_group_row *group)
{
	struct json *json = series->json;

	json_line(json);
	json_open(json, NULL, '{');
	json_text(json, "name", group->name);
	put_part(series, "self", &group->self, &group->self_trend, group->self_of);
	put_part(series, "total", &group->total, &group->total_trend, group->total_of);
	json_close(json, '}');
}

static void put_groups(struct json_series *series)
{
	const struct view *view = series->view;

	json_line(series->json);
	json_open(series->json, "groups", '[');
	for (size_t i = 0; i < view->shown_count && !series->json->out->err.code; i++)
		put_group(series, &view->groups[i]);
	json_close(series->json, ']');
}

/* ---------------------------------------------------------------- all of it */

static void put_series(struct json *json, const struct report *report, size_t i)
{
	const struct view *view = report->views[i];
	struct json_series series = {.json = json,
		.view = view,
		.comparison = view->comparison,
		.has_rates = report_has_rates(view->comparison)};

	json_line(json);
	json_open(json, NULL, '{');
	json_number(json, "number", view->series_number);
	put_parts(&series);
	put_snapshots(&series);
	json_line(json);
	json_bool(json, "filtered", view->is_filtered);
	json_totals(json, view);
	json_line(json);
	put_trend(&series, &view->trend);
	json_counts(json, view);
	if (view->group == GROUP_STACK)
		put_rows(&series);
	else
		put_groups(&series);
	json_close(json, '}');
}

static void put_left_out(struct json *json, const struct report *report)
{
	json_line(json);
	json_number(json, "left_out_file_count", report->left_out_count);
	json_open(json, "left_out_files", '[');
	for (size_t i = 0; i < report->left_out_count; i++)
		json_text(json, NULL, report->left_out[i]);
	json_close(json, ']');
}

void report_json_trend(struct out *out, const struct report *report)
{
	struct json json;

	json_init(&json, out);
	json_open(&json, NULL, '{');
	json_text(&json, "schema", SCHEMA);
	json_line(&json);
	json_text(&json, "tool", "hdiff " HSNAP_VERSION);
	json_asked(&json, report->views[0]);
	put_left_out(&json, report);
	json_line(&json);
	json_number(&json, "series_count", report->views[0]->series_count);
	json_line(&json);
	json_open(&json, "series", '[');
	for (size_t i = 0; i < report->view_count; i++)
		put_series(&json, report, i);
	json_close(&json, ']');
	json_close(&json, '}');
	out_char(out, '\n');
}
