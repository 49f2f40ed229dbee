/*
 * A text to be read, whatever it is packed in: a file or standard input; UTF-8, or UTF-16 with a
 * byte order mark (PowerShell's redirection); plain or gzip. Readers get UTF-8 without a mark, and what mail or
 * an editor changed as it was printed (core/dump/pasted.h).
 */
#ifndef CORE_DUMP_SOURCE_H
#define CORE_DUMP_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/dump.h"

#define SOURCE_PEEK_BYTES ((size_t)256 << 10)

struct source;

/* Opens path ("-" is standard input). 0, -ERR_OPEN or -ERR_READ. */
int source_open(struct source **source, const char *path, struct err *err);
void source_close(struct source *source); /* NULL is nothing */

/* What messages call it: the path, or "standard input". */
const char *source_name(const struct source *source);

/* The next bytes, to be read again: how many are at hand, SOURCE_PEEK_BYTES or what is left of the
 * text; valid until the next call. Or a negative error code. */
int64_t source_peek(struct source *source, const char **bytes, struct err *err);

/* Reads up to len bytes: how many, 0 at the end; -ERR_READ; -ERR_CUT when packed bytes
 * end in the middle, after all that could be unpacked was handed out. */
int64_t source_read(struct source *source, void *bytes, size_t len, struct err *err);

/* The same for who wants a struct dump_source (core/dump/dump.h), which borrows source. */
struct dump_source source_stream(struct source *source);

/* True when the bytes are those of a regular file, which may then also be read at any place; the
 * text is what lies between *from (behind a mark) and *to. */
bool source_is_plain(const struct source *source, uint64_t *from, uint64_t *to);

/* Reads exactly len bytes of a plain source; from any thread. Where source_read() goes on after that
 * is not known. 0 or -ERR_READ. */
int source_read_at(
	struct source *source, uint64_t offset, void *bytes, size_t len, struct err *err);

/*
 * Lines of a source, through a window that moves over it.
 *
 * The window always holds what is left of the source or 2 * DUMP_LINE_MAX bytes, whichever is
 * less, when a line is asked for. Behind what was read are 16 zero bytes, so that looking at a few
 * bytes at once needs no care at the end.
 */

struct lines {
	const struct dump_source *source;
	struct err *err;
	char *window, *at, *end; /* what was read and not yet used: at to end */
	bool at_eof; /* the source has no more than that */
	bool no_newline; /* the last line had no line end */
	uint64_t number; /* of the last line */
};

struct line {
	const char *text;
	size_t len; /* without the line end */
	bool is_long; /* over DUMP_LINE_MAX: len tells what is at hand, the rest is passed over */
};

/* source and err must outlive lines. */
void lines_init(struct lines *lines, const struct dump_source *source, struct err *err);
void lines_release(struct lines *lines);

/* 1 and the next line (valid until the one after it), 0 at the end, or the source's error. */
int lines_next(struct lines *lines, struct line *line);

#endif
