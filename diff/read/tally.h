/*
 * One thread's counting of entries: the hot loop of hdiff.
 *
 * A tally knows the ids that its thread has met and, for each, the text of a stack that came with
 * it. An entry whose stack has the same text needs no look at the text's meaning: comparing and
 * passing over it is as fast as reading memory. What is new goes to the pool.
 */
#ifndef DIFF_TALLY_H
#define DIFF_TALLY_H

#include <stdbool.h>

#include "diff/read/pool.h"

struct tally {
	struct pool *pool;
	uint32_t heap; /* that is counted for, or HEAP_NONE */
	bool take_away; /* what was counted by mistake */
	bool no_memory; /* it stopped at what was new for want of memory */
	uint64_t *slots; /* open table: 0, or id | (number + 1) << 32 */
	size_t slot_count;
	uint64_t mixer; /* random: nobody can make ids that collide */
	unsigned shift;
	struct tally_id *ids; /* by number: entries without a stack, */
	struct tally_stack *stacks; /* and those with one */
	size_t count, cap;
	struct sum_batch *batch; /* of sums that are counted at once; NULL until there are any */
	uint32_t *touched; /* 2 * number + (1: with a stack), of those that are not zero */
	size_t touched_count;
	/* tally_plain() for this machine */
	const char *(*plain)(struct tally *tally, const char *at, const char *end,
		struct dump_progress *progress);
	/* Reads plain lines of a stack, at most DUMP_FRAMES_MAX, for this machine. What lies behind them,
	 * or NULL when there is another kind. */
	const char *(*frames_take)(
		uint64_t *frames, const char *at, const char *end, uint32_t *count);
	uint64_t frames[DUMP_FRAMES_MAX];
};

/* pool must outlive the tally. */
void tally_init(struct tally *tally, struct pool *pool);
void tally_release(struct tally *tally);

/* Takes plain entries, see struct dump_sink. It stops at everything else, also when memory is out. */
const char *tally_plain(
	struct tally *tally, const char *at, const char *end, struct dump_progress *progress);

/* Hands all sums over to the pool; do so before heap or take_away change. 0 or -ERR_NOMEM. */
int tally_flush(struct tally *tally);

#endif
