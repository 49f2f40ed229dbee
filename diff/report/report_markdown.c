/*
 * A summary for GitHub's and GitLab's pages: Markdown that consists of HTML blocks.
 *
 * In an HTML block, up to a blank line, Markdown has no syntax, so that escaping for HTML is enough
 * for any name. Names are in <code>, where these pages look for no mentions and references. */
#include <inttypes.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/match/row_series.h"
#include "diff/report/balance_text.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"
#include "diff/report/worst.h"

enum { ROWS_MAX = 20, STACKS_MAX = 3 };

struct markdown {
	struct out *out;
	const struct report *report;
	const struct view *view;
	bool is_single; /* OLD does not exist */
	struct frames frames;
	struct buf words;
};

static void write_code(struct markdown *to, const char *text)
{
	out_text(to->out, "<code>");
	xml_text(to->out, text);
	out_text(to->out, "</code>");
}

static void add_sign(struct markdown *to, const struct growth *growth)
{
	buf_add_text(&to->words, to->is_single || !growth->amount ? "" :
				 growth->sign == '+'		  ? "+" :
								    "-");
}

/* Writes "+12.3 MiB, +1,234 blocks" or, in a row of the table, two cells. */
static void write_growth(struct markdown *to, const struct change *change, bool is_row)
{
	const struct growth bytes = growth_of(
				    change->now.requested_bytes, change->old.requested_bytes),
			    blocks = growth_of(change->now.block_count, change->old.block_count);
	const bool has_blocks = !to->view->comparison->lacks_blocks;
	char size[REPORT_SIZE_BYTES], count[REPORT_COUNT_BYTES];

	buf_clear(&to->words);
	add_sign(to, &bytes);
	buf_printf(&to->words, "%s%s", report_size(bytes.amount, size),
		is_row ? "</td><td align=\"right\">" : ", ");
	if (has_blocks)
		add_sign(to, &blocks);
	buf_add_text(&to->words, has_blocks ? report_count(blocks.amount, count) : "?");
	if (!is_row)
		buf_printf(&to->words, " block%s", has_blocks ? text_plural(blocks.amount) : "s");
	out_text(to->out, to->words.data);
}

/* Writes the name of a row: its own function and place. */
static void write_name(struct markdown *to, size_t shown)
{
	buf_clear(&to->words);
	worst_add_name(&to->words, to->view, to->view->rows[shown], to->report->strip, &to->frames);
	write_code(to, to->words.data);
}

/* ---------------------------------------------------------------- the head */

static void write_inputs(struct markdown *to)
{
	const struct comparison *comparison = to->view->comparison;
	const size_t last = comparison->dump_count - 1;

	write_code(to, comparison->dumps     ? comparison->dumps[0].id.path :
		       comparison->read_from ? comparison->read_from :
					       "");
	if (comparison->dumps && last) {
		out_text(to->out, comparison->is_sum ? " and more" : " to ");
		if (!comparison->is_sum)
			write_code(to, comparison->dumps[last].id.path);
	}
}

/* Writes the balance of the process, a line after another. */
static void write_balance(struct markdown *to)
{
	buf_clear(&to->words);
	balance_text(&to->words, to->view);
	for (char *line = to->words.data, *end; line && (end = strchr(line, '\n'));
		line = end + 1) {
		*end = '\0';
		out_text(to->out, "<br>\n");
		xml_text(to->out, line);
	}
}

static void write_head(struct markdown *to)
{
	const struct view *view = to->view;

	out_text(to->out, "<h3>");
	if (view->series_count > 1)
		out_printf(to->out, "Series %zu: ", view->series_number);
	write_growth(to, &view->selected, false);
	if (view->comparison->axis)
		out_printf(to->out, ", %s", trend_verdict_name(view->trend.verdict));
	out_printf(to->out, "</h3>\n<p>%s", to->is_single ? "Memory in " : "Growth from ");
	write_inputs(to);
	if (view->comparison->axis)
		out_printf(to->out, ", %zu snapshot%s", view->comparison->dump_count,
			text_plural(view->comparison->dump_count));
	if (view->is_filtered)
		out_text(to->out, ", of the selected stacks");
	if (view->suppressed_count)
		out_printf(to->out, "; %zu suppressed", view->suppressed_count);
	write_balance(to);
	out_text(to->out, "</p>\n\n");
}

