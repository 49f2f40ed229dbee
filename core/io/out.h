/*
 * Buffered output that is there completely or not at all.
 *
 * To a file, bytes go to a temporary name in the same folder; out_commit() puts them on the disk
 * and renames. Until then, and after out_abort() or an interrupt, the old file is untouched and
 * nothing new is left. A symbolic link stays one, and a file keeps its access rights where the system
 * has such (POSIX). To standard output (path NULL or "-") or to a device bytes go straight. The first
 * failure is kept and reported by out_commit(): writers need not look at each call.
 *
 * An output that was opened as a new one takes nobody's place: where anything has the name, be it a link
 * that leads nowhere, it is not opened, and when something came there meanwhile it is not put there.
 */
#ifndef CORE_IO_OUT_H
#define CORE_IO_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/base/os.h"

#define OUT_BUFFER_BYTES ((size_t)256 << 10)

enum {
	OUT_NEW = 1, /* never in the place of what is there */
	OUT_GZIP = 2, /* packed by zlib in gzip's form, as it is written */
	OUT_OVERWRITE = 4, /* without out_check() */
};

struct out_zip;

struct out {
	struct os_file file;
	char *path, *temp; /* temp is NULL when bytes go straight */
	char *buffer;
	size_t len;
	struct err err;
	uint64_t bytes; /* that were written to it, before they were packed */
	struct out_zip *zip; /* NULL: as they are */
	bool is_new;
};

/*
 * Switches the protection of dumps, UMDH's logs, recordings, minidumps and ETW logs on or off: programs switch it on
 * when they start, and --overwrite off. While it is on, out_check() returns -ERR_KEPT for a path where one of them lies,
 * and so do the functions that open an output. Otherwise it returns 0.
 */
void out_protect(bool is_on);
int out_check(const char *path, struct err *err);

/* Returns 0, -ERR_CREATE or -ERR_KEPT; then nothing is open. */
int out_open(struct out *out, const char *path, struct err *err);

/* Returns true if the name ends in ".gz", in letters of either case: what is written to such a file is packed. */
bool out_is_packed_name(const char *path);

/* Makes the folders in the path that are missing, for this user; an output that is opened then reports what cannot be. */
void out_make_folders(const char *path);

/* The same with flags of OUT_*. Also -ERR_EXISTS, of a new one whose name is taken; out_commit() returns
 * that too, when it was taken since. */
int out_open_as(struct out *out, const char *path, unsigned flags, struct err *err);

void out_write(struct out *out, const void *bytes, size_t len);
void out_text(struct out *out, const char *text);
void out_printf(struct out *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* In line, as reports are put together from pieces of a few bytes. */
static inline void out_char(struct out *out, char c)
{
	if (out->len < OUT_BUFFER_BYTES)
		out->buffer[out->len++] = c;
	else
		out_write(out, &c, 1);
}

/* Text from elsewhere, as text_harmless() makes it. */
void out_harmless(struct out *out, const char *text);

/*
 * A number with digits to base 10 or 16 (lower-case), right-justified by blanks in width, which is at
 * most 100; a wider one takes the room it needs. sign, if any, stands right before the digits.
 */
void out_number(struct out *out, uint64_t value, unsigned base, unsigned width);
void out_signed(struct out *out, char sign, uint64_t value, unsigned base, unsigned width);

/* Upper-case hexadecimal without prefix or padding, as UMDH prints it. */
void out_hex(struct out *out, uint64_t value);

/* The same for a writer of many small pieces: room for len bytes, far less than the buffer; what of
 * them it fills it adds to out->len. How many digits value has, which are in to[]; what is behind them
 * there is anything. */
char *out_room(struct out *out, size_t len);
size_t out_hex_digits(char to[16], uint64_t value);

/* Finishes and closes: 0 or the first error; then no file is left. */
int out_commit(struct out *out, struct err *err);

/* Names in the same folder for an output that was opened as a new one, should its own be taken by now. */
struct out_names {
	/* 0 and the next one, which is copied; or an error, in *err too, when there are no more. */
	int (*next)(void *ctx, const char **path, struct err *err);
	void *ctx;
};

/* The same; the finished file gets the first of these names that is free. */
int out_commit_as(struct out *out, const struct out_names *names, struct err *err);

/* Closes and leaves nothing behind. */
void out_abort(struct out *out);

/* Removes the temporary file of the output that is open; for os_on_interrupt(). */
void out_interrupted(void);

#endif
