/*
 * Interfaces between the parts of a capture: the data that was read while the target was held, and
 * the functions that turn it into a snapshot. */
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
 * Data that was read from a held target. model_build.c gives each block its stack; describe.c adds
 * the process and the gaps. */

#define APART_COUNT 3 /* memory of the tracer: its tables, rings and DLL */

struct raw_capture {
	struct walk walk;
	struct heap_hints hints; /* heaps that the tracer knew before the first walk */
	uint64_t *traced_heaps; /* addresses of these heaps */
	/* The heaps were walked while the target ran, so the tracer's tables decide. */
	bool is_from_tables;
	bool is_unwalkable; /* no heap has a known layout, so nothing can be walked */
	/* Some blocks were not walked, so lost and held blocks cannot be distinguished. */
	bool is_reach_refused;
	bool may_free_unseen; /* result of target_may_free_unseen() */
	const char *wrong_layout; /* layout that the tracer's blocks contradict, or NULL */
	/* Differences between a tracer that should have all blocks and a walk while the target was
	 * held: blocks that the tracer does not have, and blocks that the heaps do not have. */
	uint64_t untraced_count, unfound_count;
	struct block_totals older; /* blocks without a stack, older than the attached tracer */
	/* Blocks in the tracer's table that a sound walk of their heap does not have. */
	uint64_t freed_unseen;
	/* In a file: reason why its heaps could not be walked; code 0 if they could. */
	struct err heaps_err;
	struct capture_source source;
	struct err tracer_err; /* in a file: reason why its tracer could not be read */
	struct tracer_copy tracer;
	bool finds_lost, only_starts; /* copies of the options */
	struct target_range apart[APART_COUNT]; /* the tracer's own memory */
	struct target *copy; /* copy of the memory that may lead to blocks, or NULL */
	struct reach_taken reach; /* empty unless finds_lost */
	bool wants_ust;
	struct ust *ust;
};

/* Adds the current first bytes of `count` blocks of each stack, and the blocks that they point to.
 * Unreadable blocks are left out: they have been freed since, or a minidump lacks them. */
void content_take(struct target *target, unsigned count, struct snapshot *snapshot);

/*
 * Blocks from the tracer's tables alone. A tracer that was loaded before the program began has
 * recorded all blocks, so its target need not be held while its heaps are walked. This holds under
 * Wine only: ntdll of Windows 7 and 8 frees some blocks without passing the hooks. A program may do
 * that on any system, and then the walk contradicts the tables. */

/* Returns true if the tables of this tracer may contain every block, judging by its area. */
bool tables_may_have_all(const struct tracer_area *area);

/* Returns true if the tables contain every block of the walked heaps and nothing is unresolved. The
 * copy must have been parsed. */
bool tables_have_all(const struct raw_capture *captured);

/* Returns true if the tracer recorded every block from the start of the program on. */
bool tables_are_complete(const struct raw_capture *captured);

/* Returns the handle of the index'th heap that the tracer knows, or 0 if it was destroyed. */
uint64_t tables_heap_at(const struct tracer_area *area, uint32_t index);

/*
 * Adds the heaps that the tracer knows and the walk does not, as unwalked heaps. Marks unwalked and
 * partly walked heaps as complete if the tracer has all of their blocks. Returns 0 or
 * -ERR_NOMEM. */
int tables_add_heaps(struct raw_capture *captured);

/* Uses the tracer's sizes for blocks that were shrunk in place, in heaps that do not record
 * this. */
void tables_correct_sizes(struct raw_capture *captured);

/*
 * Compares the tracer's blocks with the blocks that were found while the target was held. If more
 * than one in a hundred is missing, and nothing suggests that they were freed unseen, the layout
 * was wrong: its heaps count as not walked. Returns the last such layout, or NULL. */
const char *tables_judge(struct raw_capture *captured);

/* Turns a walk of the running target into the result of a walk while it was held. New blocks get
 * the overhead of a block of their size in their heap. Returns false if there is no such block, or
 * if the walk contradicts the tables. Then a walk while the target is held must decide. */
bool tables_give_blocks(struct raw_capture *captured);

/* Counts the differences between the tables and a walk while the target was held. */
void tables_compare(struct raw_capture *captured);

/* Scaling of the blocks of a sampling tracer: the recorded blocks stand for all. */

/* Replaces snapshot's blocks, all of which were recorded, by scaled sums. Blocks without a stack
 * are added to their heap. */
void sample_add_sums(struct snapshot *snapshot, uint64_t sample_bytes);

/*
 * Joining of blocks and stacks: the walkers' blocks, the tracer's tables and the records of stacks
 * become the heaps, blocks and stacks of a snapshot. */

/*
 * Adds everything to snapshot, which has no heaps and blocks yet. Adds a warning if the tracer and
 * the walkers disagree about blocks. The tracer's ranges of virtual memory follow: each is a block
 * under one of three headings, which are not heaps. Takes over the walk's blocks. */
void model_add_blocks(struct snapshot *snapshot, struct raw_capture *captured);

/*
 * Modules of a live process, listed before it was held and again afterwards. Modules loaded in
 * between may have frames in the snapshot. */

/*
 * Adds the modules of the later list that snapshot does not have; snapshot's modules are sorted. If
 * another module occupies the same place, that module stays: its frames were recorded all the time,
 * those of its successor for a moment at most. Copies the added modules and sorts the list. Returns
 * the number of modules that were left out in favour of a different one. */
int describe_merge_modules(struct snapshot *snapshot, const struct module *later, size_t count);

/*
 * Facts in a snapshot in addition to its blocks: the process, the builds of its modules, the source
 * of its stacks, and its gaps. */

/* Describes the process and its modules, which are listed already. */
void describe_process(struct target *target, struct snapshot *snapshot);

#define BARE_TEXT_BYTES 800

/*
 * Writes to text the warning about modules that were unwound by EBP alone, which skips the callers
 * of code without frame pointers. bases contains the addresses of these modules and may end with a
 * 0. Returns false, and leaves text unchanged, if all of them are Windows' own. */
bool describe_bare_images(const struct snapshot *snapshot, const uint32_t *bases, size_t base_count,
	char text[BARE_TEXT_BYTES]);

/* Describe the source of stacks and the tracer, and warn about each gap that a reader of the dump
 * must know. */
void describe_stacks(
	const struct target *target, struct snapshot *snapshot, const struct raw_capture *captured);
void describe_gaps(struct snapshot *snapshot, const struct raw_capture *captured);

#endif
