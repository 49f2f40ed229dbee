/* The tracer in a target, found and read from outside. */
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
 * The tracer in a target: where it is, in which state, and what it says of itself. What stands there
 * is the target's, and may be anything.
 */

/* The address of the area of the tracer among the target's modules, whatever its state is. Returns 0;
 * -ERR_NOT_TRACED; -ERR_TARGET when a DLL of its name is there that is none. */
int tracer_find(struct target *target, const struct module *modules, size_t count,
	uint64_t *area_addr, struct err *err);

/* Reads the area of a tracer in any state, and checks that it is one that this hsnap knows:
 * 0, -ERR_TARGET, -ERR_GONE; then *area may be anything. */
int tracer_area_read(
	struct target *target, uint64_t area_addr, struct tracer_area *area, struct err *err);

/* Whether the tracer of that area is at work. Returns 0; -ERR_NOT_TRACED, with a word in err; -ERR_TARGET. */
int tracer_check(const struct target *target, const struct tracer_area *area, struct err *err);

/* True when a thread was stopped while it changed what the tracer knows of virtual memory, or, if that counts,
 * of a block that is live all the time: the target should be let go for a moment. The target is held. */
bool tracer_is_busy(struct target *target, uint64_t area_addr, bool with_blocks);

/*
 * What the tracer in a target knows, read from outside and copied: its live blocks, their stacks, the
 * modules that are gone, and virtual memory. Nothing of it is believed before it was checked.
 *
 * First all ranges are read that the area names, the last time while the target is held; they are understood
 * when it runs again.
 */

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
	struct tracer_area *since; /* the counters at tracer_copy_mark(); or NULL */
	struct tracer_part parts[PART_COUNT];
	struct tracer_block *blocks; /* after tracer_copy_sort(): by address, each once */
	size_t block_count;
	struct tracer_index index; /* of them; none before tracer_copy_sort() */
	unsigned broken_shards; /* left out */
	uint64_t read_bytes; /* of the tables, by the last tracer_copy_read() */
	struct tracer_modules modules;
	struct tracer_range_list ranges;
};

void tracer_copy_init(struct tracer_copy *copy);
void tracer_copy_release(struct tracer_copy *copy);

/*
 * Reads the tables. Once while the target does not change, and then they are whole; before that it may be done while the
 * target runs, for what has not changed since is not read again. Returns 0, -ERR_NOT_TRACED (by now),
 * -ERR_GONE, -ERR_TARGET (also when they are larger than half of this machine's memory), -ERR_NOMEM, and then copy is
 * empty but for its area.
 */
int tracer_copy_read(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

/*
 * Remembers this moment: afterwards tracer_copy_parse() marks the blocks that have been in the tables since then, as far as
 * the tables show. Blocks whose neighbours have changed are not marked. If the area cannot be read, none is.
 */
void tracer_copy_mark(struct tracer_copy *copy, struct target *target, uint64_t area_addr);

/* Returns true if a block of a copy is marked so. The mark takes the place of the generation of the block's heap. */
static inline bool tracer_copy_is_old(const struct tracer_block *block)
{
	return block->key >> (TRACER_ADDR_BITS + TRACER_HEAPS_LOG2);
}

/* Reads the modules that are gone, and understands them, while the target runs. The same, and the stacks and blocks are
 * not there. */
int tracer_copy_read_unloads(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err);

/* Understands what was read, once. Returns 0, -ERR_GONE, -ERR_TARGET or -ERR_NOMEM, and copy is empty but
 * for its area. */
int tracer_copy_parse(
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
