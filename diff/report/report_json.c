/* The JSON report. man/hdiff-json.5 documents it and must change with this file. */
#include <math.h>

#include "core/base/parse.h"
#include "diff/match/row_series.h"
#include "diff/report/json.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

#define SCHEMA "hdiff/1"
#define TREND_SCHEMA "hdiff-trend/1" /* man/hdiff-json.5, TRENDS */

/* ---------------------------------------------------------------- sums */

static void write_totals(struct json *json, const char *key, const struct block_totals *totals,
	bool has_blocks, bool has_overhead)
{
	json_open(json, key, '{');
	json_number(json, "bytes", totals->requested_bytes);
	json_known(json, "blocks", totals->block_count, has_blocks);
	json_known(json, "overhead", totals->overhead_bytes, has_overhead);
	json_close(json, '}');
}

/* Writes "old", "new" and "growth" in the object that the caller opened. A printed comparison
 * contains only the growth of overhead, but not its old and new value. */
static void write_change(
	struct json *json, const struct change *change, bool has_blocks, bool has_overhead)
{
	const struct block_totals *now = &change->now, *old = &change->old;
	bool has_ends = has_overhead && json->comparison->dumps;

	write_totals(json, "old", old, has_blocks, has_ends);
	write_totals(json, "new", now, has_blocks, has_ends);
	json_open(json, "growth", '{');
	json_growth(json, "bytes", now->requested_bytes, old->requested_bytes, true);
	json_growth(json, "blocks", now->block_count, old->block_count, has_blocks);
	json_growth(json, "overhead", now->overhead_bytes, old->overhead_bytes, has_overhead);
	json_close(json, '}');
}

static void write_share(struct json *json, const char *key, const struct change *change,
	bool has_blocks, bool has_overhead)
{
	json_open_line(json, key, '{');
	write_change(json, change, has_blocks, has_overhead);
	json_close(json, '}');
}

/* Writes the sums of all blocks, and the parts of this sum: selected, suppressed and left out. */
static void write_shares(struct json *json)
{
	const struct comparison *comparison = json->comparison;
	const struct view *view = json->view;
	bool rows_have = report_rows_have_overhead(comparison), has = !comparison->lacks_blocks,
	     has_all = has && !comparison->lacks_rows;
	struct change left_out = report_left_out(view);

	json_open_line(json, "totals", '{');
	write_share(json, "all", &view->all, has_all, comparison->has_overhead);
	write_share(json, "selected", &view->selected, has, report_has_overhead(view));
	write_share(json, "suppressed", &view->suppressed, has, rows_have);
	write_share(json, "left_out", &left_out, has_all, rows_have);
	if (comparison->hides_reserved)
		write_share(json, "reserved", &comparison->reserved, true, true);
	if (comparison->handles.old.block_count || comparison->handles.now.block_count)
		write_share(json, "handles", &comparison->handles, true, true);
	json_close(json, '}');
}

static void write_rate(struct json *json, const char *key, double rate)
{
	json_fraction(json, key, json->has_rates ? rate : NAN);
}

static void write_trend(struct json *json, const struct trend *trend)
{
	json_open(json, "trend", '{');
	json_text(json, "verdict", trend_verdict_name(trend->verdict));
	json_signed(json, "net_bytes", trend->net_bytes);
	if (json->comparison->lacks_blocks)
		json_known(json, "net_blocks", 0, false);
	else
		json_signed(json, "net_blocks", trend->net_blocks);
	write_rate(json, "bytes_per_hour", trend->bytes_per_hour);
	write_rate(json, "low_bytes_per_hour", trend->low_bytes_per_hour);
	write_rate(json, "high_bytes_per_hour", trend->high_bytes_per_hour);
	write_rate(json, "blocks_per_hour",
		json->comparison->lacks_blocks ? NAN : trend->blocks_per_hour);
	json_close(json, '}');
}

/* Writes a trend, and the sums of each snapshot. If `sums` is NULL, all sums are 0. */
static void write_series(
	struct json *json, const struct trend *trend, const struct block_totals *sums)
{
	size_t count = json->comparison->dump_count;

	write_trend(json, trend);
	if (json->series)
		return;
	json_open(json, "bytes", '[');
	for (size_t i = 0; i < count; i++)
		json_number(json, NULL, sums ? sums[i].requested_bytes : 0);
	json_close(json, ']');
	json_open(json, "blocks", '[');
	for (size_t i = 0; i < count; i++)
		json_known(json, NULL, sums ? sums[i].block_count : 0,
			!json->comparison->lacks_blocks);
	json_close(json, ']');
}

