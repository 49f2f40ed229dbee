/* Annotations for GitHub Actions: a line for each stack that exceeds a limit. */
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/text.h"
#include "diff/match/row_series.h"
#include "diff/report/clean.h"
#include "diff/report/report.h"
#include "diff/report/worst.h"

#define ANNOTATIONS_MAX 10 /* GitHub shows this many for a step */

/* Appends text as a message or as the value of a property. Both need other escapes. */
static void add_escaped(struct buf *line, const char *text, bool is_property)
{
	for (; *text; text++) {
		if (*text == '%' || *text == '\r' || *text == '\n' ||
			(is_property && (*text == ':' || *text == ',')))
			buf_printf(line, "%%%02X", (unsigned char)*text);
		else
			buf_add(line, text, 1);
	}
}

static void use_slashes(char *path)
{
	for (; *path; path++)
		*path = *path == '\\' ? '/' : *path;
}

/* Appends "file=src/leak.c,line=41,". The path is relative to GitHub's workspace if it is in it. */
static void add_place(struct buf *line, const struct frame *frame)
{
	char *workspace = os_env("GITHUB_WORKSPACE");
	const size_t len = workspace ? strlen(workspace) : 0;
	struct buf file;
	size_t from = 0;

	buf_init(&file);
	clean_text(&file, frame->file, true);
	use_slashes(file.data);
	if (len) {
		use_slashes(workspace);
		from = text_begins(file.data, workspace) && file.data[len] == '/' ? len + 1 : 0;
	}
	buf_add_text(line, "file=");
	add_escaped(line, file.data + from, true);
	buf_printf(line, ",line=%u,", (unsigned)frame->line);
	buf_release(&file);
	free(workspace);
}

static bool is_over(const struct delta *delta, uint64_t bytes, uint64_t blocks)
{
	return (delta->requested_bytes > 0 && (uint64_t)delta->requested_bytes > bytes) ||
	       (delta->block_count > 0 && (uint64_t)delta->block_count > blocks);
}

void report_annotations(struct buf *lines, struct view *view, const struct growth_verdict *verdict,
	uint64_t row_bytes, uint64_t row_blocks, struct strip *strip)
{
	uint32_t worst[ANNOTATIONS_MAX];
	size_t count = verdict->over.len ? worst_find(view, worst, ANNOTATIONS_MAX) : 0;
	struct frames frames;
	struct buf words;

	frames_init(&frames);
	buf_init(&words);
	for (size_t i = 0; i < count; i++) {
		struct delta delta = row_delta(view->comparison, &view->comparison->rows[worst[i]]);
		const struct frame *frame;

		if (!verdict->is_sum_over && !is_over(&delta, row_bytes, row_blocks))
			continue;
		buf_clear(&words);
		worst_add_growth(&words, view->comparison, delta);
		buf_add_text(&words, ": ");
		frame = worst_add_name(&words, view, worst[i], strip, &frames);
		buf_add_text(lines, "::error ");
		if (frame && frame->file && frame->line)
			add_place(lines, frame);
		buf_add_text(lines, "title=memory growth::");
		add_escaped(lines, words.data, false);
		buf_add_text(lines, "\n");
	}
	buf_release(&words);
	frames_release(&frames);
}
