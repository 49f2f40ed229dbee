/* Walkers of the heaps of one PEB, and the parts that these walkers share. */
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
 * A heap's signature gives its kind: NT heap (nt_segments.c) or segment heap (segment_heap.c).
 * Blocks of page heaps (page_heap.c) come in addition. Each walker takes a heap's address and adds
 * one struct heap and its live blocks to nt->walk. It notes invalid data with walk_broken() and
 * missing memory with walk_missing(), and continues where it can. Only -ERR_NOMEM stops the whole
 * walk.
 *
 * Everything is bounded: nt_list_walk() follows lists, and the memory of blocks is claimed. So a
 * process or file cannot make a walker see more bytes than it has. */

/* Keys with which all segment heaps of a process encode their data. They are recovered once
 * (segment_keys.c). */
struct segment_keys {
	/* Recovery was attempted; for the LFH's key only if there is an LFH. */
	bool is_tried, is_lfh_tried;
	bool has_page, has_lfh; /* the key was found */
	bool is_wide; /* the LFH's mask uses the whole address: since build 26100 */
	bool is_halved; /* the LFH's bitmaps are LFH_HALVES: since build 26100 at the latest */
	uint64_t page; /* key of page segments: heap ^ a constant */
	uint64_t heap;
	uint32_t lfh;
};

#define NT_PROBES 65536

struct nt_walk {
	struct memory *memory;
	const struct nt_process *process;
	struct walk *walk;
	struct claims claims;
	uint32_t list_entries; /* entries of all lists so far */
	struct segment_keys segment_keys;
	/* Page heaps in walk->heaps, sorted by address. */
	size_t page_heap_first, page_heap_count;
	/* Ordinary heaps that belong to page heaps and that the PEB does not list, without
	 * duplicates. The caller of the walk frees the array. */
	uint64_t *behind;
	size_t behind_count, behind_cap;
	/* Number of pages that may still be tried when memory regions are unknown. */
	uint32_t probes_left;
	/* RtlpLFHKey of the process's ntdll, valid if has_lfh_key. All heaps of the process use
	 * it. */
	uint32_t lfh_key;
	bool has_lfh_key;
};

/* Returns true if an NT heap begins at addr, listed or not. */
bool nt_backend_is_at(struct nt_walk *nt, uint64_t addr);

/* Walk the heap at addr, which has the signature of the kind. Return 0 or -ERR_NOMEM. */
int nt_backend_walk(struct nt_walk *nt, uint64_t addr);
int segment_heap_walk(struct nt_walk *nt, uint64_t addr);

/*
 * Walks all full page heaps of the process and their blocks; called before the heaps of the PEB's
 * list are walked. Stores in nt->behind the ordinary heaps that remain to be walked. Light page
 * heaps are not handled here: their blocks lie in NT heaps, where nt_segments.c finds them with
 * page_block_parse(). */
int page_heaps_walk(struct nt_walk *nt);

/* Returns true if addr is the handle of a page heap that has been walked. */
bool page_heap_knows(const struct nt_walk *nt, uint64_t addr);

/* Contents of a page heap's DPH_BLOCK_INFORMATION, which directly precedes the user's bytes. */
struct page_block {
	uint64_t requested_bytes, record;
	bool is_full; /* block of a full page heap; false: of a light one */
};

/* Reads the information before user_addr in a process of the given bitness. Returns true if it is
 * sound and belongs to a live block. */
bool page_block_parse(
	struct memory *memory, unsigned bits, uint64_t user_addr, struct page_block *block);

/* Returns true if the information is not sound but belongs to a live block of a light page heap: at
 * least one of its stamps is right. */
bool page_block_is_damaged(struct memory *memory, unsigned bits, uint64_t user_addr);

/*
 * Adds heaps that no list contains to process (heap_scan.c): allocations that begin like an NT heap
 * or a segment heap, and the heaps of hints. Counts them in nt->walk. Called after page heaps have
 * been walked. Returns 0 or -ERR_NOMEM. */
int heap_scan(struct nt_walk *nt, struct nt_process *process, const struct heap_hints *hints);

/* Returns true if a thread is known to hold the lock of the heap at addr. */
bool nt_heap_is_busy(struct memory *memory, const struct nt_process *process, uint64_t addr);

/*
 * Follows a doubly linked list of Windows (_LIST_ENTRY: Flink, Blink) from its head and calls
 * each() with the address of every link except the head's.
 *
 * Each link's Blink must point to the previous link, and the head's to the last one, so no list can
 * loop. If it does not, or if memory is missing, the list counts as broken and ends there.
 *
 * is_coded: each pointer is stored XORed with the address of the entry that contains it. Returns 0
 * or the result of each(). */
struct nt_list {
	uint64_t head;
	int (*each)(void *ctx, uint64_t link);
	void *ctx;
	bool is_coded;
};

int nt_list_walk(struct nt_walk *nt, const struct nt_list *list);

/* Counts one more list entry. Returns false if the limit is reached. */
bool nt_list_entry(struct nt_walk *nt);

/* Calls section() with the address of each section of the loaded modules that have this name and
 * the process's bitness, until it returns true. Returns true if it did. */
bool nt_module_scan(struct nt_walk *nt, const char *name,
	bool (*section)(void *ctx, uint64_t addr, const struct pe_section *section), void *ctx);

/*
 * Binary trees in a target, in the form that Windows' heaps use (_RTL_RB_TREE, RTL_AVL_TABLE).
 *
 * A child must point back to its node and cannot be the root. No tree is deeper than a balanced
 * tree that fills the address space. So no path can loop, and the walk allocates nothing. Damaged
 * nodes are left out with their subtrees; the rest is walked. */

struct nt_tree {
	uint64_t root; /* as stored (encoded) */
	/* XORed with stored pointers to nodes. Pointers to parents may be encoded with it too, but
	 * then all of them are. */
	uint64_t key;
	unsigned left, right,
		parent; /* offsets in a node; parent pointers have flags in their low two bits */
	/* Called in order. Returns 0 to continue, > 0 if this node is invalid (already noted) and
	 * the walk of the tree must end, or a negative error. */
	int (*each)(void *ctx, uint64_t node);
	void *ctx;
};

/* Returns 0 or an error of each(). */
int nt_tree_walk(struct nt_walk *nt, const struct nt_tree *tree);

#endif
