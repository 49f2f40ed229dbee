/* man/hdiff-json.5 says what all this means: what changes here changes there. */
#include "core/base/parse.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

/* ---------------------------------------------------------------- sums */

void json_census(
	struct json *json, const char *key, const struct block_totals *census, bool has_overhead)
{
	json_open(json, key, '{');
	json_number(json, "bytes", census->requested_bytes);
	json_number(json, "blocks", census->block_count);
	if (has_overhead)
		json_number(json, "overhead", census->overhead_bytes);
	else
		json_null(json, "overhead");
	json_close(json, '}');
}

void json_change(struct json *json, const struct change *change, bool has_overhead)
{
	const struct block_totals *new = &change->new, *old = &change->old;

	json_census(json, "old", old, has_overhead);
	json_census(json, "new", new, has_overhead);
	json_open(json, "growth", '{');
	json_growth(json, "bytes", new->requested_bytes, old->requested_bytes);
	json_growth(json, "blocks", new->block_count, old->block_count);
	if (has_overhead)
		json_growth(json, "overhead", new->overhead_bytes, old->overhead_bytes);
	else
		json_null(json, "overhead");
	json_close(json, '}');
}

static void put_total(
	struct json *json, const char *key, const struct change *change, bool has_overhead)
{
	json_line(json);
	json_open(json, key, '{');
	json_change(json, change, has_overhead);
	json_close(json, '}');
}

void json_totals(struct json *json, const struct view *view)
{
	const struct comparison *comparison = view->comparison;
	bool rows_have = report_rows_have_overhead(comparison);
	struct change left_out = report_left_out(view);

	json_line(json);
	json_open(json, "totals", '{');
	put_total(json, "all", &view->all, comparison->has_overhead);
	put_total(json, "selected", &view->selected, report_has_overhead(view));
	put_total(json, "suppressed", &view->suppressed, rows_have);
	put_total(json, "left_out", &left_out, rows_have);
	if (comparison->hides_reserved)
		put_total(json, "reserved", &comparison->reserved, true);
	json_close(json, '}');
}

/* ---------------------------------------------------------------- dumps */

void json_date(struct json *json, const char *key, int64_t ms)
{
	char text[DATE_TEXT_BYTES];

	if (ms)
		json_text(json, key, date_text(ms, text));
}

void json_dump_time(struct json *json, const struct dump_sums *dump)
{
	char text[DATE_TEXT_BYTES];

	if (*report_dump_time(dump, text))
		json_text(json, dump->has_wall_time ? "local_time" : "time", text);
}

/* What a file lacks. */
static void json_lacks(struct json *json, bool is_cut, const char *const *warnings, size_t count)
{
	json_bool(json, "cut", is_cut);
	json_number(json, "warning_count", count);
	json_open(json, "warnings", '[');
	for (size_t i = 0; i < count && i < WARNINGS_MAX; i++)
		json_text(json, NULL, warnings[i]);
	json_close(json, ']');
}

void json_dump_state(struct json *json, const struct dump_sums *dump)
{
	if (dump->sample_bytes)
		json_number(json, "sample_bytes", dump->sample_bytes);
	if (dump->is_attached)
		json_census(json, "before_attaching", &dump->before, false);
	json_lacks(json, dump->is_cut, dump->warnings, dump->warning_count);
}

/* ---------------------------------------------------------------- rows */

void json_row_names(struct json *json, const struct row *row)
{
	json_text(json, "kind", report_row_kind(row->kind));
	if (heap_name(row->heap))
		json_text(json, "heap", heap_name(row->heap));
	else if (row->heap)
		json_hex(json, "heap", row->heap);
	json_open(json, "ids", '[');
	for (size_t i = 0; i < row->id_count; i++)
		json_text(json, NULL, row->ids[i]);
	json_close(json, ']');
}

static void put_frame(struct json *json, const struct frame *frame)
{
	json_open(json, NULL, '{');
	if (frame->module)
		json_text(json, "module", frame->module);
	if (frame->function)
		json_text(json, "function", frame->function);
	/* In a function 0 is not known, in a module it is a place. */
	if (frame->offset_bytes || (frame->module && !frame->function))
		json_hex(json, "offset", frame->offset_bytes);
	if (frame->has_addr)
		json_hex(json, "address", frame->addr);
	if (frame->file)
		json_text(json, "file", frame->file);
	if (frame->line)
		json_number(json, "line", frame->line);
	if (frame->is_inline)
		json_bool(json, "inline", true);
	json_close(json, '}');
}

static void put_frames(struct json *json, const char *key, const struct frame *items, size_t count)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < count; i++)
		put_frame(json, &items[i]);
	json_close(json, ']');
}

static void put_candidates(struct json *json, const struct frames *frames)
{
	size_t from = 0;

	json_open(json, "candidates", '[');
	for (size_t i = 0; i <= frames->part_count; i++) {
		size_t end = i < frames->part_count ? frames->part_at[i] : frames->count;

		put_frames(json, NULL, frames->items + from, end - from);
		from = end;
	}
	json_close(json, ']');
}

void json_row_frames(
	struct json *json, const struct view *view, uint32_t number, struct frames *frames)
{
	const struct row *row = &view->comparison->rows[number];

	if (view_frames(view, number, frames)) {
		err_set(&json->out->err, ERR_NOMEM, NULL, NULL);
		return;
	}
	if (row->kind == ROW_ONE_OF)
		json_number(json, "candidate_count", row->candidate_count);
	if (row->kind == ROW_AMBIGUOUS)
		put_candidates(json, frames);
	else
		put_frames(json, "frames", frames->items, frames->count);
}

/* ---------------------------------------------------------------- the view */

void json_asked(struct json *json, const struct view *view)
{
	json_line(json);
	json_text(json, "group", report_group_kind(view->group));
	json_line(json);
	json_text(json, "frame_order", view->is_inverted ? "outermost_first" : "innermost_first");
}

void json_counts(struct json *json, const struct view *view)
{
	json_line(json);
	json_number(json, "row_count", view->row_count);
	json_line(json);
	json_number(json, "suppressed_count", view->suppressed_count);
	if (view->group != GROUP_STACK) {
		json_line(json);
		json_number(json, "group_count", view->group_count);
	}
	json_line(json);
	json_number(json, "shown_count", view->shown_count);
}

/* man/hdiff-json.5 says what all this means: what changes here changes there. */

#define SCHEMA "hdiff/1"

struct json_report {
	struct json json;
	const struct view *view;
	const struct comparison *comparison;
};

/* ---------------------------------------------------------------- inputs */

static void put_dump(struct json *json, const char *role, const struct dump_sums *dump)
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
		put_dump(json, report_dump_role(comparison, i), &comparison->dumps[i]);
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
	json_change(json, &change, report_rows_have_overhead(report->comparison));
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
	bool has_overhead = report_rows_have_overhead(report->comparison);
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
