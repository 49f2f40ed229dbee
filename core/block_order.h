/*
 * Blocks in the order of a dump: by heap, then by address. Walkers find most of them in that order.
 */
#ifndef CORE_BLOCK_ORDER_H
#define CORE_BLOCK_ORDER_H

#include "core/model.h"

/* In *order, to be freed by the caller, all blocks in order; blocks that have one place stay as they
 * were among each other. NULL when the blocks are in order as they stand. 0 or -ERR_NOMEM. */
int block_order(const struct snapshot *snapshot, const struct block ***order);

#endif
