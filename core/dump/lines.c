/* Reads the lines of a source through a window. Before a line is returned, the window is refilled
 * if it contains less than two lines of maximum length. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/dump/source.h"

#define WINDOW_BYTES ((size_t)1 << 20)
#define PAD_BYTES 16

void lines_init(struct lines *lines, const struct dump_source *source, struct err *err)
{
	*lines = (struct lines){.source = source, .err = err};
	lines->window = xcalloc(1, WINDOW_BYTES + PAD_BYTES);
	lines->at = lines->end = lines->window;
}

void lines_release(struct lines *lines)
{
	free(lines->window);
	*lines = (struct lines){0};
}

/* Refills the window, moving its contents. Returns 0 or the source's error. */
static int lines_refill(struct lines *lines)
{
	memmove(lines->window, lines->at, (size_t)(lines->end - lines->at));
	lines->end -= lines->at - lines->window;
	lines->at = lines->window;
	while (!lines->at_eof && lines->end < lines->window + WINDOW_BYTES) {
		int64_t got = lines->source->read(lines->source->ctx, lines->end,
			(size_t)(lines->window + WINDOW_BYTES - lines->end), lines->err);

		if (got < 0)
			return (int)got;
		lines->at_eof = !got;
		lines->end += got;
	}
	memset(lines->end, 0, PAD_BYTES);
	return 0;
}

/* Skips the rest of a line that does not fit into the window. */
static int skip_rest(struct lines *lines)
{
	for (;;) {
		char *newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
		int rc;

		lines->at = newline ? newline + 1 : lines->end;
		if (newline || lines->at_eof)
			return 0;
		rc = lines_refill(lines);
		if (rc)
			return rc;
	}
}

int lines_next(struct lines *lines, struct line *line)
{
	char *newline;
	int rc;

	if (!lines->at_eof && lines->end - lines->at < 2 * DUMP_LINE_MAX) {
		rc = lines_refill(lines);
		if (rc)
			return rc;
	}
	if (lines->at == lines->end)
		return 0;
	lines->number++;
	newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
	lines->no_newline = !newline;
	line->text = lines->at;
	line->len = (size_t)((newline ? newline : lines->end) - lines->at);
	line->is_long = line->len > DUMP_LINE_MAX;
	lines->at += line->len + !!newline;
	if (line->is_long && !newline) {
		/* the window will move; the first two bytes are enough to identify a comment */
		line->len = 2;
		line->text = line->text[0] == '/' && line->text[1] == '/' ? "//" : "  ";
		/* Only comments may be too long. The caller treats any other long line as an
		 * error. */
		rc = line->text[0] == '/' ? skip_rest(lines) : 0;
		return rc ? rc : 1;
	}
	if (line->len && line->text[line->len - 1] == '\r')
		line->len--;
	return 1;
}
