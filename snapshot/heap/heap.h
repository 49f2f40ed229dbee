/*
 * Heap walkers. A walker adds every live block of its kind of heap to struct walk.
 *
 * The table in heaps.c lists the kinds: Wine's heaps, which form a ring (wine_heap.c), and Windows'
 * heaps (nt_heap.h). A new kind needs a walker, a layout table, a line in the table in heaps.c, and
 * a test image.
 *
 * A walk runs while the target is held, so struct walk only stores results. Alternatively, the
 * memory that a walk needs is copied while the target is held (snapshot/target/target_memory.h),
 * and the copy is walked later.
 */
#ifndef SNAPSHOT_HEAP_HEAP_H
#define SNAPSHOT_HEAP_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/hash.h"
#include "core/dump/model.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/target.h"
#include "snapshot/target/target_memory.h"

/* Location of the record of a stack in the target (snapshot/stacks/ust.h): the address of the
 * record, and the bitness of the heaps whose blocks refer to it. */
struct walk_record {
	uint64_t addr;
	unsigned bits;
};

/* A container (core/dump/model.h) that a walker found. */
struct walk_container {
	uint64_t addr, bytes;
	uint32_t heap; /* index into heaps */
	enum container_kind kind;
	bool is_sparse; /* some pages may be uncommitted */
};

struct walk {
	/* A walk sets only these members: addr, bits, kind, layout, committed_bytes,
	 * reserved_bytes, unwalked, is_partial, has_loose_sizes. It does not set counts. */
	struct heap *heaps;
	size_t heap_count, heap_cap;
	struct block *blocks; /* block.stack is an index into `records`, or STACK_NONE */
	size_t block_count, block_cap;
	bool is_split; /* `blocks` must not grow beyond `block_cap` */
	bool is_part; /* created by walk_split(); `heaps` belongs to the original walk */
	struct walk_record *records; /* without duplicates */
	size_t record_count, record_cap;
	/* Maps from addresses to indexes into `records`; [0]: for 32-bit heaps, [1]: for 64-bit
	 * heaps. */
	struct u64map record_numbers[2];
	/* Cache of recently found indexes; its index is a hash of the address. May be NULL. */
	uint32_t *recent_records;
	/* Addresses of the heap metadata that describes blocks, among them the start of each
	 * segment, which may have no live block. All lie outside of blocks. */
	uint64_t *own;
	size_t own_count, own_cap;
	struct walk_container *containers;
	size_t container_count, container_cap;
	bool lacks_containers; /* there were too many */
	/* Number of heaps whose lock was held. A thread was changing these heaps. */
	unsigned busy_count;
	/* Number of places with invalid data, and the first of them. */
	unsigned broken_count;
	uint64_t broken_addr;
	uint64_t broken_heap; /* heap that was being walked at broken_addr; 0: none yet */
	const char *broken_what;
	/* Number of places that refer to missing memory, and the first of them. Any memory may be
	 * missing from a dump file. */
	unsigned missing_count;
	uint64_t missing_addr;
	const char *missing_what;
	/* Number of ambiguous places, and the first of them. Walking again would not resolve
	 * them. */
	unsigned doubt_count;
	uint64_t doubt_addr;
	const char *doubt_what;
	/* Reason (a literal) why heaps of a known kind were not walked, or NULL. */
	const char *unwalked_why;
	/* First fault in the list of heaps, or NULL. Heaps listed after the fault may be
	 * missing. */
	const char *list_fault;
	uint64_t list_fault_addr;
	/* Number of heaps that were found by their signatures because they are in no list, and the
	 * first of them. They are walked. */
	size_t unlisted_count;
	uint64_t unlisted_addr;
};

/* Heaps that the tracer saw in a process of the given bitness. They may or may not be in a list. */
struct heap_hints {
	unsigned bits;
	const uint64_t *addrs;
	size_t count;
};

void walk_init(struct walk *walk);
void walk_release(struct walk *walk);
void walk_clear(struct walk *walk);

/* Add a heap, or a block to the heap that was added last. `record` is the address of the record of
 * the block's stack, or 0. Both return 0 or -ERR_NOMEM. */
int walk_add_heap(struct walk *walk, const struct heap *heap);
int walk_add_block(struct walk *walk, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, uint64_t record);

/* Records that heap metadata at `addr`, outside of all blocks, describes a block. Returns 0 or
 * -ERR_NOMEM. */
int walk_add_own(struct walk *walk, uint64_t addr);

/* Records a container of the heap that was added last. Returns 0 or -ERR_NOMEM. */
int walk_add_container(struct walk *walk, uint64_t addr, uint64_t bytes, enum container_kind kind);

/* Records invalid data at `addr`. `what` is a literal. Always returns 0, because other heaps may be
 * intact. */
int walk_broken(struct walk *walk, uint64_t addr, const char *what);

/* Records that required memory at addr is missing. Returns 0. */
int walk_missing(struct walk *walk, uint64_t addr, const char *what);

/* Records a warning: the data at `addr` is damaged, or it is valid in a way that the walker does
 * not know. Returns 0. */
int walk_doubt(struct walk *walk, uint64_t addr, const char *what);

/* Returns false if a live process should be walked again because it may have been changing its
 * heaps. */
static inline bool walk_is_sound(const struct walk *walk)
{
	return !walk->broken_count && !walk->missing_count && !walk->list_fault;
}

/*
 * Splits off a part of the walk. A second thread can then add blocks to the heap that was added
 * last. Until walk_join(), neither the walk nor the part may add heaps. The walk may add at most
 * `most` blocks, and the part at most `part_most`. Returns false, without creating a part, if
 * memory is short.
 *
 * walk_join() ends the part. It appends the part's blocks to the walk, as if one thread had added
 * them all. If `is_made` is false or the part recorded a fault, it discards the part's blocks and
 * returns false. The caller must then redo the work of the part in the walk.
 */
bool walk_split(struct walk *walk, size_t most, struct walk *part, size_t part_most);
bool walk_join(struct walk *walk, struct walk *part, bool is_made);

/*
 * Walk of Wine's heaps (wine_heap.c) in a process of the given bitness. The heaps form a ring whose
 * head is the process heap.
 *
 * The first three functions are cheap. wine_heap_is_ring() returns true if the ring has a known
 * layout. wine_heaps_are_busy() returns true if a thread is inside one of the heaps.
 * wine_heap_count() returns the number of heaps, or -1 if the ring is unreadable. wine_heaps_walk()
 * adds all heaps; it returns 0 or -ERR_NOMEM.
 */
bool wine_heap_is_ring(struct target *target, uint64_t process_heap, unsigned bits);
bool wine_heaps_are_busy(struct target *target, uint64_t process_heap, unsigned bits);
int64_t wine_heap_count(struct target *target, uint64_t process_heap, unsigned bits);
int wine_heaps_walk(struct memory *memory, uint64_t process_heap, unsigned bits, struct walk *walk);

/* Returns true if a thread is inside a heap, so the target should be resumed for a moment. */
bool heaps_are_busy(struct target *target);

/*
 * Adds all heaps to the walk. Walks the heaps of known kinds and adds their live blocks; marks the
 * remaining heaps as unwalked. `hints` may be NULL. Returns 0, -ERR_GONE, -ERR_TARGET,
 * -ERR_NO_HEAPS (for files) or -ERR_NOMEM.
 */
int heaps_walk(
	struct memory *memory, const struct heap_hints *hints, struct walk *walk, struct err *err);

#endif
