/*
 * Heap walkers: who understands which heap. A walker finds the heaps of its kind and hands every
 * live block to a sink. One more kind is one more walker, one layout table, one line in heaps.c.
 *
 * Walking happens while the target is held: the sink only keeps what it is given.
 */
#ifndef SNAPSHOT_HEAP_HEAP_H
#define SNAPSHOT_HEAP_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model.h"
#include "snapshot/target.h"

#define HEAPS_MAX 65536 /* in one process; more is a broken list */

struct walked_block {
	uint64_t addr, requested_bytes, overhead_bytes;
	uint32_t heap; /* index into walk.heaps */
};

struct walk {
	/* address, kind, committed and reserved bytes, unwalked; no counts yet */
	struct heap *heaps;
	size_t heap_count, heap_cap;
	struct walked_block *blocks;
	size_t block_count, block_cap;
	/* Heaps that a thread was just changing (its lock was held), and the first place where
	 * bytes made no sense: when either is set, trying again may help. */
	unsigned busy_count, broken_count;
	uint64_t broken_addr;
	const char *broken_what;
};

void walk_init(struct walk *walk);
void walk_release(struct walk *walk);
void walk_clear(struct walk *walk);

/* Each returns 0 or -ERR_NOMEM. A block belongs to the heap added last. */
int walk_add_heap(struct walk *walk, const struct heap *heap);
int walk_add_block(
	struct walk *walk, uint64_t addr, uint64_t requested_bytes, uint64_t overhead_bytes);

/* Notes that the bytes at addr make no sense; always returns 0: other heaps may be sound. */
int walk_broken(struct walk *walk, uint64_t addr, const char *what);

struct heap_walker {
	const char *kind;
	/* True when the heap at addr is of this kind. */
	bool (*probe)(struct target *target, uint64_t addr);
	/* True when a thread stands inside one of the heaps: cheap, to be asked before walking. */
	bool (*is_busy)(struct target *target, uint64_t first_heap);
	/* Adds all heaps of the target, the process heap being first_heap. 0, or an error. */
	int (*walk)(struct target *target, uint64_t first_heap, struct walk *walk, struct err *err);
};

extern const struct heap_walker heap_walker_wine;

/* True when the target should be let go for a moment, since a thread stands inside a heap. */
bool heaps_are_busy(struct target *target);

/*
 * Lists the heaps and the live blocks of those that a walker knows; the others are listed as
 * unwalked. Returns 0, -ERR_GONE, -ERR_TARGET or -ERR_NOMEM.
 */
int heaps_walk(struct target *target, struct walk *walk, struct err *err);

#endif
