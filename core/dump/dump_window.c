/* Reads a dump from a source, in parts. A window moves over the source. A part ends before a line
 * that does not start with a TAB: the last such line in the window. So an entry's stack is usually
 * complete. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/dump/dump.h"
#include "core/dump/scanner.h"

#define WINDOW_BYTES ((size_t)1 << 20)

struct line_window {
	char *bytes;
	size_t len;
	bool at_eof; /* the source has no more bytes */
	/* an overlong line filled the window and was scanned; the rest of the line must be
	 * skipped */
	bool in_line;
};

static int fill(struct line_window *window, const struct dump_source *source, struct err *err)
{
	while (!window->at_eof && window->len < WINDOW_BYTES) {
		int64_t got = source->read(
			source->ctx, window->bytes + window->len, WINDOW_BYTES - window->len, err);

		if (got < 0)
			return (int)got;
		window->at_eof = !got;
		window->len += (size_t)got;
	}
	return 0;
}

/* Returns the offset of the start of the window's last line. Ignores lines that start with a TAB,
 * unless `with_tab` is set. Returns 0 if no such line exists. */
static size_t last_line(const struct line_window *window, bool with_tab)
{
	for (size_t at = window->len; at > 1; at--) {
		if (window->bytes[at - 2] == '\n' && (with_tab || window->bytes[at - 1] != '\t'))
			return at - 1;
	}
	return 0;
}

static void drop(struct line_window *window, size_t len)
{
	window->len -= len;
	memmove(window->bytes, window->bytes + len, window->len);
}

static void pass_line(struct line_window *window)
{
	const char *newline = memchr(window->bytes, '\n', window->len);

	drop(window, newline ? (size_t)(newline + 1 - window->bytes) : window->len);
	window->in_line = !newline;
}

/* Scans a full window up to the start of its last line, and keeps that line for the next part.
 * Scans the final window to its end. */
static int scan_window(struct dump_scanner *scanner, struct line_window *window)
{
	size_t len = window->at_eof ? window->len : last_line(window, false);
	bool is_split = !len;
	char behind[DUMP_PAD_BYTES];
	int rc;

	if (is_split)
		len = last_line(window, true);
	if (is_split && !len && !window->at_eof) {
		window->in_line = true;
		len = window->len;
	}
	scanner->is_last = window->at_eof;
	memcpy(behind, window->bytes + len, DUMP_PAD_BYTES);
	memset(window->bytes + len, 0, DUMP_PAD_BYTES);
	rc = scan_part(scanner, window->bytes, len, is_split);
	memcpy(window->bytes + len, behind, DUMP_PAD_BYTES);
	drop(window, len);
	return rc;
}

static int scan_all(struct dump_scanner *scanner, struct line_window *window,
	const struct dump_source *source, struct err *cut)
{
	int rc = 0;

	while (!rc && !(window->at_eof && !window->len)) {
		rc = fill(window, source, cut);
		if (rc == -ERR_CUT) {
			dump_scanner_cut(scanner);
			window->at_eof = true;
			rc = 0;
		} else if (rc) {
			*scanner->err = *cut;
		}
		if (!rc && window->in_line)
			pass_line(window);
		else if (!rc)
			rc = scan_window(scanner, window);
	}
	return rc ? rc : dump_scanner_end(scanner);
}

int dump_scanner_read(
	struct dump_scanner *scanner, const struct dump_source *source, struct err *err)
{
	struct line_window window = {.bytes = xmalloc(WINDOW_BYTES + DUMP_PAD_BYTES)};
	struct err cut = {0};
	int rc = scan_all(scanner, &window, source, &cut);

	if (cut.code == ERR_CUT && (rc == -ERR_CUT || rc == -ERR_EMPTY)) {
		rc = -ERR_CUT;
		if (err)
			*err = cut;
	}
	free(window.bytes);
	return rc;
}

int dump_scan(const struct dump_source *source, const struct dump_sink *sink, struct err *err)
{
	struct dump_scanner *scanner = dump_scanner_new(source->name, sink, err);
	int rc = dump_scanner_read(scanner, source, err);

	dump_scanner_free(scanner);
	return rc;
}
