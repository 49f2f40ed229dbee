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
#include "core/dump/model.h"
#include "snapshot/capture/capture.h"
#include "snapshot/heap/heap.h"
#include "snapshot/reach/reach.h"
#include "snapshot/stacks/tracer_read.h"
#include "snapshot/stacks/ust.h"

/*
 * What was read of a target while it was held, before it becomes a snapshot: model_build.c gives each block
 * its stack, describe.c says whose it is and what is missing.
 */

#define APART_COUNT 3 /* the tracer's tables, rings and DLL */

struct raw_capture {
	struct walk walk;
	struct heap_hints hints; /* heaps that the tracer knows, before the first walk */
	uint64_t *traced_heaps; /* their addresses */
	/* The heaps were walked while the target ran: the tracer's tables decide. */
	bool is_from_tables;
	bool is_unwalkable; /* no heap has a known layout: there is nothing to walk */
	bool is_reach_refused; /* some blocks were not walked: lost and held ones look alike */
	bool may_free_unseen; /* as target_may_free_unseen() has it */
	const char *wrong_layout; /* a layout that the tracer's blocks contradict, or NULL */
	/* With a tracer that is said to have all blocks, of a walk while the target was held: blocks that it has
	 * not, and blocks that the heaps have not. */
	uint64_t untraced_count, unfound_count;
	struct block_totals older; /* blocks without a stack from before the tracer was attached */
	uint64_t
		freed_unseen; /* blocks of the tracer's table that a sound walk of their heap does not have */
	struct err heaps_err; /* of a file: why its heaps could not be walked; else its code is 0 */
	struct capture_source source;
	struct err tracer_err; /* of a file: why its tracer could not be read */
	struct tracer_copy tracer;
	bool finds_lost, only_starts; /* as they were asked for */
	struct target_range apart[APART_COUNT]; /* the tracer's own memory */
	struct target *copy; /* that tells what leads to blocks; or NULL */
	struct reach_taken reach; /* with none unless that was */
	bool wants_ust;
	struct ust *ust;
};

/* Adds the first bytes of count blocks of each stack, as they are now, and where they lead to. What cannot be read is
 * left out: it was freed since, or a minidump lacks it. */
void content_take(struct target *target, unsigned count, struct snapshot *snapshot);

/*
 * Blocks from the tracer's tables alone. A tracer that came before the program began was told of all blocks that
 * were there, so its target needs not be held while its heaps are walked. That is so under Wine only: ntdll of Windows 7
 * and 8 frees some blocks without passing the hooks. A program may do so anywhere, and then the walk contradicts.
 */

/* Whether the tables of that tracer have every block, as far as its area tells. */
bool tables_may_have_all(const struct tracer_area *area);

/* Whether they do, in the heaps that were walked, and nothing is left open: of a copy that was understood. */
bool tables_have_all(const struct raw_capture *captured);

/* Returns true if the tracer was there from the start of the program and recorded every block. */
bool tables_are_complete(const struct raw_capture *captured);

/* Returns the handle of the index'th heap that the tracer knows, or 0 if it was destroyed. */
uint64_t tables_heap_at(const struct tracer_area *area, uint32_t index);

/*
 * Adds the heaps that the tracer knows and the walk has not, as heaps that were not walked, and marks those that
 * were not walked, or in part, whose blocks the tracer has all. 0 or -ERR_NOMEM.
 */
int tables_add_heaps(struct raw_capture *captured);

/* Takes the tracer's sizes for blocks that were shrunk in place in a heap that does not write that down. */
void tables_correct_sizes(struct raw_capture *captured);

/*
 * Compares the tracer's blocks with those that were found while the target was held. Where more than one in a hundred is
 * elsewhere, and nothing suggests that they were freed unseen, the layout was the wrong one: its heaps count as not walked.
 * Returns the last such layout, or NULL.
 */
const char *tables_judge(struct raw_capture *captured);

/* Makes of a walk while the target ran what one while it was held would have found. A block that came since has the
 * overhead of one of its size in its heap; false: there is none, or the walk contradicts the tables, and a walk while the
 * target is held has to decide. */
bool tables_give_blocks(struct raw_capture *captured);

/* Counts what the tables and a walk while it was held do not have in common. */
void tables_compare(struct raw_capture *captured);

/*
 * Blocks of a tracer that records one in so many bytes: what was recorded stands for all.
 */

/* Puts sums in the place of snapshot's blocks, which are those that were recorded, scaled; adds also to what heaps have
 * without a stack. */
void sample_add_sums(struct snapshot *snapshot, uint64_t sample_bytes);

/*
 * Blocks and their stacks put together: what walkers found, what the tracer saw, and the records that
 * blocks point to become the heaps, blocks and stacks of a snapshot.
 */

/*
 * Adds everything to snapshot, which has no heaps and blocks yet, with a warning for blocks that the
 * tracer and the walkers tell different things of. Virtual memory that the tracer recorded follows: each range
 * is a block under one of three headings that are no heaps. The walk has no blocks any more then.
 */
void model_add_blocks(struct snapshot *snapshot, struct raw_capture *captured);

/*
 * The modules of a live process, listed before it was held and again after: what was loaded in
 * between may have frames in the snapshot.
 */

/*
 * Adds to snapshot, whose modules are sorted, those of the later list that are not in it. Where another
 * module was before, that one stays: frames of it were recorded all the time, of its successor for a
 * moment at most. Sorts, and copies what it adds. Returns how many modules gave way to another.
 */
int describe_merge_modules(struct snapshot *snapshot, const struct module *later, size_t count);

/*
 * What a snapshot says beside its blocks: whose it is, which builds of modules, where its stacks come
 * from, and what is missing in it.
 */

/* The process and its modules, which are listed already. */
void describe_process(struct target *target, struct snapshot *snapshot);

#define BARE_TEXT_BYTES 800

/*
 * Writes to text the warning about modules that were unwound by EBP alone, which skips the callers of code without frame
 * pointers. bases holds the addresses of these modules and may end with a 0. Returns false, and leaves text unchanged, if
 * all of them are Windows' own.
 */
bool describe_bare_images(const struct snapshot *snapshot, const uint32_t *bases, size_t base_count,
	char text[BARE_TEXT_BYTES]);

/* The source of stacks, what is known of the tracer, and a warning for each gap that the reader of the dump has to
 * know of. */
void describe_stacks(
	const struct target *target, struct snapshot *snapshot, const struct raw_capture *captured);
void describe_gaps(struct snapshot *snapshot, const struct raw_capture *captured);

#endif
