/*
 * The tracer in a target: where it is, in which state, and what it says of itself. What stands there
 * is the target's, and may be anything.
 */
#ifndef SNAPSHOT_STACKS_TRACER_FIND_H
#define SNAPSHOT_STACKS_TRACER_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model.h"
#include "snapshot/target/target.h"
#include "snapshot/tracer/shared.h"

/* The address of the area of the tracer among the target's modules, whatever its state is. Returns 0;
 * -ERR_NOT_TRACED; -ERR_TARGET when a DLL of its name is there that is none. */
int tracer_find(struct target *target, const struct module *modules, size_t count,
	uint64_t *area_addr, struct err *err);

/*
 * Finds the tracer that is at work in the target. Returns 0 and its area's address; -ERR_NOT_TRACED,
 * with a word in err when a tracer is there but not on; -ERR_INJECT when it failed; -ERR_TARGET when
 * it is not one that this hsnap knows; -ERR_NOMEM.
 */
int tracer_find_on(struct target *target, const struct module *modules, size_t count,
	uint64_t *area_addr, struct err *err);

/* The state of the tracer at that address: what tracer_find_on() returns for it. */
int tracer_check(struct target *target, uint64_t area_addr, struct err *err);

/* Reads the area of a tracer in any state but failed, and checks that it is one that this hsnap knows:
 * 0, -ERR_INJECT, -ERR_TARGET, -ERR_GONE, -ERR_NOMEM. */
int tracer_area_read(
	struct target *target, uint64_t area_addr, struct tracer_area *area, struct err *err);

/* True when a thread was stopped while it changed what the tracer knows of virtual memory: the target
 * should be let go for a moment. The target is held. */
bool tracer_is_busy(struct target *target, uint64_t area_addr);

#endif
