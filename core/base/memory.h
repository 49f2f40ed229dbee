/*
 * Memory: runs of bytes that grow (buf), plain arrays that grow, and arenas.
 *
 * When it runs out the program ends: a line on standard error, what an interrupt cleans up (temporary
 * files; a target that is held goes on), status 2. So nothing here fails, and no caller checks. Sizes
 * that come from input are bounded before memory is asked for. Where a target is held, plain malloc()
 * and array_try_grow() say -ERR_NOMEM, so that a series goes on with the next snapshot.
 */
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>

#include "core/base/err.h"

/* The name in front of that line; main() sets it. */
extern const char *memory_program;

_Noreturn void memory_out(void);

/* As those of C, but never NULL, also for nothing at all. */
void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t item_bytes);
void *xrealloc(void *items, size_t bytes);
char *xstrdup(const char *text);

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

/* Room for so many bytes more. */
void buf_reserve(struct buf *buf, size_t more);
void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_add_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *buf, const char *format, va_list args) PRINTF_LIKE(2, 0);

/* Makes room for one more item in *items, an array of *cap items of item_bytes each that holds count. */
void array_grow(void **items, size_t *cap, size_t count, size_t item_bytes);

/* The same; 0, or -ERR_NOMEM with the array as it was. */
int array_try_grow(void **items, size_t *cap, size_t count, size_t item_bytes);

/*
 * Memory that lives and dies together: many small pieces, freed at once. Pieces never move.
 */

struct arena {
	struct arena_chunk *chunks;
	size_t used_bytes; /* of all pieces handed out */
};

void arena_init(struct arena *arena);
void arena_release(struct arena *arena);

/* A zeroed piece aligned to 16 bytes. */
void *arena_alloc(struct arena *arena, size_t bytes);

/* The same, aligned to nothing. */
void *arena_bytes(struct arena *arena, size_t bytes);

/* A copy of len bytes with a NUL behind. */
char *arena_text(struct arena *arena, const char *text, size_t len);

#endif
