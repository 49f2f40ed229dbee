/*
 * What the tracer in a target knows, read from outside: its live blocks and their stacks.
 */
#ifndef SNAPSHOT_STACKS_TRACER_TABLE_H
#define SNAPSHOT_STACKS_TRACER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/model.h"
#include "snapshot/target/target.h"
#include "snapshot/tracer/shared.h"

struct tracer_copy {
	struct tracer_area area; /* its counters */
	struct tracer_block *blocks; /* after tracer_copy_sort(): by address, each once */
	size_t block_count, block_cap;
	unsigned char *stacks; /* the stack area's first stacks_bytes bytes */
	uint64_t stacks_bytes;
	unsigned broken_shards; /* left out */
};

void tracer_copy_init(struct tracer_copy *copy);
void tracer_copy_release(struct tracer_copy *copy);

/* Finds the tracer among the target's modules. Returns 0 and its area's address; -ERR_NOT_TRACED;
 * -ERR_TARGET when a tracer is there but not one that this hsnap knows. */
int tracer_find(struct target *target, const struct module *modules, size_t count,
	uint64_t *area_addr, struct err *err);

/* Reads the area's head and checks it. Errors as tracer_find(). */
int tracer_area_read(
	struct target *target, uint64_t area_addr, struct tracer_area *area, struct err *err);

/* Copies the tables; the target should be held. Returns 0, -ERR_GONE, -ERR_TARGET, -ERR_NOMEM;
 * what copy held before is gone. */
int tracer_copy_take(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

/* Orders the blocks for tracer_copy_find(). */
void tracer_copy_sort(struct tracer_copy *copy);

/* The block at addr, or NULL. */
const struct tracer_block *tracer_copy_find(const struct tracer_copy *copy, uint64_t addr);

/* The handle of the heap that a block is in; 0 when that is not known. */
uint64_t tracer_copy_heap(const struct tracer_copy *copy, const struct tracer_block *block);

/* The frames of a stack, copied to frames; how many, or 0 when id names no sound record. */
uint32_t tracer_copy_stack(
	const struct tracer_copy *copy, uint32_t id, uint64_t frames[TRACER_DEPTH_MAX]);

#endif
