/* Finds a tracer in a target and reads its tables. */
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
 * The tracer in a target: its address, its state and its counters. All of these are read from the
 * target, so they must be checked.
 */

/* Finds the area of a tracer in any state, among the modules of the target. Returns 0,
 * -ERR_NOT_TRACED, or -ERR_TARGET if a DLL has the tracer's name but is not a tracer. */
int tracer_find(struct target *target, const struct module *modules, size_t count,
	uint64_t *area_addr, struct err *err);

/* Reads the area of a tracer in any state, and checks that this hsnap knows the tracer's version.
 * Returns 0, -ERR_TARGET, or -ERR_GONE. After an error, `*area` is undefined. */
int tracer_area_read(
	struct target *target, uint64_t area_addr, struct tracer_area *area, struct err *err);

/* Returns 0 if the area's tracer is recording. Otherwise returns -ERR_TARGET, or -ERR_NOT_TRACED
 * with the reason in `err`. */
int tracer_check(const struct target *target, const struct tracer_area *area, struct err *err);

/* Returns true if a thread was stopped in the middle of a change: of the tracer's records of
 * virtual memory or, if `with_blocks` is set, of the entry of a block that remains live. The caller
 * should then resume the target for a moment. The target must be held. */
bool tracer_is_busy(struct target *target, uint64_t area_addr, bool with_blocks);

/*
 * A copy of the tracer's tables: live blocks, their stacks, unloaded modules and virtual memory.
 * All data is checked before it is used. The ranges that the area lists are read first, possibly
 * several times; the last time, the target is held. They are parsed after the target was resumed.
 */

/* Ranges of the target's memory to read. The tables of the shards come first, one per shard. */
enum tracer_part_id {
	PART_STACKS = TRACER_SHARDS,
	PART_MODULES,
	PART_UNLOADS,
	PART_RANGES,
	PART_COUNT,
};

struct tracer_part {
	uint64_t addr, bytes; /* range in the target; 0 bytes: no such part */
	unsigned char *copy; /* copy of the part; the copy of a shard is freed after parsing */
};

struct tracer_copy {
	struct tracer_area area; /* the tracer's area, including its counters */
	struct tracer_area *since; /* the area at the time of tracer_copy_mark(), or NULL */
	struct tracer_part parts[PART_COUNT];
	/* Sorted by address and without duplicates after tracer_copy_sort(). */
	struct tracer_block *blocks;
	size_t block_count;
	struct tracer_index index; /* index of blocks; empty before tracer_copy_sort() */
	unsigned broken_shards; /* number of shards that were omitted */
	uint64_t read_bytes; /* number of bytes that the last tracer_copy_read() read */
	struct tracer_modules modules;
	struct tracer_range_list ranges;
};

void tracer_copy_init(struct tracer_copy *copy);
void tracer_copy_release(struct tracer_copy *copy);

/*
 * Reads the tables. The last reading must be done while the target does not change, so that the
 * copy is consistent. Earlier readings may be done while the target runs. They save time, because
 * unchanged parts are not read again. Returns 0, -ERR_NOT_TRACED (the tracer was switched off),
 * -ERR_GONE, -ERR_TARGET (also if the tables exceed half of this machine's memory), or -ERR_NOMEM.
 * After an error, the copy is empty except for its area.
 */
int tracer_copy_read(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

/*
 * Remembers the current moment. tracer_copy_parse() then marks the blocks that have been in the
 * tables since that moment. A change counter covers several entries. So an old block is not marked
 * if an entry near it has changed. If the area cannot be read, no block is marked.
 */
void tracer_copy_mark(struct tracer_copy *copy, struct target *target, uint64_t area_addr);

/* Returns true if tracer_copy_parse() has marked a block as old. The mark replaces the generation
 * of the block's heap. */
static inline bool tracer_copy_is_old(const struct tracer_block *block)
{
	return block->key >> (TRACER_ADDR_BITS + TRACER_HEAPS_LOG2);
}

/* Reads and parses only the unloaded modules, while the target runs. Returns the same values as
 * tracer_copy_read(). */
int tracer_copy_read_unloads(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

/* Parses the copied tables, once. Returns 0, -ERR_GONE, -ERR_TARGET, or -ERR_NOMEM. After an error,
 * the copy is empty except for its area. */
int tracer_copy_parse(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

void tracer_copy_sort(struct tracer_copy *copy);

const struct tracer_block *tracer_copy_find(const struct tracer_copy *copy, uint64_t addr);

/* Returns the handle of a block's heap, or 0 if unknown. */
uint64_t tracer_copy_heap(const struct tracer_copy *copy, const struct tracer_block *block);

/* Returns true if the entry has this size and belongs to this heap. An entry whose heap has no
 * number matches any heap (see tracer_area.heaps). */
bool tracer_copy_matches(const struct tracer_copy *copy, const struct tracer_block *block,
	uint64_t heap, uint64_t bytes);

/*
 * Copies the frames of a stack and returns their number, or 0 if no valid record has this id. After
 * tracer_modules_place(), frames in unloaded modules are moved to the new bases of these modules,
 * and the modules are marked as used. Several threads may call this function at once.
 */
uint32_t tracer_copy_stack(
	const struct tracer_copy *copy, uint32_t id, uint64_t frames[TRACER_DEPTH_MAX]);

#endif
