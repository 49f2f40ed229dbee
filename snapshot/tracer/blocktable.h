/*
 * The table of live blocks: address -> size, heap, stack.
 *
 * Open addressing in shards, each with a lock of its own. It is held for a few memory accesses, and
 * now and then while the shard gets a table of another size: for a pass through the old one, and the
 * real calls that commit the new one and decommit the old. A lock that is not given back (its thread
 * was ended inside) breaks its shard: waiting ends, what comes after is counted as dropped.
 *
 * A shard's table is between a quarter and three quarters full, but for the smallest one: of 16 bytes
 * an entry, a live block costs 64 at most. It grows and shrinks by that. The blocks of a destroyed heap
 * count as live until their shard was used again, about as often as a 64th of its entries.
 */
#ifndef SNAPSHOT_TRACER_BLOCKTABLE_H
#define SNAPSHOT_TRACER_BLOCKTABLE_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

/* Of a shard's first table; each next one is twice as large. */
#define BLOCKTABLE_FIRST_BYTES ((uint64_t)4096)

/* Adds a block, made by tracer_block_make(); one that is there under the same address is replaced. */
void blocktable_put(struct tracer_area *area, const struct tracer_block *block);

/* Takes a block out: true and *block when it was there. */
bool blocktable_take(struct tracer_area *area, uint64_t addr, struct tracer_block *block);

/*
 * Takes out all blocks of a heap that is about to be destroyed, by its tag; in no time, for they are
 * only disowned (see shared.h), and leave the table later. True when it is up to the caller to say what
 * became of it: by one of the next two.
 */
bool blocktable_forget_heap(struct tracer_area *area, uint32_t heap);

/* The heap was not destroyed after all: its blocks are back, and those put since. */
void blocktable_restore_heap(struct tracer_area *area, uint32_t heap);

/* It was destroyed; there may be another one at its address already. */
void blocktable_bury_heap(struct tracer_area *area, uint32_t heap);

/* Takes out what is left of destroyed heaps; each shard's lock is held while it is looked through. */
void blocktable_clean(struct tracer_area *area);

#endif
