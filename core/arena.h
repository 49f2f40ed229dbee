/*
 * Memory that lives and dies together: many small pieces, freed at once. Pieces never move.
 */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include <stddef.h>

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
