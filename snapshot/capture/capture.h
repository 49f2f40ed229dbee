/*
 * One snapshot of a target. The target is held while its heaps are walked and the data about the
 * stacks of its blocks is read. Then it is resumed, and both are joined into the model. */
#ifndef SNAPSHOT_CAPTURE_CAPTURE_H
#define SNAPSHOT_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dump/model.h"
#include "snapshot/target/target.h"

/* Sources of stacks; their names are those of --stacks and of the dump's "stacks source". */
enum capture_stacks {
	STACKS_AUTO, /* for each block: the tracer, otherwise ust, otherwise none */
	STACKS_UST,
	STACKS_TRACER,
};

/* Parses the name of a source. Returns 0, or -ERR_USAGE for an unknown name. */
int capture_stacks_parse(const char *name, enum capture_stacks *stacks, struct err *err);

/* Sources of stacks that a target has. */
struct capture_source {
	bool has_tracer; /* a tracer is recording */
	bool is_attached; /* it was attached to a running process */
	bool may_have_all; /* it may know every block, see capture_parts.h */
	bool is_loaded, is_detached; /* a tracer is loaded but off; it was on before */
	bool has_ust; /* the target was started with +ust */
	uint64_t area_addr; /* of the recording tracer */
	uint64_t sample_bytes; /* mean bytes per recorded block; 0: all blocks are recorded */
};

/* Searches for the wanted source. Returns 0, -ERR_NOT_TRACED, or -ERR_TARGET for an unknown tracer.
 * After an error *source contains the other sources that were found. */
int capture_source_find(struct target *target, const struct snapshot *modules,
	enum capture_stacks wanted, struct capture_source *source, struct err *err);

/* Returns the name of the source that takes priority: "tracer", "ust" or "none". */
const char *capture_source_name(const struct capture_source *source);

#define CONTENT_BLOCKS_MAX 100 /* blocks of a stack whose first bytes are stored */

struct capture_options {
	enum capture_stacks stacks;
	bool finds_lost; /* find out, while the target is held, what leads to each block */
	bool only_starts; /* pointers into the middle of a block do not count */
	unsigned content_count; /* number of blocks of each stack whose first bytes are stored */
	/* Walk the heaps while the target is held, even if its tracer knows all blocks. */
	bool walks;
};

struct capture_stats {
	int64_t held_ms; /* time for which the target was held, sum of all tries */
	unsigned tries;
	/* Last try: time to find the blocks, and time to read the data about their stacks. join_ms:
	 * time to join them afterwards. */
	int64_t walk_ms, stacks_ms, join_ms;
	/* Time to read the memory that may lead to blocks, while the target was held. */
	int64_t reach_ms;
	bool walked_running; /* the target was not held during the walk */
	uint64_t block_count; /* including blocks without a stack */
};

/*
 * Fills snapshot, which the caller has initialised. The target runs again afterwards, even after an
 * error. Returns 0, -ERR_NOT_TRACED or -ERR_NO_STACKS (the wanted stacks do not exist), -ERR_GONE,
 * -ERR_TARGET, -ERR_NO_HEAPS, -ERR_RIGHTS, or -ERR_NOMEM. */
int capture_target(struct target *target, const struct capture_options *options,
	struct snapshot *snapshot, struct capture_stats *stats, struct err *err);

/* Snapshots with sums for each stack and heap instead of single blocks. */

/*
 * Replaces all blocks, and existing sums, by one sum for each stack and heap, sorted by heap and
 * then in the order of stacks. Ranges of virtual memory count as blocks. Blocks without a stack
 * remain counted at their heap. No total changes. */
void model_sum_by_stack(struct snapshot *snapshot);

#endif
