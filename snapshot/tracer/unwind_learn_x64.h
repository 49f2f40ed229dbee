/* From steps of the system's unwinder to what may be kept of an address. */
#ifndef SNAPSHOT_TRACER_UNWIND_LEARN_X64_H
#define SNAPSHOT_TRACER_UNWIND_LEARN_X64_H

#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/unwind_cache_x64.h"

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

/* Whether an address lies in a mapped image, and base, unless it is 0, is that image's. */
bool unwind_is_in_image(uint64_t addr, uint64_t base);

#endif
