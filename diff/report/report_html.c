/*
 * A page for browsers, in a single file: the files in diff/report/html with the report inserted.
 *
 * The page's script reads the report as JSON (man/hdiff-json.5). The JSON in a page contains
 * numbers of frames instead of the frames, because 20,000 stacks share most of their frames. A
 * browser without scripts shows the head and a table of the first rows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "diff/query/strip.h"
#include "diff/report/balance_text.h"
#include "diff/report/clean.h"
#include "diff/report/json.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

/* maximum number of rows in the table for browsers without scripts, which cannot sort or search */
#define TABLE_ROWS 1000
#define TABLE_FRAMES 4 /* of a stack in that table; further frames are folded */
#define NAME_COLUMNS 100 /* longest name of a frame; longer names are shortened */

/* ---------------------------------------------------------------- text */

/* Writes a name. A name in a right-to-left script does not affect the text around it. */
static void write_name(struct out *out, const char *text)
{
	out_text(out, "<bdi>");
	xml_text(out, text);
	out_text(out, "</bdi>");
}

static void write_growth(struct out *out, uint64_t now, uint64_t old)
{
	struct growth growth = growth_of(now, old);

	out_signed(out, growth.sign, growth.amount, 10, 0);
}

/* ---------------------------------------------------------------- the head */

static const char *image_of(const struct view *view)
{
	const struct comparison *comparison = view->comparison;
	const char *image = comparison->image;

	for (size_t i = comparison->dump_count; comparison->dumps && !image && i;)
		image = comparison->dumps[--i].id.image;
	return image;
}

/* Returns true for a single dump or a sum of dumps. Such a view has no OLD, so nothing grew or
 * shrank. */
static bool is_of_one(const struct view *view)
{
	return !view->comparison->axis && comparison_columns(view->comparison) == 1;
}

static void write_title(struct out *out, const struct view *view)
{
	const char *image = image_of(view);

	xml_text(out, image ? module_path_base(image) : "Heap");
	out_text(out, view->comparison->axis ? ": trend" :
		      !is_of_one(view)	     ? ": growth" :
		      view->window	     ? ": a window of a recording" :
					       ": live memory");
}

static void write_dump(struct out *out, const char *role, const struct dump_sums *dump)
{
	char time[DATE_TEXT_BYTES];

	out_printf(out, "<li>%s ", role);
	write_name(out, dump->id.path);
	if (*report_dump_time(dump, time))
		out_printf(out, ", %s", time);
	if (dump->id.pid)
		out_printf(out, ", process %" PRIu32, dump->id.pid);
	if (dump->quality.sample_bytes)
		out_printf(out, ", estimates: one in %" PRIu64 " bytes was recorded",
			dump->quality.sample_bytes);
	if (dump->quality.is_cut)
		out_text(out, ", <strong>its end is missing</strong>");
	for (size_t i = 0; i < dump->quality.warning_count && i < WARNINGS_MAX; i++) {
		out_text(out, i ? "<br>" : "<br><strong>Warnings:</strong> ");
		write_name(out, dump->quality.warnings[i]);
	}
	out_text(out, "</li>\n");
}

static void write_inputs(struct out *out, const struct comparison *comparison)
{
	size_t last = comparison->dump_count - 1;

	out_text(out, "<ul>\n");
	if (!comparison->dumps) {
		out_text(out, "<li>comparison ");
		write_name(out, comparison->read_from ? comparison->read_from : "");
		out_text(out, "</li>\n");
	} else if (comparison->axis) {
		write_dump(out, "first", &comparison->dumps[0]);
		write_dump(out, "last", &comparison->dumps[last]);
	}
	for (size_t i = 0; comparison->dumps && !comparison->axis && i <= last; i++)
		write_dump(out, report_dump_role(comparison, i), &comparison->dumps[i]);
	out_text(out, "</ul>\n");
}

static void write_change(struct out *out, const struct view *view)
{
	const struct block_totals *old = &view->selected.old, *now = &view->selected.now;

	if (view->comparison->lacks_blocks) {
		out_text(out, "<b>");
		if (is_of_one(view))
			out_number(out, now->requested_bytes, 10, 0);
		else
			write_growth(out, now->requested_bytes, old->requested_bytes);
		out_text(out, "</b> bytes, ? blocks");
		return;
	}
	if (is_of_one(view)) {
		out_printf(out, "<b>%" PRIu64 "</b> byte%s in <b>%" PRIu64 "</b> block%s",
			now->requested_bytes, text_plural(now->requested_bytes), now->block_count,
			text_plural(now->block_count));
		if (view->window)
			umdh_fate(out, view->comparison->dumps);
		return;
	}
	out_text(out, "<b>");
	write_growth(out, now->requested_bytes, old->requested_bytes);
	out_text(out, "</b> bytes, <b>");
	write_growth(out, now->block_count, old->block_count);
	out_printf(out,
		"</b> blocks: from %" PRIu64 " to %" PRIu64 " byte%s, from %" PRIu64 " to %" PRIu64
		" block%s",
		old->requested_bytes, now->requested_bytes, text_plural(now->requested_bytes),
		old->block_count, now->block_count, text_plural(now->block_count));
}

