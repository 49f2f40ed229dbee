/*
 * Heaps by a small number, for the block table has no room for their handles: a tag is the heap's
 * index in tracer_area.heaps and its generation. A heap at the address of one that was destroyed has
 * the same index and another generation.
 */
#ifndef SNAPSHOT_TRACER_HEAPINDEX_H
#define SNAPSHOT_TRACER_HEAPINDEX_H

#include "snapshot/tracer/shared.h"

/*
 * The tag of a heap, new or not; 0 when there is no room for more. Any thread, no lock. For a heap
 * that was destroyed this begins a new one, and now and then takes the time of blocktable_clean(). For
 * one whose destruction has not returned it does not, for that may be refused.
 */
uint32_t heapindex_of(struct tracer_area *area, uint64_t heap);

/* The same for a heap that was just created, before others know it: one that was being destroyed at
 * its address is no more. */
uint32_t heapindex_new(struct tracer_area *area, uint64_t heap);

#endif
