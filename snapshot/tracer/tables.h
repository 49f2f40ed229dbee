/*
 * The tracer's tables: blocks, stacks, heaps, ranges, unloaded modules, and which blocks are
 * sampled.
 */
#ifndef SNAPSHOT_TRACER_TABLES_H
#define SNAPSHOT_TRACER_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/rings.h"
#include "snapshot/tracer/shared.h"
#include "snapshot/tracer/tracer_memory.h"

/*
 * Recording of the tables' changes for hsnap: see rings.h. A function that changes a table first
 * enters its thread's ring, then takes the table's lock: entering the ring may mean waiting until
 * hsnap has made room. It adds the event while it holds the lock, and leaves the ring after it has
 * released the lock. While nothing is recorded, this costs one or two reads of tracer_area.rings.
 */

/* maximum number of events per rings_begin() */
#define RINGS_EVENTS_MAX TRACER_SHARDS

struct ring *rings_enter(struct tracer_area *area, uint32_t count);
void rings_leave(struct ring *ring);

/* Returns the calling thread's ring with room for count events, or NULL if nothing is recorded. */
static inline struct ring *rings_begin(struct tracer_area *area, uint32_t count)
{
	return __builtin_expect(__atomic_load_n(&area->rings, __ATOMIC_RELAXED) != 0, 0) ?
		       rings_enter(area, count) :
		       NULL;
}

static inline void rings_end(struct ring *ring)
{
	if (__builtin_expect(ring != NULL, 0))
		rings_leave(ring);
}

/*
 * Enters the calling thread's ring like rings_begin(), then takes a table's lock; the caller ends
 * with memory_unlock() and rings_end(). hsnap begins and ends a recording while the threads are
 * suspended and none of them holds such a lock. So either all changes made under the lock are
 * recorded, or none. Returns false, without a ring, if the lock was never released.
 */
static inline bool rings_lock(struct tracer_area *area, uint32_t count, uint32_t *lock,
	uint32_t *broken, struct ring **ring)
{
	for (;;) {
		uint64_t rings = __atomic_load_n(&area->rings, __ATOMIC_RELAXED);

		*ring = rings_begin(area, count);
		if (!memory_lock(lock, broken)) {
			rings_end(*ring);
			*ring = NULL;
			return false;
		}
		if (__builtin_expect(__atomic_load_n(&area->rings, __ATOMIC_RELAXED) == rings, 1))
			return true;
		memory_unlock(lock);
		rings_end(*ring);
	}
}

/* Adds an event and sets its order and time. The caller holds the lock of the stream that *order
 * counts. */
static inline void rings_say(struct ring *ring, uint32_t *order, struct ring_event *event)
{
	if (__builtin_expect(ring->is_full, 0)) {
		ring->dropped++;
		return;
	}
	event->order = (*order)++;
	event->time = ring->time;
	ring_write(ring, event);
}

/*
 * Memory of all tables: committed as they fill, in the room that hsnap reserved, up to a limit.
 * While no thread changes a table, tracer_area.committed_bytes is exact to the byte.
 */

/* Commits whole pages, zeroed. No other thread commits the same pages, except as in tables_share().
 * Returns false if the limit would be exceeded or the system has no memory. */
bool tables_commit(struct tracer_area *area, void *at, uint64_t bytes);

void tables_decommit(struct tracer_area *area, void *at, uint64_t bytes);

/* Uncounts memory from tables_commit() that another thread has committed and counted, too. The
 * memory stays committed. */
void tables_share(struct tracer_area *area, uint64_t bytes);

/* Table that only grows, at its end. */
struct tables_part {
	uint64_t start, limit_bytes; /* room: address, size in whole pages */
	uint64_t step_bytes; /* bytes committed at a time, whole pages */
};

/* Makes the first end bytes of a part usable; *committed of them already are. Any number of threads
 * may call it at once. */
bool tables_extend(struct tracer_area *area, const struct tables_part *part, uint64_t *committed,
	uint64_t end);

/*
 * The table of live blocks: address -> size, heap, stack.
 *
 * Open addressing in shards, each with its own lock. A lock is held for a few memory accesses. Now
 * and then the shard's table grows or shrinks in place: that takes two passes through the table,
 * and a system call that commits or decommits pages at its end. A lock that is never released (its
 * thread was terminated inside) breaks its shard: waiting ends, and later changes are counted as
 * dropped.
 *
 * A large table grows by a quarter when it is four fifths full, and shrinks when it is less than a
 * third full. With 16 bytes per entry, a live block costs 20 to 25 bytes while their number rises,
 * and 50 at most. Blocks of a destroyed heap count as live until their shard has been used again,
 * about as often as a 64th of its entries.
 */

