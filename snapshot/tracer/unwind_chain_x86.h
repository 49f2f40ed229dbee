/*
 * The chain of EBP in a 32-bit stack: at each EBP lies the caller's, and above that the return
 * address. Code that keeps no EBP is passed over, and its caller with it. Pure, so that it can be
 * tested anywhere.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_CHAIN_X86_H
#define SNAPSHOT_TRACER_UNWIND_CHAIN_X86_H

#include <stdint.h>

#include "snapshot/tracer/unwind.h"

/* Addresses [low, high) of a stack, low aligned to 4, and where they can be read. */
struct unwind_window {
	uint32_t low, high;
	const uint8_t *bytes;
};

/*
 * Return addresses from the frame at ebp outwards, as unwind_stack(). Every EBP must lie in the
 * window, aligned to 4 and above the one before; the walk ends where one does not, at a return
 * address 0, or at max.
 */
uint32_t unwind_chain(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_window *window, uint32_t ebp);

#endif
