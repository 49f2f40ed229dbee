/*
 * Memory: growable byte buffers (buf), growable arrays, and arenas.
 *
 * Running out of memory ends the program. The program prints a line to standard error, does the
 * same cleanup as after an interrupt (removes temporary files and resumes a held target), and exits
 * with status 2. So the functions here never fail, and callers do not check. Sizes that come from
 * input must be bounded before memory is allocated.
 *
 * Code that holds a target must not end in this way, so it uses plain malloc() and
 * array_try_grow(). These return errors, and a series continues with the next snapshot.
 */
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>

#include "core/base/err.h"

/* Program name printed before the message; set by main(). */
extern const char *memory_program;

_Noreturn void memory_out(void);

/* Like their C library counterparts, except that they never return NULL, even for size 0. */
void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t item_bytes);
void *xrealloc(void *items, size_t bytes);
char *xstrdup(const char *text);

struct buf {
	char *data; /* NULL until the first addition, NUL-terminated after that */
	size_t len, cap;
};

void buf_init(struct buf *buf);
void buf_release(struct buf *buf);
void buf_clear(struct buf *buf);

void buf_reserve(struct buf *buf, size_t more);
void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_add_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *buf, const char *format, va_list args) PRINTF_LIKE(2, 0);

/* Makes room for one more item in the array `*items`, which has room for `*cap` items of
 * `item_bytes` each and contains `count` items. */
void array_grow(void **items, size_t *cap, size_t count, size_t item_bytes);

/* Like array_grow(). Returns 0, or -ERR_NOMEM with the array unchanged. */
int array_try_grow(void **items, size_t *cap, size_t count, size_t item_bytes);

/*
 * An arena: many small pieces of memory that are freed together. Pieces never move.
 */

struct arena {
	struct arena_chunk *chunks;
	size_t used_bytes;
};

void arena_init(struct arena *arena);
void arena_release(struct arena *arena);

/* Returns a zeroed piece aligned to 16 bytes. */
void *arena_alloc(struct arena *arena, size_t bytes);

/* Returns a zeroed piece with any alignment. */
void *arena_bytes(struct arena *arena, size_t bytes);

/* Copies `len` bytes and appends a NUL. */
char *arena_text(struct arena *arena, const char *text, size_t len);

#endif
