/*
 * Rows: what a stack adds up to in each of several dumps.
 *
 * Stacks are matched by content: each frame as (module, offset) by its own dump's modules, or as
 * an address when it lies in none. Ids are labels. A comparison borrows the dumps it is made from
 * and owns everything else.
 */
#ifndef DIFF_MATCH_H
#define DIFF_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "diff/sum.h"

enum row_kind {
	ROW_STACK,
	ROW_AMBIGUOUS, /* one of several stacks, unknown which: UMDH's "Alias" */
	ROW_ONE_OF, /* the same, for blocks that name an id which the dump gives several stacks */
	ROW_UNKNOWN, /* the dumps name an id and never give its stack */
	ROW_STACKLESS, /* blocks no stack was recorded for */
};

struct row {
	enum row_kind kind;
	/* What the row adds up to, by dump. */
	struct census *of;
	/* The newest dump that has the stack, for its addresses and names, and the next one, which
	 * may have other names; NULL when there is none. stack is NULL when there is nothing to
	 * show. */
	const struct sums *dump, *older_dump;
	const struct stack *stack, *older_stack;
	size_t candidate_count; /* of ROW_ONE_OF */
	/* Without doubles, the newest dump's first, then by text; the first is the row's label. */
	const char **ids;
	size_t id_count;
	/* The content, in numbers that compare as rows are to be ordered. */
	const uint64_t *key;
	size_t key_len;
};

struct comparison {
	const struct sums *dumps; /* oldest first */
	size_t dump_count;
	struct row *rows; /* that changed; largest growth first: a total order */
	size_t row_count;
	struct arena arena;
};

/* A signed number with room for every difference of two sums. */
struct delta {
	int64_t block_count, requested_bytes, overhead_bytes;
};

/* dumps must outlive the comparison; release it also after a failure. 0 or -ERR_NOMEM. */
int comparison_make(struct comparison *comparison, const struct sums *dumps, size_t dump_count);
void comparison_release(struct comparison *comparison);

/* The newest dump's sums, and the oldest one's: nothing when there is but one. */
struct census row_new(const struct comparison *comparison, const struct row *row);
struct census row_old(const struct comparison *comparison, const struct row *row);

struct delta row_delta(const struct comparison *comparison, const struct row *row);
struct delta comparison_delta(const struct comparison *comparison);

#endif
