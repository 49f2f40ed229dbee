/*
 * The parts of a capture: what was read while the target was held, and how it becomes a
 * snapshot.
 */
#ifndef SNAPSHOT_CAPTURE_CAPTURE_PARTS_H
#define SNAPSHOT_CAPTURE_CAPTURE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/dump/model.h"
#include "snapshot/heap/heap.h"
#include "snapshot/stacks/os_stacks.h"
#include "snapshot/stacks/tracer_read.h"
#include "snapshot/stacks/ust.h"

/*
 * What was read of a target while it was held, before it becomes a snapshot: capture_parts.h gives each block
 * its stack, capture_parts.h says whose it is and what is missing.
 */

struct raw_capture {
	struct walk walk;
	struct err heaps_err; /* of a file: why its heaps could not be walked; else its code is 0 */
	bool has_tracer;
	bool is_detached; /* a tracer is loaded, and off */
	uint64_t area_addr; /* of the tracer */
	struct err tracer_err; /* of a file: why its tracer could not be read */
	struct tracer_copy tracer;
	bool wants_ust, is_flagged; /* the process was started with +ust */
	struct ust *ust;
	struct os_stacks *os; /* NULL unless they were asked for */
};

/* True when stacks come from the system's database, or were to. */
static inline bool raw_capture_has_ust(const struct raw_capture *captured)
{
	return captured->wants_ust && (captured->is_flagged || ust_record_count(captured->ust));
}

/*
 * Stacks that the tracer knows by number, put into a snapshot each once.
 */

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

/*
 * Blocks of a tracer that records one in so many bytes: what was recorded stands for all.
 */

/* Of a block of that size, how many like it one that was recorded stands for. */
double sample_weight(uint64_t requested_bytes, uint64_t sample_bytes);

/*
 * Adds to snapshot, which has the walk's heaps, sums of the blocks that were recorded, scaled, and the
 * census of the walk to its heaps. The tracer's blocks are sorted. 0 or -ERR_NOMEM.
 */
int join_sampled(struct snapshot *snapshot, const struct raw_capture *captured);

/*
 * Virtual memory that the tracer recorded, in a snapshot: each range is a block under one of three
 * headings that are no heaps.
 */

/* Adds the headings behind the heaps, also when there is nothing under them, if the tracer records
 * virtual memory at all. 0 or -ERR_NOMEM. */
int model_add_virtual(struct snapshot *snapshot, const struct raw_capture *captured);

/*
 * Blocks and their stacks put together: what walkers found, what the tracer saw, and the records that
 * blocks point to become the heaps, blocks and stacks of a snapshot.
 */

/* Adds everything to snapshot, which has no heaps and blocks yet, with a warning for blocks that the
 * tracer and the walkers tell different things of. 0 or -ERR_NOMEM. */
int model_add_blocks(struct snapshot *snapshot, struct raw_capture *captured);

/*
 * The modules of a live process, listed before it was held and again after: what was loaded in
 * between may have frames in the snapshot.
 */

/*
 * Adds to snapshot, whose modules are sorted, those of the later list that are not in it. Where another
 * module was before, that one stays: frames of it were recorded all the time, of its successor for a
 * moment at most. Sorts, and copies what it adds. Returns how many modules gave way to another, or
 * -ERR_NOMEM.
 */
int describe_merge_modules(struct snapshot *snapshot, const struct module *later, size_t count);

/*
 * What a snapshot says of the tracer that its stacks come from: what it did not record, and why.
 */

/* Fills snapshot->tracer, when there is one. */
void describe_tracer(struct snapshot *snapshot, const struct raw_capture *captured);

/*
 * What a snapshot says beside its blocks: whose it is, which builds of modules, where its stacks come
 * from, and what is missing in it.
 */

/* The process and its modules, which are listed already. 0 or -ERR_NOMEM. */
int describe_process(struct target *target, struct snapshot *snapshot);

/* The source of stacks, and a warning for each gap that the reader of the dump has to know of. */
void describe_stacks(
	const struct target *target, struct snapshot *snapshot, const struct raw_capture *captured);
void describe_gaps(struct snapshot *snapshot, const struct raw_capture *captured);

#endif
