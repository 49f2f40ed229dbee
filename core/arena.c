#include "core/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Chunks grow: a thousand arenas with little in them each must not take much. */
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

/* Twice the last one; a large piece has one of its own. */
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
	struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + size);

	if (!chunk)
		return NULL;
	chunk->size = size;
	if (size == bytes && arena->chunks) { /* a large piece: keep filling the chunk at hand */
		chunk->next = arena->chunks->next;
		arena->chunks->next = chunk;
	} else {
		chunk->next = arena->chunks;
		arena->chunks = chunk;
	}
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	struct arena_chunk *chunk = arena->chunks;
	void *piece;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!chunk || chunk->size - chunk->used < bytes)
		chunk = chunk_add(arena, bytes);
	if (!chunk)
		return NULL;
	piece = chunk->bytes + chunk->used;
	chunk->used += bytes;
	arena->used_bytes += bytes;
	return piece;
}

char *arena_text(struct arena *arena, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? arena_alloc(arena, len + 1) : NULL;

	if (copy && len)
		memcpy(copy, text, len);
	return copy;
}
