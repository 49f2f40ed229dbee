/*
 * Capture of one snapshot of a target. The target is held while its heaps are walked and the data
 * about the stacks of its blocks is read. After the target is resumed, blocks and stacks are joined
 * into the model.
 */
#ifndef SNAPSHOT_CAPTURE_CAPTURE_H
#define SNAPSHOT_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dump/model.h"
#include "snapshot/target/target.h"

/* Sources of stacks. Their names are used in --stacks and in the dump's "stacks source". */
enum capture_stacks {
	/* for each block: the tracer's stack if it exists, otherwise the stack from ust, otherwise
	 * none */
	STACKS_AUTO,
	STACKS_UST,
	STACKS_TRACER,
};

/* Parses the name of a source. Returns 0, or -ERR_USAGE for an unknown name. */
int capture_stacks_parse(const char *name, enum capture_stacks *stacks, struct err *err);

/* Sources of stacks that were found in a target. */
struct capture_source {
	bool has_tracer; /* a tracer is recording */
	bool is_attached; /* the tracer was attached to a running process */
	bool may_have_all; /* the tracer may know every block; see capture_parts.h */
	/* A tracer is loaded but is off. `is_detached`: it was on before. */
	bool is_loaded, is_detached;
	bool has_ust; /* the target was started with +ust */
	uint64_t area_addr; /* address of the recording tracer's area */
	/* mean number of bytes per recorded block; 0: all blocks are recorded */
	uint64_t sample_bytes;
};

/* Searches for the wanted source. Returns 0, -ERR_NOT_TRACED, or -ERR_TARGET for an unknown tracer.
 * Even after an error, `*source` describes the other sources that were found. */
int capture_source_find(struct target *target, const struct snapshot *modules,
	enum capture_stacks wanted, struct capture_source *source, struct err *err);

/* Returns the name of the source with the highest priority: "tracer", "ust" or "none". */
const char *capture_source_name(const struct capture_source *source);

#define CONTENT_BLOCKS_MAX 100 /* maximum of content_count */

struct capture_options {
	enum capture_stacks stacks;
	bool finds_lost; /* while the target is held, finds the memory that points to each block */
	bool only_starts; /* pointers into the middle of a block are ignored */
	unsigned content_count; /* number of blocks per stack whose first bytes are stored */
	/* Walk the heaps while the target is held, even if the tracer knows all blocks of the
	 * target. */
	bool walks;
};

struct capture_stats {
	int64_t held_ms; /* total time for which the target was held, in all tries */
	unsigned tries;
	/* Times of the last try: to find the blocks, to read the data about their stacks, and to
	 * join blocks and stacks afterwards. */
	int64_t walk_ms, stacks_ms, join_ms;
	int64_t balance_ms; /* time to account for the memory; the target is not held */
	/* Time to read the memory that may point to blocks, while the target was held. */
	int64_t reach_ms;
	bool walked_running; /* the target was not held during the walk */
	uint64_t block_count; /* includes blocks without a stack */
};

/*
 * Fills `snapshot`, which the caller has initialised. Afterwards the target runs again, even if an
 * error occurred. Returns 0, -ERR_NOT_TRACED or -ERR_NO_STACKS (the wanted stacks do not exist),
 * -ERR_GONE, -ERR_TARGET, -ERR_NO_HEAPS, -ERR_RIGHTS, or -ERR_NOMEM.
 */
int capture_target(struct target *target, const struct capture_options *options,
	struct snapshot *snapshot, struct capture_stats *stats, struct err *err);

/* Snapshots that contain sums per stack and heap instead of single blocks. */

/*
 * Replaces all blocks and existing sums with one sum per stack and heap. The sums are sorted by
 * heap, then in the order of stacks. Ranges of virtual memory count as blocks. Blocks without a
 * stack remain in the counts of their heap. All totals remain the same.
 */
void model_sum_by_stack(struct snapshot *snapshot);

#endif
