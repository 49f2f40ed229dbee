/*
 * man/hdiff-csv.5 says what all this means: what changes here changes there.
 *
 * Lines have to be sorted before the first can be written. Each name is kept once, so that long
 * names on many stacks do not take the memory that their text would.
 */
#include "diff/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "diff/query/group.h"
#include "diff/report/report_parts.h"

struct folded_line {
	const uint32_t *frames; /* numbers of names, the root first; set when they do not move */
	size_t at, count; /* of them, in all frames */
	uint64_t old, new;
};

struct name {
	const char *text;
	uint32_t number;
};

struct folded_report {
	const struct view *view;
	const struct comparison *comparison;
	struct arena arena; /* of the names' texts */
	struct table numbers; /* by text */
	struct name *names;
	size_t name_count, name_cap;
	struct buf text; /* of the name at hand */
	struct buf group; /* name that it is made of */
	uint32_t *frames; /* of all lines */
	size_t frame_count, frame_cap;
	struct folded_line *lines;
	size_t line_count, line_cap;
};

/* ---------------------------------------------------------------- frames */

/* The number of the name in report->text, which is made fit for a line first. */
static uint32_t find_name(struct folded_report *report)
{
	struct buf *text = &report->text;
	const uint64_t *known;
	uint32_t number = (uint32_t)report->name_count;

	if (!text->len)
		buf_add_text(text, "?");
	for (char *at = text->data; (at = strchr(at, ';'));)
		*at = ':';
	known = table_find(&report->numbers, text->data, text->len);
	if (known)
		return (uint32_t)*known;
	if (report->name_count == UINT32_MAX)
		memory_out();
	array_grow((void **)&report->names, &report->name_cap, report->name_count,
		sizeof(*report->names));
	table_add(&report->numbers, text->data, text->len, number);
	report->names[report->name_count++] =
		(struct name){arena_text(&report->arena, text->data, text->len), number};
	return number;
}

/* Adds the name in report->text to the line, unless the last frame is of the same group. */
static void add_name(struct folded_report *report, struct folded_line *line)
{
	uint32_t number = find_name(report);

	if (report->view->group != GROUP_STACK && line->count &&
		report->frames[report->frame_count - 1] == number)
		return;
	array_grow((void **)&report->frames, &report->frame_cap, report->frame_count,
		sizeof(*report->frames));
	report->frames[report->frame_count++] = number;
	line->count++;
}

static void add_frame(
	struct folded_report *report, struct folded_line *line, const struct frame *frame)
{
	buf_clear(&report->text);
	if (report->view->group == GROUP_STACK) {
		clean_frame(&report->text, frame, true);
	} else {
		group_name(report->view, frame, &report->group);
		clean_text(&report->text, report->group.data, true);
	}
	add_name(report, line);
}

/* Frames come innermost first, or turned round: the last of them is the root of the graph. */
static void add_stack(struct folded_report *report, struct folded_line *line, const struct row *row,
	const struct frames *frames)
{
	size_t count = frames->part_count ? frames->part_at[0] : frames->count;
	char space[ROW_WORDS_BYTES];

	buf_clear(&report->text);
	if (!count)
		buf_add_text(&report->text, report_row_words(row, space));
	else if (row->kind == ROW_AMBIGUOUS)
		buf_printf(&report->text, "(ambiguous: one of %zu stacks)", frames->part_count + 1);
	if (!count || row->kind == ROW_AMBIGUOUS)
		add_name(report, line);
	while (count--)
		add_frame(report, line, &frames->items[count]);
}

/* ---------------------------------------------------------------- lines */

static void add_row(struct folded_report *report, uint32_t number, struct frames *frames)
{
	const struct row *row = &report->comparison->rows[number];
	struct change change = row_change(report->comparison, row);
	struct folded_line line = {.at = report->frame_count,
		.old = change.old.requested_bytes,
		.new = change.new.requested_bytes};

	if (!line.old && !line.new)
		return;
	/* It moved between the ends, of which nothing is shown here. */
	if (report->comparison->axis && line.old == line.new)
		return;
	if (group_is_by_heap(report->view->group)) {
		group_heap_name(report->view, row->heap, &report->text);
		add_name(report, &line);
	} else {
		view_frames(report->view, number, frames);
		add_stack(report, &line, row, frames);
	}
	array_grow((void **)&report->lines, &report->line_cap, report->line_count,
		sizeof(*report->lines));
	report->lines[report->line_count++] = line;
}

