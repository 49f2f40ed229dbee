/*
 * Interfaces between the parts of a capture: the data that is read while the target is held, and
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
 * Data that was read from a held target. model_build.c assigns a stack to each block; describe.c
 * adds facts about the process and warnings about gaps. */

#define APART_COUNT 3 /* areas of the tracer's own memory: its tables, rings and DLL */

/* Stack of a live thread. */
struct thread_stack {
	uint64_t addr; /* start of its allocation */
	uint64_t bytes, committed_bytes;
};

struct raw_capture {
	struct walk walk;
	struct heap_hints hints; /* heaps that the tracer knew before the first walk */
	uint64_t *traced_heaps; /* addresses of the heaps in `hints` */
	/* The heaps were walked while the target ran, so the tracer's tables take precedence. */
	bool is_from_tables;
	bool is_unwalkable; /* no heap has a known layout, so nothing can be walked */
	/* Some blocks were not walked, so lost and held blocks cannot be distinguished. */
	bool is_reach_refused;
	bool may_free_unseen; /* result of target_may_free_unseen() */
	const char *wrong_layout; /* layout that the tracer's blocks contradict, or NULL */
	/* untraced_count: number of blocks that only the walk has. unfound_count: number of blocks
	 * that only the tracer has. Both are set if the tracer should have all blocks and the
	 * target was held during the walk. */
	uint64_t untraced_count, unfound_count;
	/* Blocks without a stack that are older than the attached tracer. */
	struct block_totals older;
	/* Number of blocks in the tracer's tables that a sound walk of their heap did not find. */
	uint64_t freed_unseen;
	/* Reason why the heaps of a file could not be walked; code 0 if they could be walked. */
	struct err heaps_err;
	struct capture_source source;
	struct err tracer_err; /* reason why the tracer's data in a file could not be read */
	struct tracer_copy tracer;
	struct thread_stack *thread_stacks; /* sorted by address; NULL: unknown */
	size_t thread_stack_count;
	bool finds_lost, only_starts; /* copies of the options */
	struct target_range apart[APART_COUNT]; /* the tracer's own memory */
	struct target *copy; /* copy of the memory that may point to blocks, or NULL */
	struct reach_taken reach; /* empty unless finds_lost */
	bool wants_ust;
	struct ust *ust;
	/* Heap blocks without a stack, unless the tracer samples. `stack` of such a block is its
	 * reach, as in snapshot.reach. */
	struct block *stackless;
	size_t stackless_count, stackless_cap;
};

/* Adds the current first bytes of `count` blocks of each stack, and the blocks to which these bytes
 * point. Omits unreadable blocks: they have been freed since, or a minidump lacks them. */
void content_capture(struct target *target, unsigned count, struct snapshot *snapshot);

/* Adds the current first bytes of a block; sets their number. Does nothing if they are
 * unreadable. */
void content_add(struct target *target, struct block_content content, struct snapshot *snapshot);

/* Returns true if block number `at` of `of` blocks is one of the `count` blocks whose contents are
 * stored. These are evenly distributed. */
bool content_is_chosen(uint64_t at, uint64_t of, unsigned count);

/* Sets the groups of blocks without a stack, and adds the contents of `count` blocks of each group.
 * If `count` is 0, no data of the program is stored. The target may run. Must be called before content_capture(). Returns 0 or -ERR_NOMEM. */
int stackless_capture(struct target *target, const struct raw_capture *captured, unsigned count,
	struct snapshot *snapshot, struct err *err);

/* Sets the balance of the process, and lists the stacks of its threads in `captured`. The walk must
 * be complete. Does not hold the target. What the target does not provide stays unknown. */
void balance_capture(
	struct target *target, struct raw_capture *captured, struct snapshot *snapshot);

/* Sets `space` of the walked heaps, and adds the containers that only a few blocks keep allocated to
 * `snapshot`. The walk must be complete. Does not hold the target. */
void heap_space_capture(
	struct target *target, struct raw_capture *captured, struct snapshot *snapshot);

/*
 * Blocks from the tracer's tables alone. If a tracer was loaded before the program began, it has
 * recorded all blocks, so the target need not be held while its heaps are walked. This is done only
 * under Wine, because ntdll of Windows 7 and 8 frees some blocks without calling the hooks. On any
 * system, a program may do so too. In that case, the walk contradicts the tables.
 */

