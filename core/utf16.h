/* UTF-16 text with a byte order mark to UTF-8: what PowerShell's redirection makes of an output. */
#ifndef CORE_UTF16_H
#define CORE_UTF16_H

#include <stdbool.h>
#include <stddef.h>

#include "core/feed.h"

struct utf16 {
	struct feed *from; /* behind the mark */
	const char *name; /* for messages */
	bool is_big; /* of two bytes the first one is the high one */
};

/* Bytes that the text must have at hand to be read; UTF-8 of one character. */
#define UTF16_MIN_BYTES 4

/* A feed_reader; ctx is a struct utf16, len at least UTF16_MIN_BYTES. Half a pair becomes U+FFFD;
 * half a unit at the end is -ERR_CUT when all before it was handed out. */
int64_t utf16_read(void *ctx, void *bytes, size_t len, struct err *err);

/* The same for bytes at hand: units little-endian ones, up to a NUL among them. Writes whole characters
 * that fit into size bytes, with a NUL behind, and returns how many bytes all would need without it;
 * text may be NULL when size is 0. */
size_t utf16_text(const unsigned char *bytes, size_t units, char *text, size_t size);

#endif
