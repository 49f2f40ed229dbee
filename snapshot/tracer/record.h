/*
 * Who calls: the stack of the thread that is in a hook, as an id of the stack table.
 */
#ifndef SNAPSHOT_TRACER_RECORD_H
#define SNAPSHOT_TRACER_RECORD_H

#include <stdint.h>

/* From the hook itself, with its return address: the one frame that is always known. Returns the id;
 * 0, and counts that, when there is no room. The caller's frames are found under GUARD_TRACER. */
uint32_t record_stack(const void *caller);

/* Frames of addresses in [from, to) at the inner end are left out: the tracer's own. Once, before. */
void record_init(uint64_t from, uint64_t to);

#endif
