/*
 * The blocks of an NT heap's back end: one after the other, each as long as its header says.
 *
 * A header has a checksum and repeats the size of the block before, so that a walk that went astray
 * is seen. It goes on at the next place where two headers agree on each other.
 */
#ifndef SNAPSHOT_HEAP_NT_CHAIN_H
#define SNAPSHOT_HEAP_NT_CHAIN_H

#include "snapshot/heap/nt/nt_block.h"
#include "snapshot/heap/nt_heap.h"
#include "snapshot/heap/nt/nt_lfh.h"

/* A part of a segment. */
struct nt_part {
	uint64_t addr, end;
	uint64_t segment; /* of runs: the segment's address */
};

struct nt_parts {
	struct nt_part *list;
	size_t count, cap;
};

/* 0 or -ERR_NOMEM. */
int nt_parts_add(struct nt_parts *parts, const struct nt_part *part);
void nt_parts_release(struct nt_parts *parts);

/* Sorts by address. What begins in another part loses what it has of it: how many did. */
size_t nt_parts_sort(struct nt_parts *parts);

/* The part that addr lies in, or NULL. parts are sorted. */
const struct nt_part *nt_parts_at(const struct nt_parts *parts, uint64_t addr);

/* One NT heap while it is walked. */
struct nt_heap {
	struct nt_walk *nt;
	const struct nt_layout *layout;
	uint64_t addr;
	uint64_t key; /* what headers are XORed with */
	bool is_coded; /* they are, and have a checksum */
	bool has_prefixes; /* blocks may lead to a record of their stack */
	bool has_page_blocks; /* the process uses page heaps: blocks may be of a light one */
	uint64_t own_end; /* so far the heap's first blocks are Windows' own */
	uint64_t committed_bytes, reserved_bytes;
	struct nt_span span;
	struct nt_parts runs; /* from header to header, between what is not committed; sorted */
	struct nt_parts gaps; /* of runs, where no blocks were found; sorted */
	struct nt_lfh lfh;
};

/* Reads a heap's head: its layout, and how its blocks are stored. False: no layout fits, and heap is
 * of no use. nt_heap_close() ends it. */
bool nt_heap_open(struct nt_heap *heap, struct nt_walk *nt, uint64_t addr);
void nt_heap_close(struct nt_heap *heap);

/* Walks the blocks of a run: one begins where it does, one ends where it does. 0 or -ERR_NOMEM. */
int nt_chain_walk(struct nt_heap *heap, const struct nt_part *run);

/*
 * Finds the runs of all segments, with the heap's committed and reserved bytes, and claims their
 * memory (nt_segments.c). 0 or -ERR_NOMEM.
 */
int nt_segments_find(struct nt_heap *heap);

/* Adds the program's part of a block to the walk, its page heap's as the case may be. 0 or
 * -ERR_NOMEM. */
int nt_block_add(struct nt_heap *heap, const struct nt_block *block);

#endif