/* Writes the sum of the selected rows and, in a trend, its verdict. */
static void write_totals(struct out *out, const struct view *view)
{
	out_text(out, "<p class=\"totals\">");
	write_change(out, view);
	if (view->is_filtered)
		out_text(out, ", of the selected stacks");
	if (view->suppressed_count)
		out_printf(out, "; %zu suppressed", view->suppressed_count);
	if (view->comparison->axis)
		out_printf(out, "; verdict: <b>%s</b>", trend_verdict_name(view->trend.verdict));
	out_text(out, "</p>\n");
}

/* Writes the balance of the process, one line after another. */
static void write_balance(struct out *out, const struct view *view)
{
	struct buf words;

	buf_init(&words);
	balance_text(&words, view);
	if (words.len)
		out_text(out, "<ul class=\"balance\">\n");
	for (char *line = words.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		out_text(out, "<li>");
		xml_text(out, line);
		out_text(out, "</li>\n");
	}
	if (words.len)
		out_text(out, "</ul>\n");
	buf_release(&words);
}

/* Writes the fates of allocations in a window of a recording, using WPA's names. */
static void write_classes(struct out *out, const struct view *view)
{
	static const char *const words[] = {
		[FATE_AIFO] = "AIFO, impacting: allocated inside, freed outside or never",
		[FATE_AIFI] = "AIFI, transient: allocated and freed inside",
		[FATE_AOFI] = "AOFI: allocated outside, freed inside",
		[FATE_AOFO] = "AOFO: existed before and after",
	};
	const struct dump_sums *dump = view->comparison->dumps;

	out_text(out, "<table class=\"classes\">\n<tr><th>bytes</th><th>blocks</th><th>from ");
	umdh_seconds(out, dump->window.from_ms);
	out_text(out, " to ");
	umdh_seconds(out, dump->window.to_ms);
	out_text(out, "</th></tr>\n");
	for (int fate = FATE_AIFO; fate <= FATE_AOFO; fate++) {
		const struct block_totals *sum = &view->window->by_fate[fate];

		out_printf(out, "<tr%s><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%s</td></tr>\n",
			(int)dump->window.fate == fate ? " class=\"asked\"" : "",
			sum->requested_bytes, sum->block_count, words[fate]);
	}
	out_text(out, "</table>\n");
}

static void write_head(struct out *out, const struct report *report)
{
	const struct view *views = report->views;

	out_text(out, "<h1>");
	write_title(out, views);
	out_text(out, "</h1>\n");
	for (size_t i = 0; i < report->view_count; i++) {
		out_text(out, "<section class=\"series\">\n");
		if (views[i].comparison->axis)
			out_printf(out, "<h2>Series %zu: %zu snapshot%s</h2>\n",
				views[i].series_number, views[i].comparison->dump_count,
				text_plural(views[i].comparison->dump_count));
		write_totals(out, &views[i]);
		write_balance(out, &views[i]);
		write_inputs(out, views[i].comparison);
		if (views[i].window)
			write_classes(out, &views[i]);
		out_text(out, "</section>\n");
	}
	if (report->left_out_count)
		out_printf(out, "<p>%zu file%s %s in no series.</p>\n", report->left_out_count,
			text_plural(report->left_out_count),
			report->left_out_count == 1 ? "is" : "are");
}

/* ---------------------------------------------------------------- the table */

static void write_cells(struct out *out, const struct view *view, const struct change *change)
{
	const struct block_totals *old = &change->old, *now = &change->now;

	out_text(out, "<td>");
	write_growth(out, now->requested_bytes, old->requested_bytes);
	out_text(out, "</td><td>");
	if (view->comparison->lacks_blocks)
		out_char(out, '?');
	else
		write_growth(out, now->block_count, old->block_count);
	out_printf(out, "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td>", old->requested_bytes,
		now->requested_bytes);
}

static void write_frames(struct out *out, const struct frames *frames)
{
	const size_t more = frames->count > TABLE_FRAMES ? frames->count - TABLE_FRAMES : 0;
	const char *gap = "";
	struct buf name;
	size_t part = 0;

	buf_init(&name);
	for (size_t i = 0; i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];

		if (more && i == TABLE_FRAMES) {
			out_printf(out, "<details><summary>%zu more frame%s</summary>", more,
				text_plural(more));
			gap = "";
		}
		if (part < frames->part_count && frames->part_at[part] == i) {
			out_printf(out, "%sor", gap);
			gap = "<br>";
			part++;
		}
		frame_name(frame, &name);
		report_shorten(&name, 0, NAME_COLUMNS);
		out_text(out, gap);
		gap = "<br>";
		write_name(out, name.data);
		if (frame->file) {
			out_text(out, " (");
			write_name(out, frame->file);
			out_printf(out, ":%" PRIu32 ")", frame->line);
		}
	}
	out_text(out, more ? "</details>" : "");
	buf_release(&name);
}