/* ---------------------------------------------------------------- dumps */

/* Writes whether the end of a file is missing, and the file's warnings. */
static void write_lacks(struct json *json, bool is_cut, const char *const *warnings, size_t count)
{
	json_bool(json, "cut", is_cut);
	json_number(json, "warning_count", count);
	json_open(json, "warnings", '[');
	for (size_t i = 0; i < count && i < WARNINGS_MAX; i++)
		json_text(json, NULL, warnings[i]);
	json_close(json, ']');
}

/* Writes "time" or "local_time", if known. */
static void write_time(struct json *json, const struct dump_sums *dump)
{
	char text[DATE_TEXT_BYTES];

	if (*report_dump_time(dump, text))
		json_text(json, dump->id.has_wall_time ? "local_time" : "time", text);
}

/* Writes limits of a dump's figures: sampling, older blocks, a missing end, and warnings. */
static void write_state(struct json *json, const struct dump_sums *dump)
{
	if (dump->quality.sample_bytes)
		json_number(json, "sample_bytes", dump->quality.sample_bytes);
	if (dump->is_attached && !dump->quality.sample_bytes)
		write_totals(json, "before_attaching", &dump->before, true, false);
	write_lacks(
		json, dump->quality.is_cut, dump->quality.warnings, dump->quality.warning_count);
}

static void write_process(struct json *json, const struct dump_sums *dump)
{
	char text[DATE_TEXT_BYTES];

	if (dump->id.image)
		json_text(json, "image", dump->id.image);
	if (dump->id.pid)
		json_number(json, "pid", dump->id.pid);
	if (dump->id.start_ms)
		json_text(json, "start", date_text(dump->id.start_ms, text));
}

static void write_window(struct json *json, const struct dump_sums *dump)
{
	if (dump->window.fate == FATE_LIVE)
		return;
	json_text(json, "class", block_fate_name(dump->window.fate));
	json_number(json, "from_ms", dump->window.from_ms);
	json_number(json, "to_ms", dump->window.born_ms);
	if (window_is_longer(&dump->window))
		json_number(json, "still_at_ms", dump->window.to_ms);
}

