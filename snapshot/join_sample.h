/*
 * Blocks of a tracer that records one in so many bytes: what was recorded stands for all.
 */
#ifndef SNAPSHOT_JOIN_SAMPLE_H
#define SNAPSHOT_JOIN_SAMPLE_H

#include "snapshot/captured.h"

/* Of a block of that size, how many like it one that was recorded stands for. */
double sample_weight(uint64_t requested_bytes, uint64_t sample_bytes);

/*
 * Adds to snapshot, which has the walk's heaps, sums of the blocks that were recorded, scaled, and the
 * census of the walk to its heaps. The tracer's blocks are sorted. 0 or -ERR_NOMEM.
 */
int join_sampled(struct snapshot *snapshot, const struct captured *captured);

#endif
