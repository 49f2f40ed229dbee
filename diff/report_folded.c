/* man/hdiff-csv.5 says what all this means: what changes here changes there. */
#include "diff/report.h"

#include <stdlib.h>
#include <string.h>

#include "diff/report_parts.h"

struct line {
	size_t at; /* in the texts */
	const char *text; /* set when they do not move any more */
	uint64_t old, new;
};

struct folded_report {
	const struct view *view;
	const struct comparison *comparison;
	struct buf texts; /* a NUL behind each */
	struct line *lines;
	size_t count, cap;
};

/* ---------------------------------------------------------------- frames */

/* The name of the frame's box. */
static int add_name(struct buf *buf, const struct frame *frame, enum view_group group)
{
	if (group == GROUP_FILE)
		return clean_text(buf, frame->file ? frame->file : "(file not known)", true);
	if (group == GROUP_MODULE)
		return clean_text(buf, frame->module ? frame->module : "(no module)", true);
	return clean_frame(buf, frame, true);
}

/* What was added from a place on: no mark between frames in it, and not empty. */
static int close_name(struct buf *buf, size_t from)
{
	for (char *at = buf->data + from; (at = strchr(at, ';'));)
		*at = ':';
	return buf->len == from ? buf_add_text(buf, "?") : 0;
}

/* One more frame, unless it belongs to the same group as the last one, which started at *last. */
static int add_frame(struct folded_report *report, const struct frame *frame, size_t *last)
{
	struct buf *buf = &report->texts;
	bool is_first = *last == buf->len;
	size_t from = buf->len + !is_first, last_len = buf->len - *last;
	int rc = is_first ? 0 : buf_add(buf, ";", 1);

	if (!rc)
		rc = add_name(buf, frame, report->view->group);
	if (!rc)
		rc = close_name(buf, from);
	if (rc)
		return rc;
	if (!is_first && report->view->group != GROUP_STACK && buf->len - from == last_len &&
		!memcmp(buf->data + from, buf->data + *last, last_len)) {
		buf->len = from - 1;
		buf->data[buf->len] = '\0';
	} else {
		*last = from;
	}
	return 0;
}

/* Frames come innermost first, or turned round: the last of them is the root of the graph. */
static int add_stack(
	struct folded_report *report, const struct row *row, const struct frames *frames)
{
	size_t count = frames->part_count ? frames->part_at[0] : frames->count;
	struct buf *buf = &report->texts;
	char space[ROW_WORDS_BYTES];
	size_t last = buf->len;
	int rc = 0;

	if (!count)
		return buf_add_text(buf, row_words(row, space));
	if (row->kind == ROW_AMBIGUOUS)
		rc = buf_printf(buf, "(ambiguous: one of %zu stacks)", frames->part_count + 1);
	for (size_t i = count; !rc && i--;)
		rc = add_frame(report, &frames->items[i], &last);
	return rc;
}

/* ---------------------------------------------------------------- lines */

static int add_row(struct folded_report *report, uint32_t number, struct frames *frames)
{
	const struct row *row = &report->comparison->rows[number];
	struct change change = row_change(report->comparison, row);
	struct line line = {.at = report->texts.len,
		.old = change.old.requested_bytes,
		.new = change.new.requested_bytes};
	int rc;

	if (!line.old && !line.new)
		return 0;
	if (report->view->group == GROUP_HEAP) {
		rc = row->heap ? clean_hex(&report->texts, row->heap) :
				 buf_add_text(&report->texts, "(heap not known)");
	} else {
		rc = view_frames(report->view, number, frames);
		if (!rc)
			rc = add_stack(report, row, frames);
	}
	if (!rc)
		rc = buf_add(&report->texts, "", 1);
	if (!rc)
		rc = array_grow((void **)&report->lines, &report->cap, report->count,
			sizeof(*report->lines));
	if (!rc)
		report->lines[report->count++] = line;
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

static int by_text(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	if (order)
		return order;
	if (x->old != y->old)
		return x->old < y->old ? -1 : 1;
	return x->new < y->new ? -1 : x->new > y->new;
}

/* Adds a line to another one of the same text; false when it is not one, or there is no room for
 * the sum: two lines mean the same. */
static bool unite(struct line *to, const struct line *more)
{
	if (strcmp(to->text, more->text) != 0 || to->old > UINT64_MAX - more->old ||
		to->new > UINT64_MAX - more->new)
		return false;
	to->old += more->old;
	to->new += more->new;
	return true;
}

static void put_lines(struct folded_report *report, struct out *out)
{
	struct line *lines = report->lines;
	size_t next;

	for (size_t i = 0; i < report->count; i++)
		lines[i].text = report->texts.data + lines[i].at;
	if (report->count)
		qsort(lines, report->count, sizeof(*lines), by_text);
	for (size_t i = 0; i < report->count && !out->err.code; i = next) {
		for (next = i + 1; next < report->count && unite(&lines[i], &lines[next]);)
			next++;
		out_text(out, lines[i].text);
		out_char(out, ' ');
		out_number(out, lines[i].old, 10, 0);
		out_char(out, ' ');
		out_number(out, lines[i].new, 10, 0);
		out_char(out, '\n');
	}
}

void report_folded(struct out *out, const struct view *view, const struct report_style *style)
{
	struct folded_report report = {.view = view, .comparison = view->comparison};

	(void)style; /* the tools that read this want decimal numbers */
	buf_init(&report.texts);
	if (!add_rows(&report))
		put_lines(&report, out);
	else if (!out->err.code)
		err_set(&out->err, ERR_NOMEM, NULL, NULL);
	free(report.lines);
	buf_release(&report.texts);
}
