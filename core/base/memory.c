/*
 * Allocation that never returns NULL, growable buffers and arrays, and arenas. An arena is a list
 * of chunks, whose sizes double up to a limit. New pieces are taken from the first chunk of the
 * list.
 */
#include "core/base/memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"

const char *memory_program = "hsnap";

/* Only the first thread that runs out of memory reports it; other threads wait here until the
 * process ends. */
void memory_out(void)
{
	static atomic_flag is_said = ATOMIC_FLAG_INIT;
	struct err err;

	while (atomic_flag_test_and_set(&is_said))
		os_sleep_ms(1000);
	err_set(&err, ERR_NOMEM, NULL, NULL);
	err_print(stderr, memory_program, &err);
	os_end();
}

void *xmalloc(size_t bytes)
{
	return xrealloc(NULL, bytes);
}

void *xcalloc(size_t count, size_t item_bytes)
{
	void *items = calloc(count ? count : 1, item_bytes);

	if (!items)
		memory_out();
	return items;
}

void *xrealloc(void *items, size_t bytes)
{
	void *moved = realloc(items, bytes ? bytes : 1);

	if (!moved)
		memory_out();
	return moved;
}

char *xstrdup(const char *text)
{
	size_t len = strlen(text) + 1;

	return memcpy(xmalloc(len), text, len);
}

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

void buf_reserve(struct buf *buf, size_t more)
{
	size_t need = buf->len + more + 1, cap = buf->cap ? buf->cap : 256;

	if (more >= SIZE_MAX / 2 - buf->len)
		memory_out();
	if (need <= buf->cap)
		return;
	while (cap < need)
		cap *= 2;
	buf->data = xrealloc(buf->data, cap);
	buf->cap = cap;
}

void buf_add(struct buf *buf, const void *bytes, size_t len)
{
	buf_reserve(buf, len);
	if (len)
		memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void buf_add_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_vprintf(struct buf *buf, const char *format, va_list args)
{
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (len < 0)
		memory_out();
	buf_reserve(buf, (size_t)len);
	vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
	buf->len += (size_t)len;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	buf_vprintf(buf, format, args);
	va_end(args);
}

int array_try_grow(void **items, size_t *cap, size_t count, size_t item_bytes)
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

void array_grow(void **items, size_t *cap, size_t count, size_t item_bytes)
{
	if (array_try_grow(items, cap, count, item_bytes))
		memory_out();
}

/* Chunks start small: a thousand arenas may exist, most of them nearly empty. */
#define FIRST_BYTES ((size_t)1 << 10)
#define CHUNK_BYTES ((size_t)64 << 10)
#define ALIGN 16

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	_Alignas(ALIGN) unsigned char bytes[];
};

void arena_init(struct arena *arena)
{
	*arena = (struct arena){0};
}

void arena_release(struct arena *arena)
{
	struct arena_chunk *next;

	for (struct arena_chunk *chunk = arena->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	arena_init(arena);
}

/* Returns the size of a new chunk: twice the size of the last one, up to a limit. A large piece
 * gets a chunk of its own. */
static size_t chunk_size(const struct arena *arena, size_t bytes)
{
	size_t size = arena->chunks ? 2 * arena->chunks->size : FIRST_BYTES;

	if (bytes > CHUNK_BYTES / 4)
		return bytes;
	size = size < CHUNK_BYTES ? size : CHUNK_BYTES;
	return size < 4 * bytes ? 4 * bytes : size;
}

static struct arena_chunk *chunk_add(struct arena *arena, size_t bytes)
{
	size_t size = chunk_size(arena, bytes);
	struct arena_chunk *chunk = xcalloc(1, sizeof(*chunk) + size);

	chunk->size = size;
	/* A large piece fills a chunk of its own. Insert this chunk second: the first chunk still
	 * has room. */
	if (size == bytes && arena->chunks) {
		chunk->next = arena->chunks->next;
		arena->chunks->next = chunk;
	} else {
		chunk->next = arena->chunks;
		arena->chunks = chunk;
	}
	return chunk;
}

/* Returns a piece of memory, preceded by `padding` bytes. */
static void *carve(struct arena *arena, size_t padding, size_t bytes)
{
	struct arena_chunk *chunk = arena->chunks;
	void *piece;

	if (bytes > SIZE_MAX / 2)
		memory_out();
	if (!chunk || chunk->size - chunk->used < padding + bytes) {
		chunk = chunk_add(arena, bytes);
		padding = 0;
	}
	piece = chunk->bytes + chunk->used + padding;
	chunk->used += padding + bytes;
	arena->used_bytes += padding + bytes;
	return piece;
}

void *arena_bytes(struct arena *arena, size_t bytes)
{
	return carve(arena, 0, bytes);
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	size_t used = arena->chunks ? arena->chunks->used : 0;

	return carve(arena, -used & (ALIGN - 1), bytes);
}

char *arena_text(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_bytes(arena, len + 1);

	if (len)
		memcpy(copy, text, len);
	return copy;
}
