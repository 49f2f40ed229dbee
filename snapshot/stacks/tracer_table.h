/*
 * What the tracer in a target knows, read from outside and copied: its live blocks, their stacks, the
 * modules that are gone, and virtual memory. Nothing of it is believed before it was checked.
 *
 * First all ranges are read that the area names, and then they are understood: snapshot/copying.h reads
 * the same ranges (tracer_plan.h) while the target is held.
 */
#ifndef SNAPSHOT_STACKS_TRACER_TABLE_H
#define SNAPSHOT_STACKS_TRACER_TABLE_H

#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>

#include "snapshot/stacks/tracer_find.h"
#include "snapshot/stacks/tracer_modules.h"
#include "snapshot/stacks/tracer_order.h"
#include "snapshot/stacks/tracer_ranges.h"

/* Ranges of the target's memory that are read: a table of each shard, then these. */
enum tracer_part_id {
	PART_STACKS = TRACER_SHARDS,
	PART_MODULES,
	PART_UNLOADS,
	PART_RANGES,
	PART_COUNT,
};

struct tracer_part {
	uint64_t addr, bytes; /* in the target; 0 bytes: there is none */
	unsigned char
		*copy; /* as many bytes; those of shards are given back when they are understood */
};

struct tracer_copy {
	struct tracer_area area; /* its counters */
	struct tracer_part parts[PART_COUNT];
	struct tracer_block *blocks; /* after tracer_copy_sort(): by address, each once */
	size_t block_count;
	struct tracer_index index; /* of them; none before tracer_copy_sort() */
	unsigned broken_shards; /* left out */
	struct tracer_modules modules;
	struct tracer_range_list ranges;
};

void tracer_copy_init(struct tracer_copy *copy);
void tracer_copy_release(struct tracer_copy *copy);

/*
 * Reads the tables while the target, or the copy that is made of it, does not change, and understands
 * them. Returns 0, -ERR_NOT_TRACED (by now), -ERR_INJECT, -ERR_GONE, -ERR_TARGET (also when they are
 * larger than half of this machine's memory), -ERR_NOMEM; what copy held before is gone.
 */
int tracer_copy_take(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

/* Orders the blocks for tracer_copy_find(). */
void tracer_copy_sort(struct tracer_copy *copy);

/* The block at addr, or NULL. */
const struct tracer_block *tracer_copy_find(const struct tracer_copy *copy, uint64_t addr);

/* The handle of the heap that a block is in; 0 when that is not known. */
uint64_t tracer_copy_heap(const struct tracer_copy *copy, const struct tracer_block *block);

/* Whether it says of a block what is known of it: its size, and its heap, unless the tracer has no
 * number for that (see tracer_area.heaps). */
bool tracer_copy_matches(const struct tracer_copy *copy, const struct tracer_block *block,
	uint64_t heap, uint64_t bytes);

/*
 * The frames of a stack, copied to frames; how many, or 0 when id names no sound record. Those in
 * modules that are gone are at their synthetic bases, once tracer_modules_place() has chosen them; the
 * modules count as used then. Several threads may ask.
 */
uint32_t tracer_copy_stack(
	const struct tracer_copy *copy, uint32_t id, uint64_t frames[TRACER_DEPTH_MAX]);

#endif