static void write_inputs(struct json *json)
{
	const struct comparison *comparison = json->comparison;

	json_open_line(json, "inputs", '[');
	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		json_open_line(json, NULL, '{');
		json_text(json, "role", report_dump_role(comparison, i));
		json_text(json, "path", dump->id.path);
		write_process(json, dump);
		write_time(json, dump);
		write_window(json, dump);
		write_state(json, dump);
		json_close(json, '}');
	}
	if (!comparison->dumps) {
		json_open_line(json, NULL, '{');
		json_text(json, "role", "comparison");
		json_text(json, "path", comparison->read_from ? comparison->read_from : "");
		write_lacks(
			json, comparison->is_cut, comparison->warnings, comparison->warning_count);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* Writes the processes of the snapshots. */
static void write_parts(struct json *json)
{
	const struct trend_axis *axis = json->comparison->axis;
	size_t first = 0;

	json_open_line(json, "parts", '[');
	for (size_t i = 0; i < axis->count; i++) {
		if (!axis_ends(axis, i))
			continue;
		json_open_line(json, NULL, '{');
		write_process(json, &json->comparison->dumps[first]);
		json_number(json, "first", first);
		json_number(json, "count", i + 1 - first);
		json_close(json, '}');
		first = i + 1;
	}
	json_close(json, ']');
}

static void write_snapshots(struct json *json)
{
	const struct comparison *comparison = json->comparison;

	json_open_line(json, "snapshots", '[');
	for (size_t i = 0; i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		json_open_line(json, NULL, '{');
		json_text(json, "path", dump->id.path);
		write_time(json, dump);
		write_totals(json, "selected", &json->view->series[i], !comparison->lacks_blocks,
			report_has_overhead(json->view));
		if (comparison->hides_reserved)
			write_totals(json, "reserved", &dump->reserved, true, true);
		write_state(json, dump);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* ---------------------------------------------------------------- rows */

static void write_contents(struct json *json, const struct row_contents *row, struct frames *frames)
{
	char data[2 * CONTENT_BYTES_MAX + 1];

	json_open(json, "contents", '[');
	for (size_t i = 0; i < row->count; i++) {
		const struct shown_content *shown = &row->items[i];

		json_open(json, NULL, '{');
		json_hex(json, "address", shown->content->addr);
		json_number(json, "bytes", shown->content->requested_bytes);
		data[0] = '\0';
		for (uint32_t k = 0; k < shown->content->len; k++)
			snprintf(data + 2 * k, 3, "%02X", shown->content->bytes[k]);
		json_text(json, "data", data);
		json_open(json, "words", '[');
		for (size_t k = 0; k < shown->word_count; k++) {
			const struct shown_word *word = &shown->words[k];
			bool is_named = view_word_frame(json->view, row->dump, word, frames);

			if (!word->to && !is_named)
				continue;
			json_open(json, NULL, '{');
			json_number(json, "offset", word->offset);
			if (word->to) {
				json_hex(json, "block", word->to->to);
				json_number(json, "bytes", word->to->requested_bytes);
				json_text(json, "id", word->to->stack);
			} else {
				json_frames(json, "frames", frames->items, frames->count);
			}
			json_close(json, '}');
		}
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void write_row_blocks(struct json *json, const struct row_blocks *blocks, bool has_age)
{
	if (json->view->has_sizes) {
		json_open(json, "sizes", '[');
		for (size_t i = 0; i < blocks->size_count; i++) {
			json_open(json, NULL, '{');
			json_number(json, "size", blocks->sizes[i].bytes);
			json_number(json, "old_blocks", blocks->sizes[i].old_count);
			json_number(json, "new_blocks", blocks->sizes[i].new_count);
			json_close(json, '}');
		}
		json_close(json, ']');
	}
	if (!has_age)
		return;
	json_open(json, "age", '{');
	json_some(json, "kept", &blocks->kept);
	json_some(json, "came", &blocks->came);
	json_some(json, "gone", &blocks->gone);
	json_close(json, '}');
}

static void write_candidates(struct json *json, const struct frames *frames)
{
	size_t from = 0;

	json_open(json, "candidates", '[');
	for (size_t i = 0; i <= frames->part_count; i++) {
		size_t end = i < frames->part_count ? frames->part_at[i] : frames->count;

		json_frames(json, NULL, frames->items + from, end - from);
		from = end;
	}
	json_close(json, ']');
}

static void write_row(struct json *json, size_t shown, struct frames *frames)
{
	uint32_t number = json->view->rows[shown];
	const struct row *row = &json->comparison->rows[number];
	struct change change = row_change(json->comparison, row);

	json_open_line(json, NULL, '{');
	json_text(json, "kind", report_row_kind(row->kind));
	if (row->heap)
		json_heap(json, "heap", row->heap);
	json_open(json, "ids", '[');
	for (size_t i = 0; i < row->id_count; i++)
		json_text(json, NULL, row->ids[i]);
	json_close(json, ']');
	if (json->comparison->axis)
		write_series(json, row_trend(json->comparison, row), row->totals);
	else
		write_change(json, &change, !json->comparison->lacks_blocks,
			report_rows_have_overhead(json->comparison));
	if (json->view->window)
		json_window(json, &json->view->window[shown + 1]);
	json_row_pinned(json, number);
	if (json->view->blocks)
		write_row_blocks(json, &json->view->blocks[shown],
			json->view->has_age && row->kind != ROW_STACKLESS);
	if (json->view->contents)
		write_contents(json, &json->view->contents[shown], frames);
	view_frames(json->view, number, frames);
	if (row->kind == ROW_ONE_OF)
		json_number(json, "candidate_count", row->candidate_count);
	if (row->id_stack_count > 1)
		json_number(json, "stack_count", row->id_stack_count);
	if (row->kind == ROW_AMBIGUOUS)
		write_candidates(json, frames);
	else
		json_frames(json, "frames", frames->items, frames->count);
	json_close(json, '}');
}

static void write_part(struct json *json, const char *key, const struct change *change,
	const struct trend *trend, const struct block_totals *sums)
{
	json_open(json, key, '{');
	write_change(json, change, !json->comparison->lacks_blocks,
		report_rows_have_overhead(json->comparison));
	if (json->comparison->axis)
		write_series(json, trend, sums);
	json_close(json, '}');
}

static void write_group(struct json *json, size_t shown)
{
	const struct view_group_row *group = &json->view->groups[shown];

	json_open_line(json, NULL, '{');
	json_text(json, "name", group->name);
	if (json->view->group == GROUP_THREAD)
		json_number(json, "thread", group->heap);
	write_part(json, "self", &group->self, &group->self_trend, group->self_of);
	write_part(json, "total", &group->total, &group->total_trend, group->total_of);
	if (json->view->window)
		json_window(json, &json->view->window[shown + 1]);
	json_close(json, '}');
}

/* Writes the number of rows and groups, and how many are shown. */
static void write_shown(struct json *json)
{
	const struct view *view = json->view;
	bool is_grouped = view->group != GROUP_STACK;
	const size_t count = view->lives ? 0 : view->shown_count;
	struct frames frames;

	json_line(json);
	json_number(json, "row_count", view->row_count);
	json_line(json);
	json_number(json, "suppressed_count", view->suppressed_count);
	if (is_grouped) {
		json_line(json);
		json_number(json, "group_count", view->group_count);
	}
	json_line(json);
	json_number(json, "shown_count", view->shown_count);
	frames_init(&frames);
	json_open_line(json, is_grouped ? "groups" : "rows", '[');
	/* In a page, page_lives() writes the rows of a window. */
	for (size_t i = 0; i < count && !json->out->err.code; i++) {
		if (is_grouped)
			write_group(json, i);
		else if (!json->series || json->series->is_listed[i])
			write_row(json, i, &frames);
	}
	json_close(json, ']');
	frames_release(&frames);
}

/* ---------------------------------------------------------------- the report */

static void write_asked(struct json *json)
{
	json_line(json);
	json_text(json, "group", report_group_kind(json->view->group));
	json_line(json);
	json_text(json, "frame_order",
		json->view->is_inverted ? "outermost_first" : "innermost_first");
}

static void write_filtered(struct json *json)
{
	json_line(json);
	json_bool(json, "filtered", json->view->is_filtered);
	write_shares(json);
	if (json->view->window) {
		json_line(json);
		json_window(json, json->view->window);
	}
}

/* Writes the rows of a series. In a page, their sums are in a table. */
static void write_series_rows(struct json *json, size_t series_count)
{
	struct page_series series;

	if (!json->frames || json->view->group != GROUP_STACK) {
		write_shown(json);
		return;
	}
	page_series_begin(json, series_count, &series);
	json->series = &series;
	write_shown(json);
	json->series = NULL;
	page_series_end(json, &series);
}

static void write_all_series(struct json *json, const struct report *report)
{
	json_line(json);
	json_number(json, "left_out_file_count", report->left_out_count);
	json_open(json, "left_out_files", '[');
	for (size_t i = 0; i < report->left_out_count; i++)
		json_text(json, NULL, report->left_out[i]);
	json_close(json, ']');
	json_line(json);
	json_number(json, "series_count", report->views[0].series_count);
	json_open_line(json, "series", '[');
	for (size_t i = 0; i < report->view_count; i++) {
		json->view = &report->views[i];
		json->comparison = json->view->comparison;
		json->has_rates = report_has_rates(json->comparison);
		json_open_line(json, NULL, '{');
		json_number(json, "number", json->view->series_number);
		write_parts(json);
		write_snapshots(json);
		json_balance(json);
		write_filtered(json);
		json_line(json);
		write_trend(json, &json->view->trend);
		write_series_rows(json, report->view_count);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void json_report(struct json *json, const struct report *report)
{
	bool is_trend = report->views[0].comparison->axis;

	/* Ignores `report->style`, because numbers in JSON are always decimal. */
	json->view = &report->views[0];
	json->comparison = json->view->comparison;
	json_text(json, "schema", is_trend ? TREND_SCHEMA : SCHEMA);
	json_line(json);
	json_text(json, "tool", "hdiff " HSNAP_VERSION);
	if (!is_trend)
		write_inputs(json);
	write_asked(json);
	if (is_trend) {
		write_all_series(json, report);
	} else {
		json_balance(json);
		write_filtered(json);
		json_heaps(json, report->style.shows_heaps);
		write_shown(json);
	}
}

void report_json(struct out *out, const struct report *report)
{
	struct json json = {.out = out, .is_first = true};

	json_open(&json, NULL, '{');
	json_report(&json, report);
	json_close(&json, '}');
	out_char(out, '\n');
}
