/*
 * A snapshot without single blocks: what the blocks of each stack in each heap add up to.
 */
#ifndef SNAPSHOT_BY_STACK_H
#define SNAPSHOT_BY_STACK_H

#include "core/model.h"

/*
 * Puts one sum for each stack and heap in the place of all blocks, and of the sums that there are, by
 * heap and then in the order of stacks. Ranges of virtual memory are blocks like others; what has no stack
 * is counted at its heap, as before. No total changes. 0, or -ERR_NOMEM and nothing has.
 */
int by_stack(struct snapshot *snapshot);

#endif