/* Entries per line. A block whose home in one of the last lines is taken lies after that home: the
 * table has some more entries than lines hold, and the very last entry is always free. */
#define BLOCKTABLE_LINE 4u
#define BLOCKTABLE_PAGE_LINES                                                                      \
	((uint32_t)(TRACER_PAGE / sizeof(struct tracer_block) / BLOCKTABLE_LINE))
#define BLOCKTABLE_SPARE_LINES 8u

/* Returns the number of lines of a table of that many pages. */
static inline uint32_t blocktable_lines(uint32_t pages)
{
	return pages * BLOCKTABLE_PAGE_LINES - BLOCKTABLE_SPARE_LINES;
}

/* Returns the shard of a block. Each 64 KiB of memory has one, because often a single thread uses
 * them. */
static inline unsigned blocktable_shard(uint64_t addr)
{
	return (unsigned)((addr >> 16) * 0x9e3779b97f4a7c15u >> 58);
}

/*
 * Returns the index of a block's home: the block is there or after it, before the first free entry.
 * Blocks in the same 256 bytes of memory have their homes in one cache line: they are often
 * allocated and freed one after the other. With more lines, a home stays where it is or moves up.
 */
static inline uint64_t blocktable_home(uint64_t addr, uint32_t lines)
{
	uint64_t hash = (addr >> 8) * 0x9e3779b97f4a7c15u >> 32;

	return (hash * lines >> 32) * BLOCKTABLE_LINE + (addr >> 6 & 3);
}

/* Returns the address of a shard's table. */
static inline uint64_t blocktable_at(const struct tracer_area *area, unsigned shard)
{
	return area->shard_tables + shard * area->shard_bytes;
}

/* Prefetches the home of a block. To be called some 100 ns before blocktable_put(). */
void blocktable_expect(const struct tracer_area *area, uint64_t addr);

/* Adds a block made by tracer_block_make(). Replaces a block at the same address. */
void blocktable_put(struct tracer_area *area, const struct tracer_block *block);

/* Removes a block. Returns true and sets *block if the table had it and its heap is not
 * destroyed. */
bool blocktable_take(struct tracer_area *area, uint64_t addr, struct tracer_block *block);

/*
 * Disowns all blocks of a heap that is about to be destroyed, by its tag. Takes constant time: the
 * blocks leave the table later (see shared.h). Returns true if the caller has to report the
 * outcome, by blocktable_restore_heap() or blocktable_bury_heap().
 */
bool blocktable_forget_heap(struct tracer_area *area, uint32_t heap);

/* Reports that the heap was not destroyed. Its blocks are live again, including blocks added
 * since. */
void blocktable_restore_heap(struct tracer_area *area, uint32_t heap);

/* Reports that the heap was destroyed. Another heap may be at its address already. */
void blocktable_bury_heap(struct tracer_area *area, uint32_t heap);

/* Records that a block older than the tracer was freed. If the table has a block at that address,
 * another thread has got the memory since and has recorded it; then nothing is recorded. */
void blocktable_free_old(struct tracer_area *area, uint64_t addr);

/* Removes the remaining blocks of destroyed heaps. Holds the lock of each shard while it passes
 * through the shard. */
void blocktable_clean(struct tracer_area *area);

/*
 * Heap tags: small numbers, because the block table has no room for the heaps' handles. A tag is
 * the heap's index in tracer_area.heaps and its generation. A heap at the address of a destroyed
 * one has the same index and another generation.
 */

/* Returns the first index in tracer_area.heaps at which a heap may be; the heap is there or after
 * it. */
static inline uint32_t heapindex_home(uint64_t heap)
{
	return (uint32_t)(heap >> 12) * 0x9e3779b1u >> (32 - TRACER_HEAPS_LOG2);
}

/*
 * Returns the tag of a heap, known or new; 0 if there is no room for more. Any thread, no lock. For
 * a heap that was destroyed it starts a new generation, which now and then takes as long as
 * blocktable_clean(). While the heap's destruction has not returned it does not, because the system
 * may refuse the destruction.
 */
uint32_t heapindex_of(struct tracer_area *area, uint64_t heap);

/* Returns the tag of a heap that was just created and that no other thread knows yet. A heap that
 * was being destroyed at its address counts as destroyed. */
uint32_t heapindex_new(struct tracer_area *area, uint64_t heap);

/*
 * The table of distinct stacks: frames -> id. Records are only added. Their index uses open
 * addressing and is replaced by one four times as large when it fills. There are no locks.
 *
 * A stack gets a new id if a module that it passes through was unloaded since the stack was last
 * seen: see tracer_stack.born.
 */

