/*
 * Heaps by a small number, for the block table has no room for their handles. A number stays the
 * heap's when the heap is destroyed: another one at the same address has the same.
 */
#ifndef SNAPSHOT_TRACER_HEAPINDEX_H
#define SNAPSHOT_TRACER_HEAPINDEX_H

#include "snapshot/tracer/shared.h"

/* The index of a heap, new or not; 0 when there is no room for more. Any thread, no lock. */
uint32_t heapindex_of(struct tracer_area *area, uint64_t heap);

#endif
