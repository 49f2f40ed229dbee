/*
 * Stacks that the tracer knows by number, put into a snapshot each once.
 */
#ifndef SNAPSHOT_TRACED_STACKS_H
#define SNAPSHOT_TRACED_STACKS_H

#include "core/model.h"
#include "core/u64map.h"
#include "snapshot/stacks/tracer_table.h"

struct traced_stacks {
	struct snapshot *snapshot;
	const struct tracer_copy *tracer;
	struct u64map known; /* the tracer's number -> the snapshot's, or STACK_NONE */
};

void traced_stacks_init(
	struct traced_stacks *stacks, struct snapshot *snapshot, const struct tracer_copy *tracer);
void traced_stacks_release(struct traced_stacks *stacks);

/* *index: the snapshot's number of the tracer's stack id, or STACK_NONE when that is none. 0 or
 * -ERR_NOMEM. */
int traced_stacks_find(struct traced_stacks *stacks, uint32_t id, uint32_t *index);

#endif