static void write_row(struct out *out, const struct view *view, size_t shown, struct frames *frames)
{
	uint32_t number = view->rows[shown];
	const struct row *row = &view->comparison->rows[number];
	struct change change = row_change(view->comparison, row);
	char space[ROW_WORDS_BYTES];

	out_text(out, "<tr>");
	write_cells(out, view, &change);
	if (view->comparison->axis)
		out_printf(out, "<td>%s</td>",
			trend_verdict_name(row_trend(view->comparison, row)->verdict));
	out_text(out, "<td>");
	view_frames(view, number, frames);
	if (frames->count)
		write_frames(out, frames);
	else
		out_text(out, report_row_words(row, space));
	out_text(out, "</td></tr>\n");
}

static void write_group(
	struct out *out, const struct view *view, const struct view_group_row *group)
{
	out_text(out, "<tr>");
	write_cells(out, view, &group->total);
	out_text(out, "<td>");
	write_growth(out, group->self.now.requested_bytes, group->self.old.requested_bytes);
	out_text(out, "</td><td>");
	write_name(out, group->name);
	out_text(out, "</td></tr>\n");
}

/* Returns true for a row that is only in the data: in a window, a row without blocks of its
 * fate. */
static bool is_hidden(const struct view *view, size_t shown)
{
	return view->lives &&
	       !row_new(view->comparison, &view->comparison->rows[view->rows[shown]]).block_count;
}

static void write_table(struct out *out, const struct view *view)
{
	bool is_grouped = view->group != GROUP_STACK;
	size_t all = is_grouped ? view->group_count : view->row_count, written = 0, hidden = 0;
	struct frames frames;

	frames_init(&frames);
	out_printf(out,
		"<table>\n<tr><th>growth, bytes</th><th>growth, blocks</th><th>old, bytes</th>"
		"<th>new, bytes</th>%s<th>%s</th></tr>\n",
		is_grouped	       ? "<th>self growth, bytes</th>" :
		view->comparison->axis ? "<th>verdict</th>" :
					 "",
		is_grouped ? report_group_kind(view->group) : "stack");
	for (size_t i = 0; i < view->shown_count && !out->err.code; i++) {
		if (is_hidden(view, i))
			hidden++;
		else if (written++ >= TABLE_ROWS)
			continue;
		else if (is_grouped)
			write_group(out, view, &view->groups[i]);
		else
			write_row(out, view, i, &frames);
	}
	written = written < TABLE_ROWS ? written : TABLE_ROWS;
	out_text(out, "</table>\n");
	if (written < all - hidden)
		out_printf(out, "<p>%zu more are not in this table.</p>\n", all - hidden - written);
	frames_release(&frames);
}

/* ---------------------------------------------------------------- the data */

/* Writes data that the script needs to name the rows of the table: which frames to skip, and short
 * forms of long names. */
static void write_naming(struct json *json, const struct report *report, const struct frame *frame)
{
	struct buf name;
	size_t len;

	if (strip_matches(report->strip, frame))
		json_bool(json, "layer", true);
	if (strip_matches(report->start_up, frame))
		json_bool(json, "start", true);
	buf_init(&name);
	frame_name(frame, &name);
	len = name.len;
	report_shorten(&name, 0, NAME_COLUMNS);
	if (name.len < len)
		json_text(json, "short", name.data);
	buf_release(&name);
}

static void write_data(struct out *out, const struct report *report)
{
	struct page_frames frames = {0};
	struct json json = {.out = out, .is_first = true, .is_in_page = true, .frames = &frames};

	table_init(&frames.numbers);
	buf_init(&frames.key);
	json_open(&json, NULL, '{');
	json_report(&json, report);
	if (report->views[0].lives)
		page_lives(&json);
	json_open_line(&json, "frames", '[');
	for (size_t i = 0; i < frames.count; i++) {
		struct frame shown = frames.items[i];

		shown.module = frame_module(&shown);
		shown.module_path = NULL;
		json_line(&json);
		json_open_frame(&json, &shown);
		write_naming(&json, report, &frames.items[i]);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_close(&json, '}');
	free(frames.items);
	table_release(&frames.numbers);
	buf_release(&frames.key);
}

/* ---------------------------------------------------------------- the report */

/* Writes the charts of a recording. Usage over time is initially visible, sizes are collapsed. */
static void write_charts(struct out *out, const struct report *report)
{
	static const char *const heads[] = {"<details open><summary>Use over time</summary>\n",
		"<details><summary>Sizes of allocations</summary>\n"};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		if (!report->charts[i])
			continue;
		out_text(out, heads[i]);
		chart_svg(out, report->charts[i]);
		out_text(out, "</details>\n");
	}
}

static void write_piece(struct out *out, enum page_piece piece)
{
	out_text(out, page_pieces[piece]);
}

void report_html(struct out *out, const struct report *report)
{
	write_piece(out, PAGE_TITLE);
	write_title(out, report->views);
	write_piece(out, PAGE_HEAD);
	write_head(out, report);
	write_charts(out, report);
	write_piece(out, PAGE_TABLE);
	for (size_t i = 0; i < report->view_count; i++)
		write_table(out, &report->views[i]);
	write_piece(out, PAGE_DATA);
	write_data(out, report);
	write_piece(out, PAGE_END);
}
