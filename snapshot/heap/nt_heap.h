/* Walking the heaps of a PEB: what their kinds share. */
#ifndef SNAPSHOT_HEAP_NT_HEAP_H
#define SNAPSHOT_HEAP_NT_HEAP_H

#include "snapshot/heap/claims.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/page_layout.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

/*
 * Windows' own heaps: what their walkers share.
 *
 * A heap is of the kind that its signature says: an NT heap (nt_segments.c) or a segment heap
 * (segment_heap.c). Blocks of page heaps (page_heap.c) come in addition. Each walker takes the
 * heap's address and adds one struct heap and its live blocks to nt->walk; what makes no sense it
 * notes with walk_broken(), what is not there with walk_missing(), and goes on where it can. An error
 * stops the whole walk: -ERR_NOMEM.
 *
 * Everything is bounded: lists are followed by nt_list_walk(), and memory that blocks lie in is
 * claimed, so that no process or file makes a walker see more bytes than it has.
 */

/* What all segment heaps of a process encode things with; recovered once (segment_keys.c). */
struct segment_keys {
	bool is_tried, is_lfh_tried; /* the LFH's only when there is an LFH */
	bool has_page, has_lfh; /* it was found */
	bool is_wide; /* the LFH's mask is made from the whole address: from 26100 on */
	bool is_halved; /* the LFH's bitmaps are LFH_HALVES: from 26100 on, or earlier */
	uint64_t page; /* of page segments: heap ^ a constant */
	uint64_t heap;
	uint32_t lfh;
};

#define NT_PROBES 65536

struct nt_walk {
	struct memory *memory;
	const struct nt_process *process;
	struct walk *walk;
	struct claims claims;
	uint32_t list_entries; /* of all lists so far */
	struct segment_keys segment_keys;
	/* Page heaps among walk->heaps, by address. */
	size_t page_heap_first, page_heap_count;
	/* The ordinary heaps behind them that the PEB does not list, each once. Whoever
	 * walks frees them. */
	uint64_t *behind;
	size_t behind_count, behind_cap;
	/* Where regions are not known: how many pages may still be tried. */
	uint32_t probes_left;
	/* RtlpLFHKey of the process's ntdll, when has_lfh_key: all its heaps use it. */
	uint32_t lfh_key;
	bool has_lfh_key;
};

/* Returns true if an NT heap begins at addr, whatever lists it. */
bool nt_backend_is_at(struct nt_walk *nt, uint64_t addr);

/* The heap at addr, which has the kind's signature. 0 or -ERR_NOMEM. */
int nt_backend_walk(struct nt_walk *nt, uint64_t addr);
int segment_heap_walk(struct nt_walk *nt, uint64_t addr);

/*
 * All full page heaps of the process and the blocks in them. Called before the heaps of the PEB's
 * list are walked. Light page heap is not this one's: its blocks lie in NT heaps, where
 * nt_segments.c knows them by page_block_parse(). Leaves in nt->behind what else is to be walked.
 */
int page_heaps_walk(struct nt_walk *nt);

/* True when the heap handle at addr is that of a page heap: it has been walked. */
bool page_heap_knows(const struct nt_walk *nt, uint64_t addr);

/* What a page heap's DPH_BLOCK_INFORMATION, right before the user's bytes, says. */
struct page_block {
	uint64_t requested_bytes, record;
	bool is_full; /* of a full page heap; else of a light one */
};

/* Reads the information before user_addr, in a process of that many bits. True when a sound one of a
 * live block is there. */
bool page_block_parse(
	struct memory *memory, unsigned bits, uint64_t user_addr, struct page_block *block);

/* True when what lies there is no sound information, but was that of a light page heap's live block:
 * one of its stamps is right at least. */
bool page_block_is_damaged(struct memory *memory, unsigned bits, uint64_t user_addr);

/*
 * Adds heaps that nothing lists to process (heap_scan.c): allocations that begin as an NT heap or a segment heap does, and
 * those of hints. They are counted in nt->walk. Called when page heaps have been walked. 0 or -ERR_NOMEM.
 */
int heap_scan(struct nt_walk *nt, struct nt_process *process, const struct heap_hints *hints);

/* True when a thread holds the lock of the heap at addr, as far as that can be known. */
bool nt_heap_is_busy(struct memory *memory, const struct nt_process *process, uint64_t addr);

/*
 * Follows a doubly linked list of Windows (_LIST_ENTRY: Flink, Blink) from its head and calls each()
 * with the address of every link but the head's. A link's Blink must be the link before, so that no
 * list leads round, and the head's the last; where it is not, and where memory is not there, the list
 * is broken and ends.
 * is_coded: each pointer is stored XORed with the address of the entry that holds it.
 * Returns 0 or what each() returned.
 */
struct nt_list {
	uint64_t head;
	int (*each)(void *ctx, uint64_t link);
	void *ctx;
	bool is_coded;
};

int nt_list_walk(struct nt_walk *nt, const struct nt_list *list);

/* Counts one entry more of what lists lead to. False: those are too many already. */
bool nt_list_entry(struct nt_walk *nt);

/* Calls section() with the address of each section of the loaded modules of the process's bits that are
 * called so, until it returns true. Returns whether it did. */
bool nt_module_scan(struct nt_walk *nt, const char *name,
	bool (*section)(void *ctx, uint64_t addr, const struct pe_section *section), void *ctx);

/*
 * Binary trees in a target, as Windows' heaps keep them (_RTL_RB_TREE, RTL_AVL_TABLE).
 *
 * A node's child must point back to it and is not the root, and no tree is deeper than a balanced one
 * of all address space: so nothing leads round, and no memory is needed. What is damaged is left out
 * with what hangs on it; the rest is walked.
 */

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
