/* A walk with the system's unwinder, which may learn on its way, and the call that survives it. */
#ifndef SNAPSHOT_TRACER_UNWIND_SLOW_X64_H
#define SNAPSHOT_TRACER_UNWIND_SLOW_X64_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/unwind.h"

struct unwind_walk {
	/* Set by the one who wants it. */
	uint64_t *frames;
	uint32_t max;
	const struct unwind_skip *skip;
	uint64_t slot; /* the place of the first return address, in the frame of a caller of this */
	uint64_t low, high; /* of the stack */
	bool is_learning; /* puts into the cache what it finds out */

	/* The result. What is in frames is right at any time, also when an exception ends the walk. */
	volatile uint32_t count;
	bool differs; /* a frame that was in frames before is another one */

	/* Where it stands, for the one who looks after an exception. */
	volatile uint64_t addr;
	volatile enum unwind_doing {
		UNWIND_LOOKING_UP, /* the address, which may call the target */
		UNWIND_READING, /* its unwind data, a fact of the address */
		UNWIND_STEPPING, /* with what the registers say */
		UNWIND_LEARNING,
	} doing;
};

/* Does the walk; ends with an exception, if that is how it ends. */
void unwind_slow(struct unwind_walk *walk);

/* The same, and returns true; false when an exception ended it. */
bool unwind_guarded(struct unwind_walk *walk);

/* True from when on code in no image is not looked up any more. */
extern bool unwind_lookup_raised;

#endif