/* Returns the id of the stack with these frames (depth of 1 to TRACER_DEPTH_MAX); 0 if it is new
 * and there is no room left. */
uint32_t stacktable_intern(struct tracer_area *area, const uint64_t *frames, uint32_t depth);

/*
 * Layout of the indices: one after another, after a page with their counts. The tracer commits
 * them. tracer_area.stack_buckets is their address, aligned to 64 KiB; its lower bits record which
 * are in use.
 */
#define STACKTABLE_FIRST_BYTES ((uint64_t)4096)

/* Returns the maximum number of indices for a stack area of that many bytes. The last index takes a
 * quarter of these bytes, or an eighth, or less. */
static inline unsigned stacktable_levels(uint64_t stacks_limit)
{
	unsigned levels = 1;

	while (STACKTABLE_FIRST_BYTES << 2 * levels <= stacks_limit / 4)
		levels++;
	return levels;
}

/* Returns the offset of an index, which is also the size of the room for that many indices. */
static inline uint64_t stacktable_index_offset(unsigned level)
{
	return TRACER_PAGE + STACKTABLE_FIRST_BYTES * ((((uint64_t)1 << 2 * level) - 1) / 3);
}

/*
 * Virtual memory that the program took from the system itself: ranges of pages -> stacks that
 * reserved, committed, or mapped them.
 *
 * Neighbours of one allocation with equal properties are one node. Each function costs the
 * logarithm of the number of nodes for each node that it touches. It holds one lock meanwhile, and
 * tracer_ranges.changing is odd while anything visible from outside changes. A lock that is never
 * released (its thread was terminated inside) breaks the table. Later changes are counted in
 * tracer_area.dropped_ranges, as are changes that find no room. If there is no room to cut a node
 * in two, its upper part is dropped: the table may lack memory, but is never wrong about it.
 *
 * Addresses are those of pages: start and end of a range are multiples of the page size. A range is
 * not empty, and its allocation is known.
 */

/*
 * Adds memory that was just reserved or mapped: start, end, allocation, kind and stacks of *range.
 * Forgets every allocation that overlaps it, because its free was not seen.
 */
void ranges_add(struct tracer_area *area, const struct tracer_range *range);

/* Adds memory that existed before: like ranges_add(), but only where nothing is known yet. */
void ranges_fill(struct tracer_area *area, const struct tracer_range *range);

/* Returns true if all of [from, to) is known. */
bool ranges_is_known(struct tracer_area *area, uint64_t from, uint64_t to);

/* Sets kind and stack of the reserved memory in [from, to), and leaves all other memory there
 * alone. */
void ranges_use(
	struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack);

/* Makes memory of that kind in [from, to) only reserved again, by the stack that reserved it; stack
 * is the stack that gives it up. */
void ranges_give_up(
	struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack);

/* Assigns the memory in [from, to) to the allocation with this base. */
void ranges_rebase(struct tracer_area *area, uint64_t from, uint64_t to, uint64_t base);

/* Allocation, as far as it is known. */
struct ranges_extent {
	uint64_t base, end;
	uint32_t kind; /* kind of the first node at or after the requested address */
};

/* Finds the allocation around an address. Returns false if none is known. */
bool ranges_find(struct tracer_area *area, uint64_t addr, struct ranges_extent *extent);

struct ranges_taken {
	uint32_t nodes;
	uint32_t session; /* of the tables: in another session the nodes are invalid */
	uint64_t base, rest, rest_end; /* the rest of the same allocation, after the taken memory */
};

/*
 * Removes [from, to) before the system is asked to free it: then another thread that gets the same
 * memory finds nothing of it. Readers from outside still see it, with RANGE_TAKEN, until
 * ranges_drop() frees it, or ranges_put_back() restores it because the system refused. Memory that
 * became known there meanwhile stays. The rest of the allocation after it is an allocation of its
 * own, meanwhile and after ranges_drop(), as for the system. Returns false if nothing was known;
 * otherwise the caller has to call ranges_drop() or ranges_put_back(). stack is the stack that
 * frees it.
 */
bool ranges_take(struct tracer_area *area, uint64_t from, uint64_t to, uint32_t stack,
	struct ranges_taken *taken);
void ranges_drop(struct tracer_area *area, const struct ranges_taken *taken);
void ranges_put_back(struct tracer_area *area, const struct ranges_taken *taken);

/* Forgets [from, to), which has another owner now, such as a heap that was built there. */
void ranges_forget(struct tracer_area *area, uint64_t from, uint64_t to);

/* Identity of a module, from its mapped headers. */

#define MODULE_PATH_UNITS 32767 /* of the longest possible path */
#define MODULE_PDB_BYTES 1024 /* longer PDB names are left out */

