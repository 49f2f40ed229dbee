/* The stacks of many dumps, each kept once, and the totals of each, packed. */
#ifndef DIFF_READ_STACK_STORE_H
#define DIFF_READ_STACK_STORE_H

#include "diff/read/dump_sums.h"

/*
 * The cells of a dump one after the other, whether they are as they were read or packed.
 *
 * Of many dumps most memory goes to their cells, which are looked at in order and seldom. Packed, a cell
 * takes what its numbers need: most have the next stack and the heap of the one before, and small sums, so
 * that ten bytes do where the plain one has forty.
 */

/* Packs the cells of sums, which then has no plain ones. */
void stack_totals_pack(struct dump_sums *sums);

struct cell_walk {
	const struct stack_total *plain; /* the next one, or NULL: */
	const unsigned char *packed; /* where it is */
	size_t left;
	struct stack_total cell; /* that was unpacked last */
};

static inline struct cell_walk stack_totals_walk(const struct dump_sums *sums)
{
	return (struct cell_walk){.plain = sums->cells,
		.packed = sums->packed_cells,
		.left = sums->cell_count,
		.cell = {.stack = STACK_NONE}};
}

const struct stack_total *stack_total_unpack(struct cell_walk *walk);

/* The next cell, until the call after it; NULL behind the last. */
static inline const struct stack_total *stack_totals_next(struct cell_walk *walk)
{
	if (!walk->left)
		return NULL;
	walk->left--;
	return walk->plain ? walk->plain++ : stack_total_unpack(walk);
}

/*
 * The stacks of many dumps, each kept once, and their modules: dumps of one process have most of theirs in
 * common.
 *
 * What several dumps hold takes memory for what is different in them: for each stack its frames and
 * its id, however many dumps have it. Beside that a dump has 4 bytes for each of its stacks, some ten
 * for each of its cells (diff/read/stack_store.h), and the names that it carries; another 4 bytes for each stack
 * where an id of the dump stands for several. Where a dump has frames that are texts, its stacks take
 * another 40 bytes each, and these frames stay with it.
 */

struct stack_store;

struct stack_store *stack_store_new(void);
void stack_store_free(struct stack_store *store); /* NULL is nothing */

/* Has the store hold the stacks of sums, which was just read and must not outlive it, and gives back what
 * only reading needed. From any thread. */
void stack_store_take(struct stack_store *store, struct dump_sums *sums);

/* A text that lives as long as the store, the same one for equal texts. From any thread. */
const char *stack_store_text(struct stack_store *store, const char *text);

#endif
