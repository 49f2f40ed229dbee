/* The store for the stacks of many dumps, which contains one copy of each stack. Also the packed
 * form of each dump's cells. */
#ifndef DIFF_READ_STACK_STORE_H
#define DIFF_READ_STACK_STORE_H

#include "diff/read/dump_sums.h"

/*
 * The cells of a dump in order, plain or packed.
 *
 * Cells of many dumps need most of the memory, and are read rarely and in order. A packed cell uses
 * only as many bytes as its numbers need: about ten instead of forty. In most cells, the stack
 * follows the previous cell's stack, the heap is the same, and the sums are small. */

/* Packs the cells of `sums` and frees the plain ones. */
void stack_totals_pack(struct dump_sums *sums);

struct cell_walk {
	const struct stack_total *plain; /* next plain cell; NULL if the cells are packed */
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

/* Returns the next cell, or NULL after the last. The cell is valid until the next call. */
static inline const struct stack_total *stack_totals_next(struct cell_walk *walk)
{
	if (!walk->left)
		return NULL;
	walk->left--;
	return walk->plain ? walk->plain++ : stack_total_unpack(walk);
}

/*
 * The stacks and modules of many dumps, each stored once. Dumps of one process share most of them.
 *
 * The frames and the id of a stack are stored once for all dumps. Each dump also needs 4 bytes per
 * stack, about ten per cell, and its names. If an id of the dump has several stacks, the dump needs
 * another 4 bytes per stack. If some frames of the dump are texts, the dump keeps its own list of
 * stacks, which needs another 40 bytes per stack. */

struct stack_store;

struct stack_store *stack_store_new(void);
void stack_store_free(struct stack_store *store); /* NULL is allowed */

/* Moves the stacks of `sums` to the store. Must be called right after `sums` was read. Frees memory
 * that was needed only for reading. `sums` must not outlive the store. Thread-safe. */
void stack_store_add(struct stack_store *store, struct dump_sums *sums);

/* Returns a copy of a text. The copy lives as long as the store, and equal texts share one copy.
 * Thread-safe. */
const char *stack_store_text(struct stack_store *store, const char *text);

#endif
