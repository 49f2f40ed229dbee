/*
 * Buffered output that appears completely or not at all.
 *
 * Bytes for a file go to a temporary name in the same folder; out_commit() flushes the file to the
 * disk and renames it. Until then, and after out_abort() or an interrupt, the old file is unchanged
 * and nothing new remains. A symbolic link stays a link, and a file keeps its access rights where
 * the system has them (POSIX). Standard output (path NULL or "-") and devices are written directly.
 * The first error is kept and returned by out_commit(), so writers need not check each call.
 *
 * An output opened with OUT_NEW replaces nothing: opening fails if the name exists, even as a
 * dangling link, and committing fails if the name has been taken meanwhile.
 */
#ifndef CORE_IO_OUT_H
#define CORE_IO_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/base/os.h"

#define OUT_BUFFER_BYTES ((size_t)256 << 10)

enum {
	OUT_NEW = 1, /* never replaces a file */
	OUT_GZIP = 2, /* compressed with gzip while it is written */
	OUT_OVERWRITE = 4, /* without out_check() */
};

struct out_zip;

struct out {
	struct os_file file;
	char *path, *temp; /* temp is NULL if bytes are written directly */
	char *buffer;
	size_t len;
	struct err err;
	uint64_t bytes; /* bytes written so far, before compression */
	struct out_zip *zip; /* NULL: not compressed */
	bool is_new;
};

/* Switches the protection of the files that out_check() recognizes on or off: dumps, UMDH's logs
 * and comparisons, recordings, minidumps, ETW logs and packed files. Programs switch it on at their
 * start; --overwrite switches it off. While it is on, out_check() and the functions that open an
 * output return -ERR_KEPT if path is such a file. Otherwise out_check() returns 0. */
void out_protect(bool is_on);
int out_check(const char *path, struct err *err);

/* Returns 0, -ERR_CREATE or -ERR_KEPT; then nothing is open. */
int out_open(struct out *out, const char *path, struct err *err);

/* Returns true if the name ends in ".gz", in either case: such an output is compressed. */
bool out_is_packed_name(const char *path);

/* Creates the missing folders in the path, for this user alone. Failures surface when an output is
 * opened. */
void out_make_folders(const char *path);

/* As out_open(), with flags of OUT_*. A new output also returns -ERR_EXISTS if its name is taken;
 * so does out_commit() if the name has been taken since. */
int out_open_as(struct out *out, const char *path, unsigned flags, struct err *err);

void out_write(struct out *out, const void *bytes, size_t len);
void out_text(struct out *out, const char *text);
void out_printf(struct out *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* Inline because reports are written in pieces of a few bytes. */
static inline void out_char(struct out *out, char c)
{
	if (out->len < OUT_BUFFER_BYTES)
		out->buffer[out->len++] = c;
	else
		out_write(out, &c, 1);
}

/* Writes text as text_harmless() would change it. */
void out_harmless(struct out *out, const char *text);

/* Writes a number to base 10 or 16 (lower-case), right-aligned with blanks to width, which is at
 * most 100; a longer number takes the columns it needs. sign, unless 0, precedes the digits. */
void out_number(struct out *out, uint64_t value, unsigned base, unsigned width);
void out_signed(struct out *out, char sign, uint64_t value, unsigned base, unsigned width);

/* Writes upper-case hexadecimal without prefix or padding, as UMDH does. */
void out_hex(struct out *out, uint64_t value);

/* Fast path for many small pieces. out_room() returns room for len bytes, which must be far fewer
 * than the buffer; the caller adds the bytes it used to out->len. out_hex_digits() writes the
 * digits of value to to[] and returns their number; the bytes after them are undefined. */
char *out_room(struct out *out, size_t len);
size_t out_hex_digits(char to[16], uint64_t value);

/* Finishes and closes. Returns 0, or the first error with no file left. */
int out_commit(struct out *out, struct err *err);

/* Further names in the same folder for a new output whose name has been taken. */
struct out_names {
	/* Sets the next name, which is copied, and returns 0; or returns an error, also in *err, at
	 * the end. */
	int (*next)(void *ctx, const char **path, struct err *err);
	void *ctx;
};

/* As out_commit(); the file gets the first of these names that is free. */
int out_commit_as(struct out *out, const struct out_names *names, struct err *err);

/* Closes without leaving a file. */
void out_abort(struct out *out);

/* Removes the temporary file of the open output; call it in the handler of os_on_interrupt(). */
void out_interrupted(void);

#endif
