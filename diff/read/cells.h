/*
 * The cells of a dump one after the other, whether they are as they were read or packed.
 *
 * Of many dumps most memory goes to their cells, which are looked at in order and seldom. Packed, a cell
 * takes what its numbers need: most have the next stack and the heap of the one before, and small sums, so
 * that ten bytes do where the plain one has forty.
 */
#ifndef DIFF_CELLS_H
#define DIFF_CELLS_H

#include "diff/read/sum.h"

/* Packs the cells of sums, which then has no plain ones. Where memory is out they stay. */
void cells_pack(struct sums *sums);

struct cell_walk {
	const struct cell *plain; /* the next one, or NULL: */
	const unsigned char *packed; /* where it is */
	size_t left;
	struct cell cell; /* that was unpacked last */
};

static inline struct cell_walk cells_walk(const struct sums *sums)
{
	return (struct cell_walk){.plain = sums->cells,
		.packed = sums->packed_cells,
		.left = sums->cell_count,
		.cell = {.stack = STACK_NONE}};
}

const struct cell *cell_unpack(struct cell_walk *walk);

/* The next cell, until the call after it; NULL behind the last. */
static inline const struct cell *cells_next(struct cell_walk *walk)
{
	if (!walk->left)
		return NULL;
	walk->left--;
	return walk->plain ? walk->plain++ : cell_unpack(walk);
}

#endif
