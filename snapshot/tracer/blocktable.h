/*
 * The table of live blocks: address -> size, heap, stack.
 *
 * Open addressing in shards, each with a lock of its own that is held for a few memory accesses and
 * never across a call that can block. A lock that is not given back (its thread was ended inside)
 * breaks its shard: waiting ends, what comes after is counted as dropped.
 */
#ifndef SNAPSHOT_TRACER_BLOCKTABLE_H
#define SNAPSHOT_TRACER_BLOCKTABLE_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

#define BLOCKTABLE_FIRST_BYTES                                                                     \
	((uint64_t)4096) /* of a shard's first table; each next one is twice as large */

/* Adds a block, made by tracer_block_make(); one that is there under the same address is replaced. */
void blocktable_put(struct tracer_area *area, const struct tracer_block *block);

/* Takes a block out: true and *block when it was there. */
bool blocktable_take(struct tracer_area *area, uint64_t addr, struct tracer_block *block);

#endif
