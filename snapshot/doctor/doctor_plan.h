/*
 * What the child allocates: pure arithmetic, the same on every system.
 *
 * The order of things: everything that is not late is allocated in the plan's order, then blocks are
 * reallocated, then some are freed, then the late ones are allocated, into the holes if the heap
 * likes.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_PLAN_H
#define SNAPSHOT_DOCTOR_DOCTOR_PLAN_H

#include "snapshot/doctor/doctor.h"

#define DOCTOR_FIXED_BYTES ((size_t)16 << 20) /* the maximum of the fixed heap */

struct doctor_step {
	uint64_t bytes, then_bytes; /* then: reallocated to so many, in the resized group */
	uint8_t heap, group, site;
	bool is_late, is_freed;
};

struct doctor_plan {
	struct doctor_step *steps; /* owned */
	size_t count, cap;
};

/* Returns 0 or -ERR_NOMEM, then with nothing to release. */
int doctor_plan_make(struct doctor_plan *plan);
void doctor_plan_release(struct doctor_plan *plan);

#endif