/* ---------------------------------------------------------------- the table */

static void write_row(struct markdown *to, size_t shown)
{
	const struct comparison *comparison = to->view->comparison;
	const struct row *row = &comparison->rows[to->view->rows[shown]];
	struct change change = row_change(comparison, row);

	out_text(to->out, "<tr><td align=\"right\">");
	write_growth(to, &change, true);
	if (comparison->axis)
		out_printf(to->out, "</td><td>%s",
			trend_verdict_name(row_trend(comparison, row)->verdict));
	out_text(to->out, "</td><td>");
	write_name(to, shown);
	out_text(to->out, "</td></tr>\n");
}

static void write_group(struct markdown *to, const struct view_group_row *group)
{
	out_text(to->out, "<tr><td align=\"right\">");
	write_growth(to, &group->total, true);
	if (to->view->comparison->axis)
		out_printf(to->out, "</td><td>%s", trend_verdict_name(group->total_trend.verdict));
	out_text(to->out, "</td><td>");
	write_code(to, group->name);
	out_text(to->out, "</td></tr>\n");
}

static void write_table(struct markdown *to)
{
	const struct view *view = to->view;
	const bool is_grouped = view->group != GROUP_STACK;
	const size_t count = view->shown_count < ROWS_MAX ? view->shown_count : ROWS_MAX,
		     all = is_grouped ? view->group_count : view->row_count;

	if (!count) {
		out_printf(to->out, "<p>No stack%s changed.</p>\n",
			view->is_filtered ? " that was selected" : "");
		return;
	}
	out_printf(to->out, "<table>\n<tr><th>%s</th><th>blocks</th>%s<th>%s</th></tr>\n",
		is_grouped ? "total" : "bytes", view->comparison->axis ? "<th>verdict</th>" : "",
		is_grouped ? report_group_kind(view->group) : "function");
	for (size_t i = 0; i < count; i++) {
		if (is_grouped)
			write_group(to, &view->groups[i]);
		else
			write_row(to, i);
	}
	out_text(to->out, "</table>\n");
	if (count < all)
		out_printf(to->out, "<p>%zu more are not shown.</p>\n", all - count);
}

/* ---------------------------------------------------------------- stacks */

static void write_stack(struct markdown *to, size_t shown)
{
	const uint32_t number = to->view->rows[shown];
	struct change change =
		row_change(to->view->comparison, &to->view->comparison->rows[number]);

	out_text(to->out, "\n<details><summary>");
	write_growth(to, &change, false);
	out_text(to->out, ": ");
	write_name(to, shown);
	out_text(to->out, "</summary><pre>\n");
	view_frames(to->view, number, &to->frames);
	for (size_t i = 0; i < to->frames.count; i++) {
		const struct frame *frame = &to->frames.items[i];

		buf_clear(&to->words);
		buf_add_text(&to->words, "at "); /* no line may be blank */
		clean_frame(&to->words, frame, true);
		if (frame->file && frame->line) {
			buf_add_text(&to->words, "  ");
			clean_text(&to->words, frame->file, true);
			buf_printf(&to->words, ":%" PRIu32, frame->line);
		}
		xml_text(to->out, to->words.data);
		out_char(to->out, '\n');
	}
	out_text(to->out, "</pre></details>\n");
}

void report_markdown(struct out *out, const struct report *report)
{
	struct markdown to = {.out = out, .report = report};

	frames_init(&to.frames);
	for (size_t i = 0; i < report->view_count && !out->err.code; i++) {
		to.view = &report->views[i];
		to.is_single = !to.view->comparison->axis && to.view->comparison->dumps &&
			       comparison_columns(to.view->comparison) < 2;
		out_text(out, i ? "\n" : "");
		write_head(&to);
		write_table(&to);
		for (size_t k = 0;
			to.view->group == GROUP_STACK && k < STACKS_MAX && k < to.view->shown_count;
			k++)
			write_stack(&to, k);
	}
	frames_release(&to.frames);
	buf_release(&to.words);
}
