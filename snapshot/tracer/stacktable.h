/*
 * The table of distinct stacks: frames -> id. Records are only ever added, and an index of them, of
 * open addressing, is replaced by one four times as large when it fills. There are no locks.
 *
 * A stack that passes through a module which was unloaded since it was last seen is another one from
 * then on: see tracer_stack.born.
 */
#ifndef SNAPSHOT_TRACER_STACKTABLE_H
#define SNAPSHOT_TRACER_STACKTABLE_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

/* The id of the stack with these frames (depth of 1 to TRACER_DEPTH_MAX); 0 when it is new and
 * there is no room left. */
uint32_t stacktable_intern(struct tracer_area *area, const uint64_t *frames, uint32_t depth);

/*
 * The indices lie behind one another, after a page with their counts; they are committed here.
 * tracer_area.stack_buckets is their address, aligned to 64 KiB, and below that what is in use.
 */
#define STACKTABLE_FIRST_BYTES ((uint64_t)4096)

/* How many indices there can be for a stack area of so many bytes: the last one takes a quarter of
 * what that takes, or an eighth, or less. */
static inline unsigned stacktable_levels(uint64_t stacks_limit)
{
	unsigned levels = 1;

	while (STACKTABLE_FIRST_BYTES << 2 * levels <= stacks_limit / 4)
		levels++;
	return levels;
}

/* Where an index begins, or the room for so many ends. */
static inline uint64_t stacktable_index_offset(unsigned level)
{
	return TRACER_PAGE + STACKTABLE_FIRST_BYTES * ((((uint64_t)1 << 2 * level) - 1) / 3);
}

#endif