/* Returns true if the tracer's tables may contain every block, according to the tracer's area. */
bool tables_may_have_all(const struct tracer_area *area);

/* Returns true if it is certain that the tables contain every block of the walked heaps. The copy
 * must have been parsed. */
bool tables_have_all(const struct raw_capture *captured);

/* Returns true if the tracer has recorded every block since the start of the program. */
bool tables_are_complete(const struct raw_capture *captured);

/* Returns the handle of the tracer's heap with this index, or 0 if the heap was destroyed. */
uint64_t tables_heap_at(const struct tracer_area *area, uint32_t index);

/*
 * Adds the heaps that only the tracer knows, as unwalked heaps. Marks an unwalked or partly walked
 * heap as complete if the tracer has all blocks of the heap. Returns 0 or -ERR_NOMEM.
 */
int tables_add_heaps(struct raw_capture *captured);

/* Corrects the sizes of blocks that were shrunk in place: uses the tracer's sizes. This is needed
 * for heaps that still report the old size of such a block. */
void tables_correct_sizes(struct raw_capture *captured);

/*
 * Compares the tracer's blocks with the blocks that were found while the target was held. The
 * layout of a heap was wrong if two conditions are met: more than one in a hundred of the heap's
 * blocks is missing, and nothing suggests that the missing blocks were freed unseen. All heaps with
 * this layout then count as not walked. Returns the last such layout, or NULL.
 */
const char *tables_judge(struct raw_capture *captured);

/*
 * Changes a walk of the running target into the result that a walk of the held target would have
 * given. A block that the walk did not find gets the overhead of a walked block of the same heap
 * and size. Returns false if no such walked block exists or if the walk contradicts the tables. The
 * target must then be walked while it is held.
 */
bool tables_add_blocks(struct raw_capture *captured);

/* Counts the differences between the tables and a walk of the held target. */
void tables_compare(struct raw_capture *captured);

/* Scaling for a sampling tracer: the recorded blocks represent all blocks. */

/* Replaces the blocks of `snapshot` with scaled sums. All of these blocks must have been recorded.
 * Blocks without a stack are added to the counts of their heap. */
void sample_add_sums(struct snapshot *snapshot, uint64_t sample_bytes);

/*
 * Joining of blocks and stacks: the walkers' blocks, the tracer's tables and the records of stacks
 * become the heaps, blocks and stacks of a snapshot.
 */

/*
 * Adds everything to `snapshot`, which has no heaps and blocks yet. Adds a warning if the tracer
 * and the walkers disagree about blocks. Then adds the tracer's ranges of virtual memory. Each
 * range is a block under one of three headings, which are not heaps. Takes ownership of the walk's
 * blocks.
 */
void model_add_blocks(struct snapshot *snapshot, struct raw_capture *captured);

/*
 * Modules of a live process. They are listed before the process is held and again afterwards,
 * because the snapshot may contain frames in modules that were loaded in between. */

/*
 * Merges a later list of modules into `snapshot`, whose modules must be sorted. Adds copies of
 * modules that are missing there, and sorts the modules. If a later module occupies addresses of a
 * module in `snapshot`, the later module is omitted. The frames of the earlier module were recorded
 * over a long time. Those of the later module were recorded at most in the moment between the two
 * listings. Returns the number of omitted modules.
 */
int describe_merge_modules(struct snapshot *snapshot, const struct module *later, size_t count);

/* Facts in a snapshot, apart from its blocks: the process, the builds of its modules, the source of
 * its stacks, and the gaps. */

/* Describes the process and its modules. The modules must already be listed. */
void describe_process(struct target *target, struct snapshot *snapshot);

#define BARE_TEXT_BYTES 800

/*
 * Formats a warning about modules that were unwound only by EBP. Such unwinding skips the callers
 * of code without frame pointers. `bases` contains the addresses of these modules; a 0 may end the
 * list early. Returns false, and leaves `text` unchanged, if all of the modules are part of
 * Windows.
 */
bool describe_bare_images(const struct snapshot *snapshot, const uint32_t *bases, size_t base_count,
	char text[BARE_TEXT_BYTES]);

/* Describe the source of stacks and the tracer, and add a warning for each gap that readers of the
 * dump should know about. */
void describe_stacks(
	const struct target *target, struct snapshot *snapshot, const struct raw_capture *captured);
void describe_gaps(struct snapshot *snapshot, const struct raw_capture *captured);

#endif
