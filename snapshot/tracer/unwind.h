/*
 * The return addresses of the thread that calls, from the caller of the hooked function outwards.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_H
#define SNAPSHOT_TRACER_UNWIND_H

#include <stdint.h>

/* Frames inside [skip_from, skip_to) at the inner end are left out: the tracer's own. */
struct unwind_skip {
	uint64_t from, to;
};

/*
 * Fills frames with up to max return addresses, innermost first, and returns how many. The walk
 * ends at the first address that is 0 (Wine goes on past it with what happens to lie there), when
 * it leaves the thread's stack, or at max.
 */
uint32_t unwind_stack(uint64_t *frames, uint32_t max, const struct unwind_skip *skip);

#endif
