/* The stacks of many dumps, each kept once, and the totals of each dump, packed. */
#ifndef DIFF_READ_STACK_STORE_H
#define DIFF_READ_STACK_STORE_H

#include "diff/read/dump_sums.h"

/*
 * The cells of a dump in order, plain or packed.
 *
 * Cells take most of the memory of many dumps and are read rarely and in order. A packed cell takes
 * only the bytes that its numbers need: most cells have the next stack, the heap of the previous
 * cell, and small sums. So ten bytes replace forty.
 */

/* Packs the cells of sums and frees the plain ones. */
void stack_totals_pack(struct dump_sums *sums);

struct cell_walk {
	const struct stack_total *plain; /* next plain cell, or NULL if packed */
	const unsigned char *packed; /* next packed cell */
	size_t left;
	struct stack_total cell; /* last unpacked cell */
};

static inline struct cell_walk stack_totals_walk(const struct dump_sums *sums)
{
	return (struct cell_walk){.plain = sums->cells,
		.packed = sums->packed_cells,
		.left = sums->cell_count,
		.cell = {.stack = STACK_NONE}};
}

const struct stack_total *stack_total_unpack(struct cell_walk *walk);

/* Returns the next cell, valid until the next call, or NULL after the last. */
static inline const struct stack_total *stack_totals_next(struct cell_walk *walk)
{
	if (!walk->left)
		return NULL;
	walk->left--;
	return walk->plain ? walk->plain++ : stack_total_unpack(walk);
}

/*
 * The stacks of many dumps, each kept once, and their modules: dumps of one process have most of
 * them in common.
 *
 * The frames and the id of a stack are kept once for all dumps. In addition a dump takes 4 bytes
 * for each of its stacks, about ten for each of its cells, and its names; another 4 bytes for each
 * stack if an id of the dump has several stacks. In a dump with frames that are texts, each stack
 * takes another 40 bytes, and these frames stay with the dump.
 */

struct stack_store;

struct stack_store *stack_store_new(void);
void stack_store_free(struct stack_store *store); /* NULL is allowed */

/* Moves the stacks of sums, which was just read, to the store, and frees memory that only reading
 * needed. sums must not outlive the store. Thread-safe. */
void stack_store_take(struct stack_store *store, struct dump_sums *sums);

/* Returns a copy of text that lives as long as the store; equal texts share one copy.
 * Thread-safe. */
const char *stack_store_text(struct stack_store *store, const char *text);

#endif
