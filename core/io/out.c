/*
 * Buffered output: the temporary file and its final name, compression, and fast printing of
 * numbers. Bytes collect in one buffer, and flush() writes or compresses that buffer.
 */
#include "core/io/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/io/file.h"
#include "core/io/interrupt.h"
#include "core/io/temp.h"

#define NUMBER_MAX 20 /* decimal digits of a 64-bit number */
#define NUMBER_WIDTH_MAX 100
#define PACKED_BYTES ((size_t)64 << 10)
#define GZIP_FORM 16 /* added to zlib's window bits: produce a gzip header and trailer */

struct out_zip {
	z_stream stream;
	gz_header head;
	unsigned char packed[PACKED_BYTES];
};

#define GZIP_OS_UNKNOWN 255

#define TEMP_TRIES 3 /* number of names to try if a leftover file cannot be removed */

/* The temporary file that an interrupt removes. There is only one, because a program writes one
 * output at a time. */
static struct interrupt_cleanup temp_open;

/* Creates the temporary file. Removes a leftover of the same name first: a killed process may have
 * had the same process id. */
static int temp_create(struct out *out, char *temp, struct err *err)
{
	int rc;

	os_remove(temp);
	interrupt_cleanup_set(&temp_open, temp);
	rc = os_create(&out->file, temp, true, err);
	if (rc)
		interrupt_cleanup_clear(&temp_open);
	return rc;
}

static int temp_make(struct out *out, const char *path, struct err *err)
{
	size_t size = strlen(path) + 50;
	char *temp = xmalloc(size);
	struct err why;
	int rc = -1;

	for (unsigned tries = 1; rc && tries <= TEMP_TRIES; tries++) {
		if (tries == 1)
			snprintf(temp, size, "%s.%lu.tmp", path, os_pid());
		else
			snprintf(temp, size, "%s.%lu_%u.tmp", path, os_pid(), tries);
		rc = temp_create(out, temp, &why);
	}
	if (rc) {
		free(temp);
		return err_set(err, why.code, path, "%s", why.detail);
	}
	os_copy_rights(&out->file, path);
	out->temp = temp;
	return 0;
}

static void zip_free(struct out_zip *zip)
{
	if (zip)
		deflateEnd(&zip->stream);
	free(zip);
}

static struct out_zip *zip_new(void)
{
	struct out_zip *zip = xcalloc(1, sizeof(*zip));

