/* Walkers of the heaps of one PEB, and the code that they share. */
#ifndef SNAPSHOT_HEAP_NT_HEAP_H
#define SNAPSHOT_HEAP_NT_HEAP_H

#include "snapshot/heap/claims.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/page_layout.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

/*
 * Windows' own heaps.
 *
 * A heap's signature shows its kind: NT heap (nt_segments.c) or segment heap (segment_heap.c). Page
 * heaps (page_heap.c) are walked separately. Each walker takes a heap's address and adds one struct
 * heap and the heap's live blocks to nt->walk. It records invalid data with walk_broken() and
 * missing memory with walk_missing(), and continues where possible. Only -ERR_NOMEM stops the whole
 * walk.
 *
 * Everything is bounded: lists are followed with nt_list_walk(), and the memory of blocks is
 * claimed. So no process or file can make a walker find more bytes than the process or file
 * contains. */

/* Keys that all segment heaps of a process use to encode their data. segment_keys.c recovers them
 * once. */
struct segment_keys {
	/* Recovery was attempted. `is_lfh_tried` is set only if an LFH exists. */
	bool is_tried, is_lfh_tried;
	bool has_page, has_lfh; /* the key was found */
	bool is_wide; /* the LFH's mask uses the whole address (since build 26100) */
	/* The LFH's bitmaps have the form LFH_HALVES (since build 26100 or earlier). */
	bool is_halved;
	uint64_t page; /* key of page segments: the heap key ^ a constant */
	uint64_t heap;
	uint32_t lfh;
};

#define NT_PROBES 65536

struct nt_walk {
	struct memory *memory;
	const struct nt_process *process;
	struct walk *walk;
	struct claims claims;
	uint32_t list_entries; /* number of list entries visited so far */
	struct segment_keys segment_keys;
	/* Range of walk->heaps that contains the page heaps, sorted by address. */
	size_t page_heap_first, page_heap_count;
	/* Ordinary heaps that belong to page heaps and are not in the PEB's list; no duplicates.
	 * The caller of the walk frees the array. */
	uint64_t *behind;
	size_t behind_count, behind_cap;
	/* Number of pages that may still be probed, if memory regions are unknown. */
	uint32_t probes_left;
	/* RtlpLFHKey of the process's ntdll, which all heaps of the process use. Valid if
	 * `has_lfh_key` is set. */
	uint32_t lfh_key;
	bool has_lfh_key;
};

/* Returns true if an NT heap begins at `addr`. The heap need not be in a list. */
bool nt_backend_is_at(struct nt_walk *nt, uint64_t addr);

/* Walk the heap at `addr`, whose signature must be that of an NT heap or of a segment heap. Both
 * return 0 or -ERR_NOMEM. */
int nt_backend_walk(struct nt_walk *nt, uint64_t addr);
int segment_heap_walk(struct nt_walk *nt, uint64_t addr);

/*
 * Walks all full page heaps of the process and their blocks. Must be called before the heaps of the
 * PEB's list are walked. Stores in nt->behind the ordinary heaps that the caller still has to walk.
 * Does not handle light page heaps: their blocks are in NT heaps, where the NT heap walker finds
 * them with page_block_parse(). */
int page_heaps_walk(struct nt_walk *nt);

/* Returns true if addr is the handle of a page heap that has been walked. */
bool page_heap_knows(const struct nt_walk *nt, uint64_t addr);

/* Contents of a DPH_BLOCK_INFORMATION, which a page heap stores directly before the user's
 * bytes. */
struct page_block {
	uint64_t requested_bytes, record;
	bool is_full; /* true: block of a full page heap; false: block of a light page heap */
};

/* Reads the block information before `user_addr` in a process of the given bitness. Returns true if
 * the information is intact and belongs to a live block. */
bool page_block_parse(
	struct memory *memory, unsigned bits, uint64_t user_addr, struct page_block *block);

/* Returns true if the block information is damaged, but at least one of its stamps is that of a
 * live block in a light page heap. */
bool page_block_is_damaged(struct memory *memory, unsigned bits, uint64_t user_addr);

/*
 * Adds heaps that are in no list to process->heaps (heap_scan.c). Looks at the heaps in `hints`,
 * and at all allocations that begin like an NT heap or a segment heap. Counts these heaps in
 * nt->walk. Must be called after page heaps have been walked. Returns 0 or -ERR_NOMEM.
 */
int heap_scan(struct nt_walk *nt, struct nt_process *process, const struct heap_hints *hints);

/* Returns true if a thread is known to hold the lock of the heap at `addr`. */
bool nt_heap_is_busy(struct memory *memory, const struct nt_process *process, uint64_t addr);

/*
 * Follows one of Windows' doubly linked lists (_LIST_ENTRY: Flink, Blink) from its head. Calls
 * each() with the address of every link except the head.
 *
 * Each link's Blink must point to the previous link, and the head's Blink to the last link, so the
 * walk cannot loop. If a Blink is wrong or memory is missing, the list counts as broken and the
 * walk ends there.
 *
 * `is_coded`: each pointer is stored XORed with the address of the entry that contains the pointer.
 * Returns 0 or the first nonzero result of each().
 */
struct nt_list {
	uint64_t head;
	int (*each)(void *ctx, uint64_t link);
	void *ctx;
	bool is_coded;
};

int nt_list_walk(struct nt_walk *nt, const struct nt_list *list);

/* Counts a list entry. Returns false if the limit is reached. */
bool nt_list_entry(struct nt_walk *nt);

/* Finds the sections with this name in the loaded modules that have the process's bitness. Calls
 * section() with the address of each. Stops and returns true when section() returns true; otherwise
 * returns false. */
bool nt_module_scan(struct nt_walk *nt, const char *name,
	bool (*section)(void *ctx, uint64_t addr, const struct pe_section *section), void *ctx);

/*
 * Binary trees in a target, in the form that Windows' heaps use (_RTL_RB_TREE, RTL_AVL_TABLE).
 *
 * A child must point back to its parent and cannot be the root. The depth is limited to that of a
 * balanced tree that fills the address space. So no path can loop, and the walk allocates nothing.
 * Damaged nodes are skipped together with their subtrees; all other nodes are walked.
 */

struct nt_tree {
	uint64_t root; /* as stored, possibly encoded */
	/* Value that is XORed with all stored pointers to children. The pointers to parents are
	 * either all XORed with the same value, or all stored as they are. */
	uint64_t key;
	unsigned left, right,
		parent; /* offsets in a node; the low two bits of parent pointers are flags */
	/* Called for each node, in order. Returns 0 to continue or a negative error. Returns > 0 to
	 * end the walk because the node is invalid; the fault has then been recorded. */
	int (*each)(void *ctx, uint64_t node);
	void *ctx;
};

/* Returns 0 or a negative error from each(). */
int nt_tree_walk(struct nt_walk *nt, const struct nt_tree *tree);

#endif
