/*
 * A text to be read from a file or standard input: UTF-8, or UTF-16 with a byte order mark
 * (PowerShell's redirection); plain or gzip. Readers get UTF-8 without a mark, with changes by mail
 * or an editor repaired (core/dump/pasted.h).
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

/* Opens path ("-": standard input). Returns 0, -ERR_OPEN or -ERR_READ. */
int source_open(struct source **source, const char *path, struct err *err);
void source_close(struct source *source); /* source may be NULL */

/* Returns the name for messages: the path, or "standard input". */
const char *source_name(const struct source *source);

/* Returns the next bytes without consuming them: SOURCE_PEEK_BYTES or the rest of the text, valid
 * until the next call. Returns their number or a negative error code. */
int64_t source_peek(struct source *source, const char **bytes, struct err *err);

/* Reads up to len bytes. Returns their number, 0 at the end; -ERR_READ; or -ERR_CUT if compressed
 * data ends early, after everything that could be unpacked was returned. */
int64_t source_read(struct source *source, void *bytes, size_t len, struct err *err);

/* Wraps source, which must outlive the result, as a struct dump_source (core/dump/dump.h). */
struct dump_source source_stream(struct source *source);

/* Returns true for the bytes of a regular file, which may also be read at any offset; the text lies
 * from *from (after a byte order mark) to *to. */
bool source_is_plain(const struct source *source, uint64_t *from, uint64_t *to);

/* Reads exactly len bytes of a plain source, from any thread. After that the position of
 * source_read() is undefined. Returns 0 or -ERR_READ. */
int source_read_at(
	struct source *source, uint64_t offset, void *bytes, size_t len, struct err *err);

/*
 * Lines of a source, read through a window that moves over it.
 *
 * Before a line is returned, the window holds the rest of the source or 2 * DUMP_LINE_MAX bytes,
 * whichever is less. 16 zero bytes follow, so that a reader may look at several bytes at once.
 */

struct lines {
	const struct dump_source *source;
	struct err *err;
	char *window, *at, *end; /* the unused bytes: at to end */
	bool at_eof; /* the source has no more bytes */
	bool no_newline; /* the last line had no line end */
	uint64_t number; /* of the last line */
};

struct line {
	const char *text;
	size_t len; /* without the line end */
	/* Longer than DUMP_LINE_MAX: len is what the window holds, the rest is skipped. */
	bool is_long;
};

/* source and err must outlive lines. */
void lines_init(struct lines *lines, const struct dump_source *source, struct err *err);
void lines_release(struct lines *lines);

/* Returns 1 and the next line (valid until the next call), 0 at the end, or the source's error. */
int lines_next(struct lines *lines, struct line *line);

#endif
