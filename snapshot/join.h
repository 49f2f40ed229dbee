/*
 * Blocks and their stacks put together: what walkers found, what the tracer saw, and the records that
 * blocks point to become the heaps, blocks and stacks of a snapshot.
 */
#ifndef SNAPSHOT_JOIN_H
#define SNAPSHOT_JOIN_H

#include "snapshot/captured.h"

/* Adds everything to snapshot, which has no heaps and blocks yet, with a warning for blocks that the
 * tracer and the walkers tell different things of. 0 or -ERR_NOMEM. */
int join(struct snapshot *snapshot, struct captured *captured);

#endif
