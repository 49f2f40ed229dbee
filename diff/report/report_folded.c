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
static int find_name(struct folded_report *report, uint32_t *number)
{
	struct buf *text = &report->text;
	const uint64_t *known;
	const char *copy;
	int rc = text->len ? 0 : buf_add_text(text, "?");

	if (rc)
		return rc;
	for (char *at = text->data; (at = strchr(at, ';'));)
		*at = ':';
	known = table_find(&report->numbers, text->data, text->len);
	if (known) {
		*number = (uint32_t)*known;
		return 0;
	}
	if (report->name_count == UINT32_MAX ||
		array_grow((void **)&report->names, &report->name_cap, report->name_count,
			sizeof(*report->names)))
		return -ERR_NOMEM;
	copy = arena_text(&report->arena, text->data, text->len);
	if (!copy || table_add(&report->numbers, text->data, text->len, report->name_count))
		return -ERR_NOMEM;
	*number = (uint32_t)report->name_count++;
	report->names[*number] = (struct name){copy, *number};
	return 0;
}

/* Adds the name in report->text to the line, unless the last frame is of the same group. */
static int add_name(struct folded_report *report, struct folded_line *line)
{
	uint32_t number;
	int rc = find_name(report, &number);

	if (rc)
		return rc;
	if (report->view->group != GROUP_STACK && line->count &&
		report->frames[report->frame_count - 1] == number)
		return 0;
	rc = array_grow((void **)&report->frames, &report->frame_cap, report->frame_count,
		sizeof(*report->frames));
	if (!rc) {
		report->frames[report->frame_count++] = number;
		line->count++;
	}
	return rc;
}

static int add_frame(
	struct folded_report *report, struct folded_line *line, const struct frame *frame)
{
	struct buf *text = &report->text;
	int rc;

	buf_clear(text);
	if (report->view->group == GROUP_STACK)
		rc = clean_frame(text, frame, true);
	else if (!(rc = group_name(report->view, frame, &report->group)))
		rc = clean_text(text, report->group.data, true);
	return rc ? rc : add_name(report, line);
}

/* Frames come innermost first, or turned round: the last of them is the root of the graph. */
static int add_stack(struct folded_report *report, struct folded_line *line, const struct row *row,
	const struct frames *frames)
{
	size_t count = frames->part_count ? frames->part_at[0] : frames->count;
	char space[ROW_WORDS_BYTES];
	int rc = 0;

	buf_clear(&report->text);
	if (!count) {
		rc = buf_add_text(&report->text, report_row_words(row, space));
		return rc ? rc : add_name(report, line);
	}
	if (row->kind == ROW_AMBIGUOUS) {
		rc = buf_printf(
			&report->text, "(ambiguous: one of %zu stacks)", frames->part_count + 1);
		if (!rc)
			rc = add_name(report, line);
	}
	for (size_t i = count; !rc && i--;)
		rc = add_frame(report, line, &frames->items[i]);
	return rc;
}

static int add_heap(struct folded_report *report, struct folded_line *line, uint64_t heap)
{
	int rc;

	rc = group_heap_name(&report->text, heap);
	return rc ? rc : add_name(report, line);
}

/* ---------------------------------------------------------------- lines */

static int add_row(struct folded_report *report, uint32_t number, struct frames *frames)
{
	const struct row *row = &report->comparison->rows[number];
	struct change change = row_change(report->comparison, row);
	struct folded_line line = {.at = report->frame_count,
		.old = change.old.requested_bytes,
		.new = change.new.requested_bytes};
	int rc;

	if (!line.old && !line.new)
		return 0;
	/* It moved between the ends, of which nothing is shown here. */
	if (report->comparison->axis && line.old == line.new)
		return 0;
	if (report->view->group == GROUP_HEAP) {
		rc = add_heap(report, &line, row->heap);
	} else {
		rc = view_frames(report->view, number, frames);
		if (!rc)
			rc = add_stack(report, &line, row, frames);
	}
	if (!rc)
		rc = array_grow((void **)&report->lines, &report->line_cap, report->line_count,
			sizeof(*report->lines));
	if (!rc)
		report->lines[report->line_count++] = line;
	return rc;
}

static int add_rows(struct folded_report *report)
{
	const struct view *view = report->view;
	/* When grouped, what is shown are groups, and they are made of all rows. */
	size_t count = view->group == GROUP_STACK ? view->shown_count : view->row_count;
	struct frames frames;
	int rc = 0;

	frames_init(&frames);
	for (size_t i = 0; !rc && i < count; i++)
		rc = add_row(report, view->rows[i], &frames);
	frames_release(&frames);
	return rc;
}

/* ---------------------------------------------------------------- order */

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Numbers names by their text, so that lines are in order when their numbers are. */
static int rank_names(struct folded_report *report)
{
	uint32_t *rank = malloc((report->name_count + 1) * sizeof(*rank));

	if (!rank)
		return -ERR_NOMEM;
	if (report->name_count)
		qsort(report->names, report->name_count, sizeof(*report->names), by_text);
	for (size_t i = 0; i < report->name_count; i++)
		rank[report->names[i].number] = (uint32_t)i;
	for (size_t i = 0; i < report->frame_count; i++)
		report->frames[i] = rank[report->frames[i]];
	for (size_t i = 0; i < report->line_count; i++)
		report->lines[i].frames = report->frames + report->lines[i].at;
	free(rank);
	return 0;
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

static void put_line(
	const struct folded_report *report, struct out *out, const struct folded_line *line)
{
	for (size_t i = 0; i < line->count; i++) {
		if (i)
			out_char(out, ';');
		out_text(out, report->names[line->frames[i]].text);
	}
	out_char(out, ' ');
	out_number(out, line->old, 10, 0);
	out_char(out, ' ');
	out_number(out, line->new, 10, 0);
	out_char(out, '\n');
}

static int put_lines(struct folded_report *report, struct out *out)
{
	struct folded_line *lines = report->lines;
	size_t count = report->line_count, next;
	int rc = rank_names(report);

	if (rc)
		return rc;
	if (count)
		qsort(lines, count, sizeof(*lines), by_frames_and_sums);
	for (size_t i = 0; i < count && !out->err.code; i = next) {
		for (next = i + 1; next < count && unite(&lines[i], &lines[next]);)
			next++;
		put_line(report, out, &lines[i]);
	}
	return 0;
}

void report_folded(struct out *out, const struct report *asked)
{
	const struct view *view = asked->views[0];
	/* Of asked->style nothing is used: the tools that read this want decimal numbers. */
	struct folded_report report = {.view = view, .comparison = view->comparison};
	int rc;

	arena_init(&report.arena);
	table_init(&report.numbers);
	buf_init(&report.text);
	buf_init(&report.group);
	rc = add_rows(&report);
	if (!rc)
		rc = put_lines(&report, out);
	if (rc && !out->err.code)
		err_set(&out->err, ERR_NOMEM, NULL, NULL);
	free(report.lines);
	free(report.frames);
	free(report.names);
	buf_release(&report.text);
	buf_release(&report.group);
	table_release(&report.numbers);
	arena_release(&report.arena);
}
