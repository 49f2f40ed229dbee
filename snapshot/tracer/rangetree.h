/*
 * The tree below ranges.c: nodes in one array, linked by index + 1 (0: none), memory for them
 * committed as they come to be needed. A treap whose priorities are a hash of the address: the same
 * calls make the same tree, and it is balanced whatever the order. No function here recurses.
 *
 * Nodes in the tree do not overlap, and neither do allocations, so going up by address the
 * allocations never go down. Whoever calls holds the lock.
 */
#ifndef SNAPSHOT_TRACER_RANGETREE_H
#define SNAPSHOT_TRACER_RANGETREE_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

struct tracer_range *rangetree_node(const struct tracer_ranges *ranges, uint32_t link);

/* True when the next count nodes can be made. */
bool rangetree_has_room(struct tracer_area *area, unsigned count);

/* A new node with what *range says, in the tree. There must be room for it. */
void rangetree_add(struct tracer_ranges *ranges, const struct tracer_range *range);

/* Puts a node that is alone into the tree. */
void rangetree_insert(struct tracer_ranges *ranges, uint32_t link);

/* The first node that ends beyond an address; 0: none does. */
uint32_t rangetree_beyond(const struct tracer_ranges *ranges, uint64_t addr);

/* The last node of the allocation with this base or, if there is none, of the one below it. */
uint32_t rangetree_last_of(const struct tracer_ranges *ranges, uint64_t allocation);

/* Takes out the nodes that start in [from, to): they are a tree of their own then. */
uint32_t rangetree_take(struct tracer_ranges *ranges, uint64_t from, uint64_t to);

/* Takes the first node out of a tree that is not empty; it is alone then. */
uint32_t rangetree_pop(struct tracer_ranges *ranges, uint32_t *tree);

/* Frees a node that is alone. */
void rangetree_free(struct tracer_ranges *ranges, uint32_t link);

#endif