	if (deflateInit2(&zip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_FORM,
		    MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		memory_out();
	zip->head.os = GZIP_OS_UNKNOWN; /* so that output is the same on every system */
	deflateSetHeader(&zip->stream, &zip->head);
	return zip;
}

/* Opens the destination: standard output, a device, or the temporary file. */
static int place_open(struct out *out, const char *path, bool may_replace, struct err *err)
{
	if (!path) {
		os_stdout(&out->file);
		return 0;
	}
	if (out->is_new && os_exists(path))
		return err_set(err, ERR_EXISTS, path, NULL);
	if (!may_replace && out_check(path, err))
		return -ERR_KEPT;
	return os_is_special(path) ? os_create(&out->file, path, false, err) :
				     temp_make(out, out->path, err);
}

bool out_is_packed_name(const char *path)
{
	size_t len = strlen(path);

	return len >= 3 && path[len - 3] == '.' && text_lower(path[len - 2]) == 'g' &&
	       text_lower(path[len - 1]) == 'z';
}

void out_make_folders(const char *path)
{
	char *folder = xstrdup(path);

	for (char *at = folder + 1; *path && *at; at++) {
		char separator = *at;

		if (separator == ':' || !strchr(folder_separators, separator))
			continue; /* "C:" is a drive, not a folder */
		*at = '\0';
		if (!os_exists(folder))
			os_make_private_folder(folder);
		*at = separator;
	}
	free(folder);
}

int out_open_as(struct out *out, const char *path, unsigned flags, struct err *err)
{
	struct out fresh = {.is_new = flags & OUT_NEW};
	struct err local;
	int rc;

	err = err ? err : &local;
	path = path && strcmp(path, "-") != 0 ? path : NULL;
	fresh.buffer = xmalloc(OUT_BUFFER_BYTES);
	if (path && out_is_packed_name(path) && !os_is_special(path))
		flags |= OUT_GZIP;
	fresh.zip = flags & OUT_GZIP ? zip_new() : NULL;
	if (path)
		fresh.path = fresh.is_new ? xstrdup(path) : os_final_path(path);
	rc = place_open(&fresh, path, flags & OUT_OVERWRITE, err);
	if (rc) {
		zip_free(fresh.zip);
		free(fresh.buffer);
		free(fresh.path);
		return rc;
	}
	*out = fresh;
	return 0;
}

int out_open(struct out *out, const char *path, struct err *err)
{
	return out_open_as(out, path, 0, err);
}

static void append_bytes(struct out *out, const void *bytes, size_t len)
{
	if (!out->err.code && len)
		os_write(&out->file, bytes, len, out->path ? out->path : "standard output",
			&out->err);
}

/* Compresses the buffer. At the end, also writes the data that zlib still holds. */
static void pack(struct out *out, bool is_end)
{
	z_stream *stream = &out->zip->stream;
	int rc;

	stream->next_in = (unsigned char *)out->buffer;
	stream->avail_in = (unsigned)out->len;
	do {
		stream->next_out = out->zip->packed;
		stream->avail_out = PACKED_BYTES;
		rc = deflate(stream, is_end ? Z_FINISH : Z_NO_FLUSH);
		append_bytes(out, out->zip->packed, PACKED_BYTES - stream->avail_out);
	} while (rc == Z_OK && !stream->avail_out && !out->err.code);
	/* This cannot happen, but if it did, an incomplete file must not count as written. */
	if (rc == Z_STREAM_ERROR)
		err_set(&out->err, ERR_WRITE, out->path, "cannot be compressed");
}

/* Writes out the buffer and empties it. All output passes through this function. */
static void flush(struct out *out, bool is_end)
{
	if (!out->zip)
		append_bytes(out, out->buffer, out->len);
	else if (!out->err.code)
		pack(out, is_end);
	out->bytes += out->len;
	out->len = 0;
}

char *out_room(struct out *out, size_t len)
{
	if (OUT_BUFFER_BYTES - out->len < len)
		flush(out, false);
	return out->buffer + out->len;
}

void out_write(struct out *out, const void *bytes, size_t len)
{
	const char *from = bytes;

	if (len <= OUT_BUFFER_BYTES - out->len) {
		memcpy(out->buffer + out->len, from, len);
		out->len += len;
		return;
	}
	while (len) {
		size_t part = OUT_BUFFER_BYTES - out->len;

		part = part < len ? part : len;
		memcpy(out->buffer + out->len, from, part);
		out->len += part;
		from += part;
		len -= part;
		if (out->len == OUT_BUFFER_BYTES)
			flush(out, false);
	}
}

void out_text(struct out *out, const char *text)
{
	out_write(out, text, strlen(text));
}

void out_printf(struct out *out, const char *format, ...)
{
	struct buf text;
	va_list args;

	buf_init(&text);
	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	out_write(out, text.data, text.len);
	buf_release(&text);
}

void out_harmless(struct out *out, const char *text)
{
	size_t len = strlen(text), from = 0, at = 0;

	if (text_is_plain(text, len)) {
		out_write(out, text, len);
		return;
	}
	while (at < len) {
		uint32_t code;
		size_t obeyed = text_obeyed(text + at), plain = text_utf8(text + at, &code);

		if (!obeyed) {
			at += plain ? plain : 1;
			continue;
		}
		out_write(out, text + from, at - from);
		out_write(out, "???", obeyed);
		from = at += obeyed;
	}
	out_write(out, text + from, at - from);
}

/* Writes `value`, which must be below 2^32, as eight hexadecimal digits; `letter` is the digit for
 * 10. Computes all digits at once, because reports consist mostly of addresses. */
static inline void write_eight(char *to, uint64_t value, char letter)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t past_nine;

	value = value >> 16 | (value & 0xffff) << 32;
	value = (value >> 8 & UINT64_C(0x000000ff000000ff)) | (value & UINT64_C(0x000000ff000000ff))
								      << 16;
	value = (value >> 4 & UINT64_C(0x000f000f000f000f)) | (value & UINT64_C(0x000f000f000f000f))
								      << 8;
	past_nine = (value + 6 * ones) >> 4 & ones;
	value += '0' * ones + past_nine * (uint64_t)(letter - '0' - 10);
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		value = __builtin_bswap64(value);
	memcpy(to, &value, sizeof(value));
}

/* Writes the digits of `value` to to[] and returns the number of digits. The rest of to[] is
 * undefined. */
static inline size_t hex_digits_of(char to[16], uint64_t value, char letter)
{
	size_t count = (size_t)(67 - __builtin_clzll(value | 1)) / 4;

	if (count <= 8) {
		write_eight(to, value << 4 * (8 - count) & UINT32_MAX, letter);
		return count;
	}
	value <<= 4 * (16 - count);
	write_eight(to, value >> 32, letter);
	write_eight(to + 8, value & UINT32_MAX, letter);
	return count;
}

size_t out_hex_digits(char to[16], uint64_t value)
{
	return hex_digits_of(to, value, 'A');
}

static size_t decimal_digits_of(char to[NUMBER_MAX], uint64_t value)
{
	uint64_t rest = value;
	size_t count = 0, at;

	do {
		count++;
	} while (rest /= 10);
	for (at = count; at--; value /= 10)
		to[at] = (char)('0' + value % 10);
	return count;
}

void out_signed(struct out *out, char sign, uint64_t value, unsigned base, unsigned width)
{
	char digits[NUMBER_MAX], *to;
	size_t count =
		base == 16 ? hex_digits_of(digits, value, 'a') : decimal_digits_of(digits, value);
	size_t len = count + (sign != '\0');
	size_t blanks = len < width && width <= NUMBER_WIDTH_MAX ? width - len : 0;

	to = out_room(out, blanks + len);
	memset(to, ' ', blanks);
	to += blanks;
	if (sign)
		*to++ = sign;
	memcpy(to, digits, count);
	out->len += blanks + len;
}

void out_number(struct out *out, uint64_t value, unsigned base, unsigned width)
{
	out_signed(out, '\0', value, base, width);
}

void out_hex(struct out *out, uint64_t value)
{
	out->len += hex_digits_of(out_room(out, 16), value, 'A');
}

/* Switches to the next name, because the current one is taken. */
static void rename_out(struct out *out, const struct out_names *names)
{
	const char *path = NULL;

	out->err = (struct err){0};
	if (names->next(names->ctx, &path, &out->err))
		return;
	free(out->path);
	out->path = xstrdup(path);
}

static void move_into_place(struct out *out, const struct out_names *names)
{
	while (!out->err.code &&
		os_put(&out->file, out->temp, out->path, out->is_new, &out->err) == -ERR_EXISTS &&
		names)
		rename_out(out, names);
}

static void finish_file(struct out *out, const struct out_names *names)
{
	if (!out->err.code)
		os_sync(&out->file, out->path, &out->err);
	if (!out->err.code)
		move_into_place(out, names);
}

/* Closes the file and frees memory. Removes the temporary file unless it got its final name. */
static void release(struct out *out, bool is_placed)
{
	if (out->path)
		os_close(&out->file);
	if (out->temp && !is_placed)
		os_remove(out->temp);
	interrupt_cleanup_clear(&temp_open);
	zip_free(out->zip);
	out->zip = NULL;
	free(out->temp);
	free(out->path);
	free(out->buffer);
	out->temp = out->path = out->buffer = NULL;
}

int out_commit_as(struct out *out, const struct out_names *names, struct err *err)
{
	flush(out, true);
	if (out->temp)
		finish_file(out, names);
	release(out, !out->err.code);
	if (out->err.code && err)
		*err = out->err;
	return -(int)out->err.code;
}

int out_commit(struct out *out, struct err *err)
{
	return out_commit_as(out, NULL, err);
}

void out_abort(struct out *out)
{
	release(out, false);
}

void out_interrupted(void)
{
	const char *temp = interrupt_cleanup_get(&temp_open);

	temp_remove_all();
	if (temp)
		os_remove(temp);
	interrupt_cleanup_done(&temp_open);
}
