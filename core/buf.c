#include "core/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *buf)
{
	*buf = (struct buf){0};
}

void buf_release(struct buf *buf)
{
	free(buf->data);
	buf_init(buf);
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

int buf_reserve(struct buf *buf, size_t more)
{
	size_t need, cap = buf->cap ? buf->cap : 256;
	char *data;

	if (more >= SIZE_MAX / 2 - buf->len)
		return -ERR_NOMEM;
	need = buf->len + more + 1;
	if (need <= buf->cap)
		return 0;
	while (cap < need)
		cap *= 2;
	data = realloc(buf->data, cap);
	if (!data)
		return -ERR_NOMEM;
	buf->data = data;
	buf->cap = cap;
	return 0;
}

int buf_add(struct buf *buf, const void *bytes, size_t len)
{
	if (buf_reserve(buf, len))
		return -ERR_NOMEM;
	if (len)
		memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
	return 0;
}

int buf_add_text(struct buf *buf, const char *text)
{
	return buf_add(buf, text, strlen(text));
}

int buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0 || buf_reserve(buf, (size_t)len))
		return -ERR_NOMEM;
	va_start(args, format);
	vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
	va_end(args);
	buf->len += (size_t)len;
	return 0;
}

int array_grow(void **items, size_t *cap, size_t count, size_t item_bytes)
{
	size_t more = *cap ? *cap * 2 : 16;
	void *grown;

	if (count < *cap)
		return 0;
	if (more > SIZE_MAX / 2 / item_bytes)
		return -ERR_NOMEM;
	grown = realloc(*items, more * item_bytes);
	if (!grown)
		return -ERR_NOMEM;
	*items = grown;
	*cap = more;
	return 0;
}
