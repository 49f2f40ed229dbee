/* The heaps of the first and the last dump of a comparison: their memory and their blocks. */
#ifndef DIFF_QUERY_HEAP_VIEW_H
#define DIFF_QUERY_HEAP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/dump/stackset.h"
#include "diff/match/match.h"

struct heap_change {
	uint64_t addr;
	const char *kind; /* "nt", "segment", ...; "" if the dump does not record it */
	/* memory in the first and in the last dump; zero if the heap does not exist in the dump */
	struct heap_memory old, now;
	/* Stack that created the heap, in `creator_dump`; no frames: not known. */
	struct stack creator;
	size_t creator_dump;
	/* `is_old`: the heap exists in the first dump; `is_now`: in the last dump */
	bool is_old, is_now;
};

struct heap_view {
	struct heap_change *rows; /* largest change of committed memory first */
	size_t count;
	struct heap_change total;
	bool is_single; /* only one dump exists, so `old` is zero in all rows */
};

/* Makes the view. The view has no rows if the dumps do not record the memory of heaps. Headings of
 * virtual memory are not heaps. Allocates from `arena`. */
void heap_view_make(
	struct heap_view *heaps, const struct comparison *comparison, struct arena *arena);

/* Returns the committed memory that is not in live blocks. */
static inline uint64_t heap_free_bytes(const struct heap_memory *memory)
{
	const uint64_t used = memory->blocks.requested_bytes + memory->blocks.overhead_bytes;

	return memory->committed_bytes > used ? memory->committed_bytes - used : 0;
}

#endif
