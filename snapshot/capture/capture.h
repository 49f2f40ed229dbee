/*
 * Taking one snapshot: hold the target, walk its heaps and read what tells the stacks of blocks, let it
 * go, and join the two into the model.
 */
#ifndef SNAPSHOT_CAPTURE_CAPTURE_H
#define SNAPSHOT_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dump/model.h"
#include "snapshot/target/target.h"

/* Where stacks come from; the names are those of --stacks and of the dump's "stacks source". */
enum capture_stacks {
	STACKS_AUTO, /* what each block has: of the tracer, else of ust, else none */
	STACKS_UST,
	STACKS_TRACER,
};

/* Returns 0, or -ERR_USAGE when there is no source of that name. */
int capture_stacks_parse(const char *name, enum capture_stacks *stacks, struct err *err);

/* What a target has that tells the stacks of its blocks. */
struct capture_source {
	bool has_tracer; /* at work */
	bool is_attached; /* the one at work came to a process that ran */
	bool may_have_all; /* it may know every block, see capture_parts.h */
	bool is_loaded, is_detached; /* there is one that is off; it was on before */
	bool has_ust; /* it was started with +ust */
	uint64_t area_addr; /* of the tracer at work */
	uint64_t sample_bytes; /* it records one in so many; 0: all */
};

/* Looks for what is wanted. Returns 0; -ERR_NOT_TRACED, -ERR_TARGET (it is none
 * that is known), with what there is beside it in *source. */
int capture_source_find(struct target *target, const struct snapshot *modules,
	enum capture_stacks wanted, struct capture_source *source, struct err *err);

/* Which of those counts: "tracer", "ust" or "none". */
const char *capture_source_name(const struct capture_source *source);

#define CONTENT_BLOCKS_MAX 100 /* of a stack, whose first bytes are taken */

struct capture_options {
	enum capture_stacks stacks;
	bool finds_lost; /* looks at what leads to each block, while the target is held */
	bool only_starts; /* pointers into the middle of a block do not count */
	unsigned content_count; /* of so many blocks of each stack take the first bytes */
	bool walks; /* walk the heaps while the target is held, also where its tracer knows all blocks */
};

struct capture_stats {
	int64_t held_ms; /* how long the target stood still, all tries together */
	unsigned tries;
	/* Of the last try, how long finding the blocks took, and reading what tells their stacks;
	 * then how long it took to put them together. */
	int64_t walk_ms, stacks_ms, join_ms;
	int64_t reach_ms; /* reading what may lead to blocks, while it was held */
	bool walked_running; /* the target was not held for the walk */
	uint64_t block_count; /* with those without a stack */
};

/*
 * Fills snapshot (initialised by the caller). The target runs again when this returns, whatever it
 * returns: 0, -ERR_NOT_TRACED and -ERR_NO_STACKS (the wanted stacks are not there),
 * -ERR_GONE, -ERR_TARGET, -ERR_NO_HEAPS, -ERR_RIGHTS, -ERR_NOMEM.
 */
int capture_target(struct target *target, const struct capture_options *options,
	struct snapshot *snapshot, struct capture_stats *stats, struct err *err);

/*
 * A snapshot without single blocks: what the blocks of each stack in each heap add up to.
 */

/*
 * Puts one sum for each stack and heap in the place of all blocks, and of the sums that there are, by
 * heap and then in the order of stacks. Ranges of virtual memory are blocks like others; what has no stack
 * is counted at its heap, as before. No total changes.
 */
void model_sum_by_stack(struct snapshot *snapshot);

#endif
