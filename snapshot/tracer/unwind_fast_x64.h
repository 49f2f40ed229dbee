/* A walk by what is known of return addresses, and by nothing but the stack's memory. */
#ifndef SNAPSHOT_TRACER_UNWIND_FAST_X64_H
#define SNAPSHOT_TRACER_UNWIND_FAST_X64_H

#include <stdint.h>

#include "snapshot/tracer/unwind.h"

/* Where a walk starts: the place of the first return address, and RBP as the code there has it. */
struct unwind_start {
	uint64_t slot; /* aligned to 8 */
	uint64_t rbp;
	uint64_t high; /* the end of the stack, above slot and aligned to 8 */
	uint32_t number; /* of the walk: something that changes */
};

#define UNWIND_MISS UINT32_MAX

/*
 * As unwind_stack(); UNWIND_MISS when an address is not known, or the stack is not as it says. Reads
 * memory in [slot, high) only.
 */
uint32_t unwind_fast(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_start *start);

#endif
