/* Reading a dump from where bytes come from: a window moves over them and is scanned in parts. */
#include <stdlib.h>
#include <string.h>

#include "core/dump.h"
#include "core/scanner.h"
#include "core/source.h"

#define WINDOW_BYTES ((size_t)1 << 20)

struct window {
	char *bytes;
	size_t len;
	bool at_eof; /* there is no more than that */
	bool in_line; /* a line that fills the window was scanned: its rest is to be passed over */
};

static int fill(struct window *window, const struct dump_source *source, struct err *err)
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

/* Where the window's last line starts; of those that do not start with a TAB when there is any. 0:
 * nowhere. */
static size_t last_line(const struct window *window, bool with_tab)
{
	for (size_t at = window->len; at > 1; at--) {
		if (window->bytes[at - 2] == '\n' && (with_tab || window->bytes[at - 1] != '\t'))
			return at - 1;
	}
	return 0;
}

/* Takes bytes off the front of the window. */
static void drop(struct window *window, size_t len)
{
	window->len -= len;
	memmove(window->bytes, window->bytes + len, window->len);
}

static void pass_line(struct window *window)
{
	const char *newline = memchr(window->bytes, '\n', window->len);

	drop(window, newline ? (size_t)(newline + 1 - window->bytes) : window->len);
	window->in_line = !newline;
}

/* Scans a full window, or the last one. What stands behind the part is the next one's. */
static int scan_window(struct dump_scanner *scanner, struct window *window)
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

static int scan_all(struct dump_scanner *scanner, struct window *window,
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
	struct window window = {.bytes = malloc(WINDOW_BYTES + DUMP_PAD_BYTES)};
	struct err cut = {0};
	int rc = -ERR_NOMEM;

	if (window.bytes)
		rc = scan_all(scanner, &window, source, &cut);
	if (rc == -ERR_NOMEM)
		err_set(err, ERR_NOMEM, source->name, NULL);
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
	int rc = scanner ? dump_scanner_read(scanner, source, err) : -ERR_NOMEM;

	dump_scanner_free(scanner);
	return rc;
}

static int64_t read_source(void *ctx, void *bytes, size_t len, struct err *err)
{
	return source_read(ctx, bytes, len, err);
}

int dump_scan_file(const char *path, const struct dump_sink *sink, struct err *err)
{
	struct dump_source source = {.read = read_source};
	struct source *file;
	int rc = source_open(&file, path, err);

	if (rc)
		return rc;
	source.ctx = file;
	source.name = source_name(file);
	rc = dump_scan(&source, sink, err);
	source_close(file);
	return rc;
}
