/*
 * Virtual memory that did not come from a heap, as the tracer knows it, read from outside.
 */
#ifndef SNAPSHOT_STACKS_TRACER_RANGES_H
#define SNAPSHOT_STACKS_TRACER_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"

struct tracer_range_list {
	struct tracer_range *items; /* by address; none overlaps another */
	size_t count;
	/* Nodes that could not be: without an extent, of no kind, outside the address space, or on top
	 * of another while both are live. */
	uint64_t broken_count;
};

void tracer_ranges_release(struct tracer_range_list *list);

/*
 * Takes the nodes that are not free out of node_count nodes, in the target's form; of those that are
 * RANGE_TAKEN the ones where nothing else is, without the mark. 0 or -ERR_NOMEM.
 */
int tracer_ranges_parse(
	struct tracer_range_list *list, const unsigned char *nodes, size_t node_count);

#endif