/* Record of the largest possible size. */
struct module_record {
	struct tracer_module module;
	uint8_t names[MODULE_PATH_UNITS * 2 + MODULE_PDB_BYTES];
};

struct module_image {
	uint64_t base;
	uint32_t bytes;
	const void *path; /* UTF-16 */
	uint16_t path_units;
	/* Copies bytes of the image; returns false if they are not mapped. Nothing else reads the
	 * image. */
	bool (*read)(uint64_t addr, void *to, uint32_t len);
};

/* Makes the record of an image. Properties that its headers lack or state wrongly are 0. */
void module_record_make(struct module_record *record, const struct module_image *image);

/* Unloaded modules, in the order of their unloads, so that frames in them keep their names. */

/*
 * Adds the unload of a module from [base, end), once it is certain that no new stack passes through
 * it. module is a complete record: header, path and PDB name in a row, record_bytes in all. It is
 * copied; equal records are stored once. Any thread.
 *
 * Returns false if there is no room, which then holds for all later unloads. The unload is counted
 * as dropped, and stacks through it are reported with an unknown module, never with a wrong one. If
 * only the record finds no room, the unload is added with TRACER_NO_MODULE.
 */
bool unloads_add(
	struct tracer_area *area, uint64_t base, uint64_t end, const struct tracer_module *module);

/* Returns true if a frame is in a module that was unloaded after the first `from` unloads. */
bool unloads_hit(
	const struct tracer_area *area, uint64_t from, const uint64_t *frames, uint32_t depth);

/*
 * Sampling: one block per mean_bytes is recorded on the average, chosen so that a program's own
 * pattern has no influence. A block of s bytes is recorded with a probability of exactly 1 - exp(-s
 * / mean_bytes), whatever was recorded before. A block of 0 bytes counts as one of 1.
 */

/*
 * A thread's word is 0 before its first block, then the bytes to the next recorded block + 1. A
 * distance that does not fit is covered in parts, and at the end of each part except the last
 * nothing is recorded: SAMPLE_PART marks those. The rest of an exponential distance is distributed
 * like a fresh one, so the parts are independent.
 */
#define SAMPLE_PART ((uint32_t)1 << 31)

/* Decides at the end of a distance; bytes is not 0. For sample_crosses(). */
bool sample_at_end(uint32_t *word, uint64_t *random, uint64_t mean_bytes, uint64_t bytes);

/*
 * Returns true if a block that was just allocated is to be recorded.
 *
 * word: the thread's own, 0 before its first block. It fits into a TLS slot of either bitness.
 * random: shared by all threads, with any initial value that differs between runs; rarely used.
 * mean_bytes: 1 to 2^40, always the same for a word.
 */
static inline bool sample_crosses(
	uint32_t *word, uint64_t *random, uint64_t mean_bytes, uint64_t bytes)
{
	bytes += !bytes;
	if ((*word & ~SAMPLE_PART) <= bytes)
		return sample_at_end(word, random, mean_bytes, bytes);
	*word -= (uint32_t)bytes;
	return false;
}

/* Returns an exponentially distributed distance from 64 random bits, rounded down to whole bytes.
 * Before rounding it is accurate to a millionth of the mean. */
uint64_t sample_distance(uint64_t bits, uint64_t mean_bytes);

/* Number of words per thread that has no TLS slot. */
#define THREADWORDS_COUNT 4u

/* Returns the words of the calling thread, initially 0, or NULL if there are too many threads.
 * block: address of the thread's own block (its TEB); thread: its id. */
uintptr_t *threadwords_find(uint64_t block, uint32_t thread);

/*
 * Filter of addresses that may be in the table, so that the free of an unrecorded block reads a
 * single byte. Full counters stay full. Any thread. An address is added before its block is put
 * into the table, and removed after the block was taken out.
 */
#define TRACER_FILTER_LOG2 18

struct tracer_filter {
	uint8_t counts[1u << TRACER_FILTER_LOG2];
};

void tracer_filter_add(struct tracer_filter *filter, uint64_t addr);
void tracer_filter_remove(struct tracer_filter *filter, uint64_t addr);

static inline uint8_t *tracer_filter_count(struct tracer_filter *filter, uint64_t addr)
{
	return &filter->counts[(addr >> 3) * 0x9e3779b97f4a7c15u >> (64 - TRACER_FILTER_LOG2)];
}

static inline bool tracer_filter_may_hold(struct tracer_filter *filter, uint64_t addr)
{
	return __atomic_load_n(tracer_filter_count(filter, addr), __ATOMIC_RELAXED) != 0;
}

#endif
