/* Memory: runs of bytes that grow (buf), plain arrays that grow, and arenas. */
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stddef.h>

#include "core/base/err.h"

/*
 * A growable run of bytes, always NUL-terminated; and growing of plain arrays.
 */

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

/*
 * Memory that lives and dies together: many small pieces, freed at once. Pieces never move.
 */

struct arena {
	struct arena_chunk *chunks;
	size_t used_bytes; /* of all pieces handed out */
};

void arena_init(struct arena *arena);
void arena_release(struct arena *arena);

/* A zeroed piece aligned to 16 bytes, or NULL when memory is out. */
void *arena_alloc(struct arena *arena, size_t bytes);

/* A copy of len bytes with a NUL behind, or NULL. */
char *arena_text(struct arena *arena, const char *text, size_t len);

#endif
