/*
 * A text to be read, whatever it is packed in: a file or standard input; UTF-8, or UTF-16 with a
 * byte order mark (PowerShell's redirection); plain or gzip. Readers get UTF-8 without a mark.
 */
#ifndef CORE_SOURCE_H
#define CORE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define SOURCE_PEEK_BYTES ((size_t)256 << 10)

struct source;

/* Opens path ("-" is standard input). 0, -ERR_OPEN, -ERR_READ or -ERR_NOMEM. */
int source_open(struct source **source, const char *path, struct err *err);
void source_close(struct source *source); /* NULL is nothing */

/* What messages call it: the path, or "standard input". */
const char *source_name(const struct source *source);

/* The next bytes, to be read again: how many are at hand, SOURCE_PEEK_BYTES or what is left of the
 * text; valid until the next call. Or a negative error code. */
int64_t source_peek(struct source *source, const char **bytes, struct err *err);

/* Reads up to len bytes: how many, 0 at the end; -ERR_READ, -ERR_NOMEM; -ERR_CUT when packed bytes
 * end in the middle, after all that could be unpacked was handed out. */
int64_t source_read(struct source *source, void *bytes, size_t len, struct err *err);

/* True when the bytes are those of a regular file, which may then also be read at any place; the
 * text is what lies between *from (behind a mark) and *to. */
bool source_is_plain(const struct source *source, uint64_t *from, uint64_t *to);

/* Reads exactly len bytes of a plain source; from any thread. Where source_read() goes on after that
 * is not known. 0 or -ERR_READ. */
int source_read_at(
	struct source *source, uint64_t offset, void *bytes, size_t len, struct err *err);

#endif
