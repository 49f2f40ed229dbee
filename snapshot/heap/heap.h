/*
 * Heap walkers: who understands which heap. A walker hands every live block to struct walk.
 *
 * The kinds are in one table, heaps.c's: Wine's, which hang on each other (wine_heap.c), and
 * Windows' (nt_heap.h). One more kind is one more walker, one layout table, one line in that table,
 * one test image.
 *
 * Walking happens while the target is held: struct walk only keeps what it is given. Or what walking
 * reads is copied then (snapshot/target/target_memory.h) and walked later.
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

/* Where the record of a stack lies in the target (snapshot/stacks/ust.h), of blocks of heaps of so many bits. */
struct walk_record {
	uint64_t addr;
	unsigned bits;
};

struct walk {
	/* address, bits, kind, layout, committed and reserved bytes, unwalked, is_partial,
	 * has_loose_sizes; no counts yet */
	struct heap *heaps;
	size_t heap_count, heap_cap;
	struct block *blocks; /* stack: index into records, or STACK_NONE */
	size_t block_count, block_cap;
	bool is_split; /* there is room for no more blocks than block_cap */
	bool is_part; /* made by walk_split(): its heaps are those of the walk */
	struct walk_record *records; /* each once */
	size_t record_count, record_cap;
	struct u64map record_numbers[2]; /* of 32- and of 64-bit heaps: address -> index */
	uint32_t *recent_records; /* by their addresses, indexes of those found last; or NULL */
	/* Addresses in memory where heaps write down what blocks they have, and where no block is. */
	uint64_t *own;
	size_t own_count, own_cap;
	/* Heaps that a thread was just changing (its lock was held). */
	unsigned busy_count;
	/* Places where bytes made no sense, and the first of them. */
	unsigned broken_count;
	uint64_t broken_addr;
	uint64_t broken_heap; /* the heap that place is in: the one added last; 0: none was */
	const char *broken_what;
	/* Places that lead to memory that is not there (a file may lack any), and the first of them. */
	unsigned missing_count;
	uint64_t missing_addr;
	const char *missing_what;
	/* Places that can be read in two ways, and the first of them: trying again does not help. */
	unsigned doubt_count;
	uint64_t doubt_addr;
	const char *doubt_what;
	const char
		*unwalked_why; /* a literal: why heaps of a known kind were not walked; or NULL */
	/* The first fault of what lists the heaps, after which heaps may be missing; or NULL. */
	const char *list_fault;
	uint64_t list_fault_addr;
	/* Heaps that nothing lists, and the first of them: they were found by their signatures, and are walked. */
	size_t unlisted_count;
	uint64_t unlisted_addr;
};

/* Heaps that the tracer saw, whatever lists them, of a process of that bitness. */
struct heap_hints {
	unsigned bits;
	const uint64_t *addrs;
	size_t count;
};

void walk_init(struct walk *walk);
void walk_release(struct walk *walk);
void walk_clear(struct walk *walk);

/* Each returns 0 or -ERR_NOMEM. A block belongs to the heap added last. record: where that of its stack lies; 0: it has
 * none. */
int walk_add_heap(struct walk *walk, const struct heap *heap);
int walk_add_block(struct walk *walk, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, uint64_t record);

/* Notes that a heap has written down a block at addr, away from its blocks: 0 or -ERR_NOMEM. */
int walk_add_own(struct walk *walk, uint64_t addr);

/* Notes that the bytes at addr make no sense; always returns 0: other heaps may be sound. what is a
 * literal. */
int walk_broken(struct walk *walk, uint64_t addr, const char *what);

/* Notes that memory at addr is needed and not there; returns 0. */
int walk_missing(struct walk *walk, uint64_t addr, const char *what);

/* Notes that the bytes at addr may be damaged, or be right in a way that is not known; returns 0. */
int walk_doubt(struct walk *walk, uint64_t addr, const char *what);

/* False: walking a live process again may help, which may have been changing what it has. */
static inline bool walk_is_sound(const struct walk *walk)
{
	return !walk->broken_count && !walk->missing_count && !walk->list_fault;
}

/*
 * A part of a walk that another thread makes of the heap added last, while the walk itself goes on: neither adds a heap, or
 * more blocks than walk_split() was told. It returns whether there is a part: else memory is short.
 * walk_join() ends it, and puts its blocks behind the walk's as if one thread had added all. False: that has to be done
 * again by the walk, since the part was not is_made, or something was noted in it.
 */
bool walk_split(struct walk *walk, size_t most, struct walk *part, size_t part_most);
bool walk_join(struct walk *walk, struct walk *part, bool is_made);

/*
 * Wine's heaps (wine_heap.c), of a process of that bitness: a ring that the process heap is the head of. The
 * first three are cheap: whether it is one that has a known layout, whether a thread stands inside one of its
 * heaps, and the number of heaps, -1 where that cannot be read. Walking adds all of them: 0 or -ERR_NOMEM.
 */
bool wine_heap_is_ring(struct target *target, uint64_t process_heap, unsigned bits);
bool wine_heaps_are_busy(struct target *target, uint64_t process_heap, unsigned bits);
int64_t wine_heap_count(struct target *target, uint64_t process_heap, unsigned bits);
int wine_heaps_walk(struct memory *memory, uint64_t process_heap, unsigned bits, struct walk *walk);

/* True when the target should be let go for a moment, since a thread stands inside a heap. */
bool heaps_are_busy(struct target *target);

/*
 * Lists the heaps and the live blocks of those that a walker knows; the others are listed as
 * unwalked. hints may be NULL. Returns 0, -ERR_GONE, -ERR_TARGET, -ERR_NO_HEAPS (of a file) or -ERR_NOMEM.
 */
int heaps_walk(
	struct memory *memory, const struct heap_hints *hints, struct walk *walk, struct err *err);

#endif
