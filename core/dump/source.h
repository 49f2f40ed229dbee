/*
 * A text source: a file or standard input, in UTF-8 or in UTF-16 with a byte order mark
 * (PowerShell's redirection), plain or gzip. Readers receive UTF-8 without a byte order mark.
 * Damage done by mail programs and editors is repaired (core/dump/pasted.h).
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

/* Opens `path` ("-": standard input). Returns 0, -ERR_OPEN or -ERR_READ. */
int source_open(struct source **source, const char *path, struct err *err);
void source_close(struct source *source); /* source may be NULL */

/* Returns the name for messages: the path, or "standard input". */
const char *source_name(const struct source *source);

/* Returns the next bytes without consuming them: SOURCE_PEEK_BYTES bytes, or the rest of the text
 * if that is less. `*bytes` is valid until the next call. Returns the number of bytes or a negative
 * error code. */
int64_t source_peek(struct source *source, const char **bytes, struct err *err);

/* Reads up to `len` bytes. Returns the number of bytes read, 0 at the end, or an error: -ERR_READ;
 * -ERR_CUT if compressed data ends early; -ERR_ENCODINGS if UTF-16 text continues as 8-bit text.
 * -ERR_CUT and -ERR_ENCODINGS are returned only after all bytes before that place. */
int64_t source_read(struct source *source, void *bytes, size_t len, struct err *err);

/* Returns a struct dump_source (core/dump/dump.h) that reads from `source`, which must outlive
 * it. */
struct dump_source source_stream(struct source *source);

/* Returns true if the source is a regular file whose bytes need no conversion. Such a file can also
 * be read at any offset. Its text, which excludes a byte order mark, lies at offsets [*from,
 * *to). */
bool source_is_plain(const struct source *source, uint64_t *from, uint64_t *to);

/* Reads exactly `len` bytes of a plain source, from any thread. After this call the position of
 * source_read() is undefined. Returns 0 or -ERR_READ. */
int source_read_at(
	struct source *source, uint64_t offset, void *bytes, size_t len, struct err *err);

/*
 * Lines of a source, read through a window that moves over the source.
 *
 * Before a line is returned, the window contains 2 * DUMP_LINE_MAX bytes, or the rest of the source
 * if that is less. 16 zero bytes follow, so that a reader may look at several bytes at once.
 */

struct lines {
	const struct dump_source *source;
	struct err *err;
	char *window, *at, *end; /* [at, end) is unread */
	bool at_eof; /* the source has no more bytes */
	bool no_newline; /* the last line returned had no line end */
	uint64_t number; /* number of the last line returned */
};

struct line {
	const char *text;
	size_t len; /* without the line end */
	/* The line is longer than DUMP_LINE_MAX. `len` covers only the bytes in the window; the
	 * remaining bytes are skipped. */
	bool is_long;
};

/* `source` and `err` must outlive `lines`. */
void lines_init(struct lines *lines, const struct dump_source *source, struct err *err);
void lines_release(struct lines *lines);

/* Gets the next line, which is valid until the next call. Returns 1, 0 at the end, or the source's
 * error. */
int lines_next(struct lines *lines, struct line *line);

#endif
