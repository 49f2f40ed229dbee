/*
 * Taking one snapshot: hold the target, copy its heaps and what tells the stacks of blocks, let it go,
 * walk the copy and join the two into the model. What cannot be copied as raw bytes (copying.h) is walked
 * while the target is held.
 */
#ifndef SNAPSHOT_CAPTURE_CAPTURE_H
#define SNAPSHOT_CAPTURE_CAPTURE_H

#include "core/dump/model.h"
#include "snapshot/target/target.h"

/* Where stacks come from; the names are those of --stacks and of the dump's "stacks source". */
enum capture_stacks {
	STACKS_AUTO, /* what each block has: of the tracer, else of ust, else none */
	STACKS_UST,
	STACKS_OS,
	STACKS_TRACER,
};

/* Returns 0, or -ERR_USAGE when there is no source of that name. */
int capture_stacks_parse(const char *name, enum capture_stacks *stacks, struct err *err);

struct capture_options {
	enum capture_stacks stacks;
	uint64_t copy_limit_bytes; /* of raw bytes; 0: what suits the machine */
};

struct capture_stats {
	int64_t held_ms; /* how long the target stood still, all tries together */
	unsigned tries;
	/* Of the last try, how much was copied to be walked when the target runs again, and how long
	 * that took; 0: it was walked while it was held, and why, if it is worth saying (a literal). */
	uint64_t copied_bytes;
	int64_t copy_ms;
	const char *why_not_copied;
	/* Of the last try, how long finding the blocks took, and reading what tells their stacks;
	 * then how long it took to put them together. */
	int64_t walk_ms, stacks_ms, join_ms;
	uint64_t block_count; /* with those without a stack */
};

/*
 * Fills snapshot (initialised by the caller). The target runs again when this returns, whatever it
 * returns: 0, -ERR_NOT_TRACED and -ERR_NO_STACKS (the wanted stacks are not there), -ERR_INJECT (its
 * tracer failed), -ERR_GONE, -ERR_TARGET, -ERR_NO_HEAPS, -ERR_RIGHTS, -ERR_NOMEM.
 */
int capture(struct target *target, const struct capture_options *options, struct snapshot *snapshot,
	struct capture_stats *stats, struct err *err);

/*
 * A snapshot without single blocks: what the blocks of each stack in each heap add up to.
 */

/*
 * Puts one sum for each stack and heap in the place of all blocks, and of the sums that there are, by
 * heap and then in the order of stacks. Ranges of virtual memory are blocks like others; what has no stack
 * is counted at its heap, as before. No total changes. 0, or -ERR_NOMEM and nothing has.
 */
int by_stack(struct snapshot *snapshot);

#endif
