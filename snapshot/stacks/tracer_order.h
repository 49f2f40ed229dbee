/*
 * The tracer's blocks by address: putting them in order, and finding one among millions.
 */
#ifndef SNAPSHOT_STACKS_TRACER_ORDER_H
#define SNAPSHOT_STACKS_TRACER_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"

/* Orders blocks by address. */
void tracer_blocks_sort(struct tracer_block *blocks, size_t count);

/* Where in ordered blocks the parts of their address space begin, all parts being of one size: blocks
 * lie close together, so a part has few. */
struct tracer_index {
	uint64_t first; /* address of the first block */
	unsigned shift; /* a part has 1 << shift bytes */
	uint32_t *starts; /* of each part, and the end of the last; NULL: there is no index */
	size_t part_count;
};

/* Makes the index of ordered blocks. Without memory for it there is none, which only costs time. */
void tracer_index_build(
	struct tracer_index *index, const struct tracer_block *blocks, size_t count);
void tracer_index_release(struct tracer_index *index);

/* The block at addr in the blocks that the index was made of, or NULL. */
const struct tracer_block *tracer_index_find(const struct tracer_index *index,
	const struct tracer_block *blocks, size_t count, uint64_t addr);

#endif
