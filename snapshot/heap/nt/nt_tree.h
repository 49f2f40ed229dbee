/*
 * Binary trees in a target, as Windows' heaps keep them (_RTL_RB_TREE, RTL_AVL_TABLE).
 *
 * A node's child must point back to it and is not the root, and no tree is deeper than a balanced one
 * of all address space: so nothing leads round, and no memory is needed. What is damaged is left out
 * with what hangs on it; the rest is walked.
 */
#ifndef SNAPSHOT_HEAP_NT_TREE_H
#define SNAPSHOT_HEAP_NT_TREE_H

#include "snapshot/heap/nt_heap.h"

struct nt_tree {
	uint64_t root; /* as stored */
	/* Pointers to nodes are stored XORed with it; those to parents may be, but all alike. */
	uint64_t key;
	unsigned left, right,
		parent; /* offsets in a node; parents have flags in the low two bits */
	/* Called in order. 0: on; > 0: this node makes no sense (it has been noted), so the tree
	 * ends; negative: an error. */
	int (*each)(void *ctx, uint64_t node);
	void *ctx;
};

/* Returns 0 or an error of each(). */
int nt_tree_walk(struct nt_walk *nt, const struct nt_tree *tree);

#endif
