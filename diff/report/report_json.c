/* man/hdiff-json.5 says what all this means: what changes here changes there. */
#include "diff/report/report.h"

#include "diff/report/json_parts.h"
#include "diff/report/report_json_trend.h"
#include "diff/report/report_parts.h"

#define SCHEMA "hdiff/1"

struct json_report {
	struct json json;
	const struct view *view;
	const struct comparison *comparison;
};

/* ---------------------------------------------------------------- inputs */

static void put_dump(struct json *json, const char *role, const struct sums *dump)
{
	json_line(json);
	json_open(json, NULL, '{');
	json_text(json, "role", role);
	json_text(json, "path", dump->path);
	if (dump->image)
		json_text(json, "image", dump->image);
	if (dump->pid)
		json_number(json, "pid", dump->pid);
	json_date(json, "start", dump->start_ms);
	json_dump_time(json, dump);
	json_dump_state(json, dump);
	json_close(json, '}');
}

static void put_read(struct json *json, const struct comparison *comparison)
{
	json_line(json);
	json_open(json, NULL, '{');
	json_text(json, "role", "comparison");
	json_text(json, "path", comparison->read_from ? comparison->read_from : "");
	json_lacks(json, comparison->is_cut, comparison->warnings, comparison->warning_count);
	json_close(json, '}');
}

static void put_inputs(struct json_report *report)
{
	const struct comparison *comparison = report->comparison;
	struct json *json = &report->json;

	json_line(json);
	json_open(json, "inputs", '[');
	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++)
		put_dump(json, dump_role(comparison, i), &comparison->dumps[i]);
	if (!comparison->dumps)
		put_read(json, comparison);
	json_close(json, ']');
}

/* ---------------------------------------------------------------- rows */

static void put_row(struct json_report *report, uint32_t number, struct frames *frames)
{
	const struct row *row = &report->comparison->rows[number];
	struct change change = row_change(report->comparison, row);
	struct json *json = &report->json;

	json_line(json);
	json_open(json, NULL, '{');
	json_row_names(json, row);
	json_change(json, &change, rows_have_overhead(report->comparison));
	json_row_frames(json, report->view, number, frames);
	json_close(json, '}');
}

static void put_rows(struct json_report *report)
{
	struct frames frames;

	frames_init(&frames);
	json_line(&report->json);
	json_open(&report->json, "rows", '[');
	for (size_t i = 0; i < report->view->shown_count && !report->json.out->err.code; i++)
		put_row(report, report->view->rows[i], &frames);
	json_close(&report->json, ']');
	frames_release(&frames);
}

static void put_groups(struct json_report *report)
{
	bool has_overhead = rows_have_overhead(report->comparison);
	const struct view *view = report->view;
	struct json *json = &report->json;

	json_line(json);
	json_open(json, "groups", '[');
	for (size_t i = 0; i < view->shown_count && !json->out->err.code; i++) {
		json_line(json);
		json_open(json, NULL, '{');
		json_text(json, "name", view->groups[i].name);
		json_open(json, "self", '{');
		json_change(json, &view->groups[i].self, has_overhead);
		json_close(json, '}');
		json_open(json, "total", '{');
		json_change(json, &view->groups[i].total, has_overhead);
		json_close(json, '}');
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* ---------------------------------------------------------------- all of it */

static void put_about(struct json_report *report)
{
	const struct view *view = report->view;
	struct json *json = &report->json;

	json_text(json, "schema", SCHEMA);
	json_line(json);
	json_text(json, "tool", "hdiff " HSNAP_VERSION);
	put_inputs(report);
	json_asked(json, view);
	json_line(json);
	json_bool(json, "filtered", view->is_filtered);
	json_totals(json, view);
}

void report_json(struct out *out, const struct report *asked)
{
	const struct view *view = asked->views[0];
	struct json_report report = {.view = view, .comparison = view->comparison};

	if (report_is_trend(asked)) {
		report_json_trend(out, asked);
		return;
	}
	/* Of asked->style nothing is used: numbers are decimal in JSON. */
	json_init(&report.json, out);
	json_open(&report.json, NULL, '{');
	put_about(&report);
	json_counts(&report.json, view);
	if (view->group == GROUP_STACK)
		put_rows(&report);
	else
		put_groups(&report);
	json_close(&report.json, '}');
	out_char(out, '\n');
}
