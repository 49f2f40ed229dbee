#include "core/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)256 << 10)

/* The one name an interrupt has to remove: a program writes one output at a time. */
static const char *volatile temp_open;

static int temp_make(struct out *out, const char *path, struct err *err)
{
	size_t size = strlen(path) + 40;
	char *temp = malloc(size);
	int rc;

	if (!temp)
		return err_set(err, ERR_NOMEM, path, NULL);
	snprintf(temp, size, "%s.%lu.tmp", path, os_pid());
	os_remove(temp);
	temp_open = temp;
	rc = os_create(&out->file, temp, true, err);
	if (rc) {
		temp_open = NULL;
		free(temp);
		snprintf(err->place, sizeof(err->place), "%s", path);
		return rc;
	}
	os_keep_rights(&out->file, path);
	out->temp = temp;
	return 0;
}

int out_open(struct out *out, const char *path, struct err *err)
{
	struct err local;
	struct out fresh = {0};
	int rc = 0;

	err = err ? err : &local;
	path = path && strcmp(path, "-") != 0 ? path : NULL;
	fresh.buffer = malloc(BUFFER_BYTES);
	fresh.path = path ? os_final_path(path) : NULL;
	if (!fresh.buffer || (path && !fresh.path)) {
		rc = err_set(err, ERR_NOMEM, path, NULL);
	} else if (!path) {
		os_stdout(&fresh.file);
	} else {
		rc = os_is_special(path) ? os_create(&fresh.file, path, false, err) :
					   temp_make(&fresh, fresh.path, err);
	}
	if (rc) {
		free(fresh.buffer);
		free(fresh.path);
		return rc;
	}
	*out = fresh;
	return 0;
}

static void flush(struct out *out)
{
	if (!out->err.code && out->len)
		os_write(&out->file, out->buffer, out->len,
			out->path ? out->path : "standard output", &out->err);
	out->bytes += out->len;
	out->len = 0;
}

void out_write(struct out *out, const void *bytes, size_t len)
{
	const char *from = bytes;

	while (len) {
		size_t part = BUFFER_BYTES - out->len;

		part = part < len ? part : len;
		memcpy(out->buffer + out->len, from, part);
		out->len += part;
		from += part;
		len -= part;
		if (out->len == BUFFER_BYTES)
			flush(out);
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
	int len;

	buf_init(&text);
	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0 || buf_reserve(&text, (size_t)len)) {
		err_set(&out->err, ERR_NOMEM, out->path, NULL);
		return;
	}
	va_start(args, format);
	vsnprintf(text.data, (size_t)len + 1, format, args);
	va_end(args);
	out_write(out, text.data, (size_t)len);
	buf_release(&text);
}

void out_hex(struct out *out, uint64_t value)
{
	char digits[16];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789ABCDEF"[value & 15];
		value >>= 4;
	} while (value);
	out_write(out, digits + at, sizeof(digits) - at);
}

/* Closes; with rename, puts the file in place; else, or when that fails, leaves nothing. */
static void finish(struct out *out, bool rename)
{
	if (out->temp && rename && !out->err.code)
		os_sync(&out->file, out->path, &out->err);
	if (out->path)
		os_close(&out->file);
	if (out->temp && rename && !out->err.code)
		os_replace(out->temp, out->path, &out->err);
	if (out->temp && (!rename || out->err.code))
		os_remove(out->temp);
	temp_open = NULL;
	free(out->temp);
	free(out->path);
	free(out->buffer);
	out->temp = out->path = out->buffer = NULL;
}

int out_commit(struct out *out, struct err *err)
{
	flush(out);
	finish(out, true);
	if (out->err.code && err)
		*err = out->err;
	return -(int)out->err.code;
}

void out_abort(struct out *out)
{
	finish(out, false);
}

void out_interrupted(void)
{
	const char *temp = temp_open;

	if (temp)
		os_remove(temp);
}
