/*
 * Buffered output that appears completely or not at all.
 *
 * A file is first written under a temporary name in the same folder. out_commit() flushes the file
 * to the disk and renames it. Until then, and after out_abort() or an interrupt, any old file is
 * unchanged and no new file remains. A symbolic link stays a link, and a file keeps its access
 * rights if the system has them (POSIX). Standard output (path NULL or "-") and devices are written
 * directly. The first error is stored and returned by out_commit(), so callers need not check each
 * call.
 *
 * An output opened with OUT_NEW never replaces a file: opening fails if the name exists, even as a
 * dangling link, and committing fails if the name was taken in the meantime.
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
	OUT_GZIP = 2, /* compress with gzip while writing */
	OUT_OVERWRITE = 4, /* skip out_check() */
};

struct out_zip;

struct out {
	struct os_file file;
	char *path, *temp; /* temp is NULL if output goes directly to path */
	char *buffer;
	size_t len;
	struct err err;
	uint64_t bytes; /* bytes written so far, before compression */
	struct out_zip *zip; /* NULL: not compressed */
	bool is_new;
};

/* Returns the name of the kind of text at `path`, if no output may replace it, or NULL. */
typedef const char *out_text_kind(const char *path);

/* Enables the protection of the files that out_check() recognizes: dumps, UMDH's logs and
 * comparisons, recordings, minidumps, ETW logs, packed files, programs and their symbols, and lists
 * for --suppress and --strip-file. Programs enable it at their start with file_kind_kept(), which
 * recognizes the texts that they read; NULL, for --overwrite, disables it. While the protection is
 * enabled, out_check() and the functions that open an output return -ERR_KEPT for the path of such a
 * file. Otherwise out_check() returns 0. */
void out_protect(out_text_kind *find);
int out_check(const char *path, struct err *err);

/* Returns 0, -ERR_CREATE or -ERR_KEPT. After an error, nothing is open. */
int out_open(struct out *out, const char *path, struct err *err);

/* Returns true if the name ends in ".gz", ignoring case. Such an output is compressed. */
bool out_is_packed_name(const char *path);

/* Creates the missing folders in the path, accessible only to this user. Errors are ignored here:
 * opening the output will then fail. */
void out_make_folders(const char *path);

/* Like out_open(), with OUT_* flags. With OUT_NEW, also returns -ERR_EXISTS if the name is taken.
 * out_commit() returns -ERR_EXISTS if the name was taken after opening. */
int out_open_as(struct out *out, const char *path, unsigned flags, struct err *err);

void out_write(struct out *out, const void *bytes, size_t len);
void out_text(struct out *out, const char *text);
void out_printf(struct out *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* Inline, because reports are written in pieces of a few bytes. */
static inline void out_char(struct out *out, char c)
{
	if (out->len < OUT_BUFFER_BYTES)
		out->buffer[out->len++] = c;
	else
		out_write(out, &c, 1);
}

/* Writes `text`, sanitized as by text_harmless(). */
void out_harmless(struct out *out, const char *text);

/* Write a number in base 10 or 16 (lower-case), right-aligned with blanks to `width` columns (at
 * most 100). A number that does not fit takes more columns. `sign` precedes the digits unless it is
 * 0. */
void out_number(struct out *out, uint64_t value, unsigned base, unsigned width);
void out_signed(struct out *out, char sign, uint64_t value, unsigned base, unsigned width);

/* Writes upper-case hexadecimal digits without prefix or padding, the format used by UMDH. */
void out_hex(struct out *out, uint64_t value);

/* Fast path for many small pieces. out_room() returns room for `len` bytes, which must be far fewer
 * than the size of the buffer. The caller adds the number of used bytes to out->len.
 * out_hex_digits() writes the digits of `value` to to[] and returns the number of digits; the
 * remaining elements of to[] are undefined. */
char *out_room(struct out *out, size_t len);
size_t out_hex_digits(char to[16], uint64_t value);

/* Finishes and closes the output. Returns 0, or the first error, after which no file is left. */
int out_commit(struct out *out, struct err *err);

/* Alternative names in the same folder, for a new output whose name was taken. */
struct out_names {
	/* Sets *path to the next name, which the caller copies, and returns 0. When no names are
	 * left, fills *err and returns an error. */
	int (*next)(void *ctx, const char **path, struct err *err);
	void *ctx;
};

/* Like out_commit(), but gives the file the first free name from `names` if the output's name is
 * taken. */
int out_commit_as(struct out *out, const struct out_names *names, struct err *err);

/* Closes the output without leaving a file. */
void out_abort(struct out *out);

/* Removes the open output's temporary file. Call this in the handler of os_on_interrupt(). */
void out_interrupted(void);

#endif
