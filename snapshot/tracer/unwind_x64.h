/* From steps of the system's unwinder to what may be kept of an address. */
#ifndef SNAPSHOT_TRACER_UNWIND_X64_H
#define SNAPSHOT_TRACER_UNWIND_X64_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/unwind_parts_x64.h"

/* What one step did. */
struct unwind_trial {
	uint64_t rsp, rbp; /* before */
	CONTEXT context; /* after */
	KNONVOLATILE_CONTEXT_POINTERS saved; /* all NULL before */
};

/* The same registers, but each kind moved by a distance of its own. They point into the stack below
 * where they did: into frames of the tracer, if not of the target. */
void unwind_trial_begin(struct unwind_trial *trial, const CONTEXT *context, bool is_moved);

/* The packed step from a trial and a moved one of the same address; UNWIND_NEVER when it is none. */
uint32_t unwind_learn(
	const struct unwind_trial *trial, const struct unwind_trial *moved, uint64_t high);

/*
 * What is to be kept of an address that no function table has. Only a leaf may do without, and a leaf
 * calls nothing: it is in a stack where it was interrupted, by an exception or by the system that it
 * called, and what stands before the address is no call; then the step is UNWIND_LEAF. After a call, it
 * is code without unwind data, which nobody can step from: UNWIND_END in an image, UNWIND_NEVER elsewhere,
 * where it may get a table yet. UNWIND_NO_CODE where there is no memory, and UNWIND_UNKNOWN where there is
 * other memory than code, for it may become that.
 */
uint32_t unwind_learn_bare(uint64_t addr);

/* Whether an address lies in a mapped image, and base, unless it is 0, is that image's. */
bool unwind_is_in_image(uint64_t addr, uint64_t base);

/* A walk with the system's unwinder, which may learn on its way, and the call that survives it. */

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
