/* Finding a tracer in a target, and reading its tables. */
#ifndef SNAPSHOT_STACKS_TRACER_READ_H
#define SNAPSHOT_STACKS_TRACER_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dump/model.h"
#include "snapshot/stacks/tracer_parts.h"
#include "snapshot/target/target.h"
#include "snapshot/tracer/shared.h"

/*
 * The tracer in a target: its address, its state and its counters. Everything is read from the
 * target and must be checked. */

/* Finds the area of the tracer, in any state, among the target's modules. Returns 0,
 * -ERR_NOT_TRACED, or -ERR_TARGET if a DLL of the tracer's name is not a tracer. */
int tracer_find(struct target *target, const struct module *modules, size_t count,
	uint64_t *area_addr, struct err *err);

/* Reads the area of a tracer in any state, and checks that this hsnap knows its version. Returns 0,
 * -ERR_TARGET, or -ERR_GONE; after an error *area is undefined. */
int tracer_area_read(
	struct target *target, uint64_t area_addr, struct tracer_area *area, struct err *err);

/* Returns 0 if the tracer of that area is recording. Otherwise returns -ERR_NOT_TRACED, with the
 * reason in err, or -ERR_TARGET. */
int tracer_check(const struct target *target, const struct tracer_area *area, struct err *err);

/* Returns true if a thread was stopped while it changed the tracer's records of virtual memory or,
 * with_blocks, of a block that stays live. Then the target should be resumed for a moment. The
 * target must be held. */
bool tracer_is_busy(struct target *target, uint64_t area_addr, bool with_blocks);

/*
 * A copy of the tracer's tables: live blocks, their stacks, unloaded modules and virtual memory.
 * Everything is checked before it is used.
 *
 * First all ranges that the area names are read, the last time while the target is held. They are
 * parsed after the target was resumed. */

/* Ranges of the target's memory to read: a table per shard, then these. */
enum tracer_part_id {
	PART_STACKS = TRACER_SHARDS,
	PART_MODULES,
	PART_UNLOADS,
	PART_RANGES,
	PART_COUNT,
};

struct tracer_part {
	uint64_t addr, bytes; /* in the target; 0 bytes: no such part */
	unsigned char *copy; /* same number of bytes; copies of shards are freed after parsing */
};

struct tracer_copy {
	struct tracer_area area; /* with its counters */
	struct tracer_area *since; /* the area at tracer_copy_mark(), or NULL */
	struct tracer_part parts[PART_COUNT];
	/* After tracer_copy_sort(): sorted by address, without duplicates. */
	struct tracer_block *blocks;
	size_t block_count;
	struct tracer_index index; /* index of blocks; empty before tracer_copy_sort() */
	unsigned broken_shards; /* shards that were left out */
	uint64_t read_bytes; /* bytes of tables that the last tracer_copy_read() read */
	struct tracer_modules modules;
	struct tracer_range_list ranges;
};

void tracer_copy_init(struct tracer_copy *copy);
void tracer_copy_release(struct tracer_copy *copy);

/*
 * Reads the tables. The last reading must be done while the target does not change; then the copy
 * is consistent. Earlier readings may be done while the target runs, because unchanged parts are
 * not read again. Returns 0, -ERR_NOT_TRACED (the tracer was switched off), -ERR_GONE, -ERR_TARGET
 * (also if the tables exceed half of this machine's memory), or -ERR_NOMEM. After an error copy is
 * empty except for its area. */
int tracer_copy_read(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

/*
 * Marks this moment. Afterwards tracer_copy_parse() marks the blocks that, by the change counters,
 * have been in the tables since then. Blocks with changed neighbours are not marked. If the area
 * cannot be read, no block is. */
void tracer_copy_mark(struct tracer_copy *copy, struct target *target, uint64_t area_addr);

/* Returns true if a block of a copy has that mark, which replaces the generation of the block's
 * heap. */
static inline bool tracer_copy_is_old(const struct tracer_block *block)
{
	return block->key >> (TRACER_ADDR_BITS + TRACER_HEAPS_LOG2);
}

/* Reads and parses the unloaded modules while the target runs. Returns like tracer_copy_read().
 * Stacks and blocks are not read. */
int tracer_copy_read_unloads(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

/* Parses the copied tables, once. Returns 0, -ERR_GONE, -ERR_TARGET, or -ERR_NOMEM; after an error
 * copy is empty except for its area. */
int tracer_copy_parse(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

void tracer_copy_sort(struct tracer_copy *copy);

const struct tracer_block *tracer_copy_find(const struct tracer_copy *copy, uint64_t addr);

/* Returns the handle of a block's heap, or 0 if it is unknown. */
uint64_t tracer_copy_heap(const struct tracer_copy *copy, const struct tracer_block *block);

/* Returns true if the entry has this size and this heap, or has no number for its heap (see
 * tracer_area.heaps). */
bool tracer_copy_matches(const struct tracer_copy *copy, const struct tracer_block *block,
	uint64_t heap, uint64_t bytes);

/*
 * Copies the frames of a stack and returns their number, or 0 if id is not a valid record. Frames
 * in unloaded modules are moved to their new bases after tracer_modules_place(); these modules then
 * count as used. Several threads may call this at once. */
uint32_t tracer_copy_stack(
	const struct tracer_copy *copy, uint32_t id, uint64_t frames[TRACER_DEPTH_MAX]);

#endif