/* ---------------------------------------------------------------- order */

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Numbers names by their text, so that lines are in order when their numbers are. */
static void rank_names(struct folded_report *report)
{
	uint32_t *rank = xcalloc(report->name_count + 1, sizeof(*rank));

	if (report->name_count)
		qsort(report->names, report->name_count, sizeof(*report->names), by_text);
	for (size_t i = 0; i < report->name_count; i++)
		rank[report->names[i].number] = (uint32_t)i;
	for (size_t i = 0; i < report->frame_count; i++)
		report->frames[i] = rank[report->frames[i]];
	for (size_t i = 0; i < report->line_count; i++)
		report->lines[i].frames = report->frames + report->lines[i].at;
	free(rank);
}

static int by_frames(const struct folded_line *x, const struct folded_line *y)
{
	size_t count = x->count < y->count ? x->count : y->count;

	for (size_t i = 0; i < count; i++) {
		if (x->frames[i] != y->frames[i])
			return x->frames[i] < y->frames[i] ? -1 : 1;
	}
	return x->count < y->count ? -1 : x->count > y->count;
}

static int by_frames_and_sums(const void *a, const void *b)
{
	const struct folded_line *x = a, *y = b;
	int order = by_frames(x, y);

	if (order)
		return order;
	if (x->old != y->old)
		return x->old < y->old ? -1 : 1;
	return x->new < y->new ? -1 : x->new > y->new;
}

/* Adds a line to another one of the same stack; false when it is not one, or there is no room for
 * the sum: two lines mean the same. */
static bool unite(struct folded_line *to, const struct folded_line *more)
{
	if (by_frames(to, more) || to->old > UINT64_MAX - more->old ||
		to->new > UINT64_MAX - more->new)
		return false;
	to->old += more->old;
	to->new += more->new;
	return true;
}

/* One number where nothing is old: viewers take a second one for a part of the name. */
static void put_line(const struct folded_report *report, struct out *out,
	const struct folded_line *line, bool is_reverse)
{
	bool has_old = !report->comparison->is_sum && report->comparison->dump_count > 1;

	for (size_t i = 0; i < line->count; i++) {
		if (i)
			out_char(out, ';');
		out_text(out, report->names[line->frames[i]].text);
	}
	if (has_old) {
		out_char(out, ' ');
		out_number(out, is_reverse ? line->new : line->old, 10, 0);
	}
	out_char(out, ' ');
	out_number(out, has_old && is_reverse ? line->old : line->new, 10, 0);
	out_char(out, '\n');
}

void report_folded(struct out *out, const struct report *whole)
{
	const struct view *view = &whole->views[0];
	/* Of whole->style hex is not used: the tools that read this want decimal numbers. */
	struct folded_report report = {.view = view, .comparison = view->comparison};
	/* When grouped, what is shown are groups, and they are made of all rows. */
	size_t count = view->group == GROUP_STACK ? view->shown_count : view->row_count;
	struct frames frames;

	arena_init(&report.arena);
	table_init(&report.numbers);
	buf_init(&report.text);
	buf_init(&report.group);
	frames_init(&frames);
	for (size_t i = 0; i < count; i++)
		add_row(&report, view->rows[i], &frames);
	rank_names(&report);
	if (report.line_count)
		qsort(report.lines, report.line_count, sizeof(*report.lines), by_frames_and_sums);
	for (size_t i = 0, next; i < report.line_count && !out->err.code; i = next) {
		for (next = i + 1;
			next < report.line_count && unite(&report.lines[i], &report.lines[next]);)
			next++;
		put_line(&report, out, &report.lines[i], whole->style.is_reverse);
	}
	free(report.lines);
	free(report.frames);
	free(report.names);
	frames_release(&frames);
	buf_release(&report.text);
	buf_release(&report.group);
	table_release(&report.numbers);
	arena_release(&report.arena);
}
