/*
 * The table of distinct stacks: frames -> id. Append-only and without locks: a record is written
 * into fresh room, then linked into its bucket by one compare-and-swap.
 */
#ifndef SNAPSHOT_TRACER_STACKTABLE_H
#define SNAPSHOT_TRACER_STACKTABLE_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

#define STACKTABLE_BUCKETS_LOG2 18
#define STACKTABLE_BUCKET_BYTES ((uint64_t)sizeof(uint32_t) << STACKTABLE_BUCKETS_LOG2)

/* The id of the stack with these frames (depth of 1 to TRACER_DEPTH_MAX); 0 when it is new and
 * there is no room left. */
uint32_t stacktable_intern(struct tracer_area *area, const uint64_t *frames, uint32_t depth);

#endif
