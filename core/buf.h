/*
 * A growable run of bytes, always NUL-terminated; and growing of plain arrays.
 */
#ifndef CORE_BUF_H
#define CORE_BUF_H

#include <stddef.h>

#include "core/err.h"

struct buf {
	char *data; /* NULL until something was added */
	size_t len, cap;
};

void buf_init(struct buf *buf);
void buf_release(struct buf *buf);
void buf_clear(struct buf *buf);

/* Each returns 0 or -ERR_NOMEM, then with buf as it was. */
int buf_reserve(struct buf *buf, size_t more);
int buf_add(struct buf *buf, const void *bytes, size_t len);
int buf_add_text(struct buf *buf, const char *text);
int buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Makes room for one more item in *items, an array of *cap items of item_bytes each that holds
 * count. Returns 0 or -ERR_NOMEM, then with the array as it was.
 */
int array_grow(void **items, size_t *cap, size_t count, size_t item_bytes);

#endif
