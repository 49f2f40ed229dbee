/* The tracer's tables: blocks, stacks, heaps, ranges, and unloaded modules. Also the selection of
 * sampled blocks. */
#ifndef SNAPSHOT_TRACER_TABLES_H
#define SNAPSHOT_TRACER_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/rings.h"
#include "snapshot/tracer/shared.h"
#include "snapshot/tracer/tracer_memory.h"

/*
 * Recording of the changes of tables for hsnap; see rings.h. A function that changes a table does
 * four things in this order:
 * - It enters its thread's ring, where it may have to wait until hsnap has made room.
 * - It takes the table's lock, changes the table, and adds the event.
 * - It releases the lock.
 * - It leaves the ring.
 *
 * If there is no recording, all this costs one or two reads of tracer_area.rings.
 */

/* maximum number of events per rings_begin() */
#define RINGS_EVENTS_MAX TRACER_SHARDS

struct ring *rings_enter(struct tracer_area *area, uint32_t count);
void rings_leave(struct ring *ring);

/* Sends a mark to hsnap, and waits until hsnap has recorded it. Does nothing if there is no
 * recording, or if it ends meanwhile. A label that is too long is cut between two characters of
 * UTF-8. */
void rings_mark(struct tracer_area *area, const char *label);

/* Returns the calling thread's ring, with room for `count` events. Returns NULL if there is no
 * recording. */
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
 * Enters the calling thread's ring like rings_begin(), then takes the lock of a table. The caller
 * ends with memory_unlock() and rings_end(). If the lock is never released, returns false and does
 * not enter the ring. hsnap begins and ends a recording only while the threads are suspended and
 * none of them holds such a lock. So a recording contains either all changes that a thread makes
 * while it holds the lock, or none of them.
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

/* Adds an event and sets its order and time. The caller holds the lock of the stream to which
 * `*order` belongs. */
static inline void rings_publish(struct ring *ring, uint32_t *order, struct ring_event *event)
{
	if (__builtin_expect(ring->is_full, 0)) {
		ring->dropped++;
		return;
	}
	event->order = (*order)++;
	event->time = ring->time;
	ring_write(ring, event);
}

/* Memory of all tables. The tables are in address space that hsnap reserved. Memory is committed
 * there as the tables fill, up to a limit. While no thread changes a table,
 * tracer_area.committed_bytes is exact. */

/* Commits whole zeroed pages. No other thread commits the same pages, except as described at
 * tables_share(). Returns false if the limit would be exceeded or the system has no memory. */
bool tables_commit(struct tracer_area *area, void *at, uint64_t bytes);

void tables_decommit(struct tracer_area *area, void *at, uint64_t bytes);

/* Corrects the count after tables_commit() if another thread has committed and counted the same
 * memory. The memory stays committed. */
void tables_share(struct tracer_area *area, uint64_t bytes);

/* A table that grows only at its end. */
struct tables_part {
	/* address and size of the reserved address space, in bytes (whole pages) */
	uint64_t start, limit_bytes;
	uint64_t step_bytes; /* bytes committed at a time (whole pages) */
};

/* Makes the first `end` bytes of a part usable. The first `*committed` bytes are usable already.
 * Any number of threads may call this function at once. */
bool tables_extend(struct tracer_area *area, const struct tables_part *part, uint64_t *committed,
	uint64_t end);

/*
 * The table of live blocks: address -> size, heap, stack.
 *
 * The table consists of shards with open addressing. Each shard has its own lock, which is usually
 * held only for a few memory accesses. Occasionally the table of a shard grows or shrinks in place.
 * This takes two passes through the table, and a system call that commits or decommits pages at its
 * end. A shard is broken if its lock is never released because the thread was terminated. Threads
 * then stop waiting for the lock, and later changes are counted as dropped.
 *
 * A large table grows by a quarter when it is four fifths full, and shrinks when it is less than a
 * third full. An entry has 16 bytes. So a live block costs 20 to 25 bytes while the number of
 * blocks increases, and 50 bytes at most. Blocks of a destroyed heap use space until their shard is
 * cleaned. A shard is cleaned when the number of its uses has reached about a 64th of its entries.
 */

/*
 * Number of entries per line. If the home of a block is in use, the block lies after its home. So
 * the table has spare entries after the last line, for blocks whose homes are in the last lines.
 * The very last entry is always free.
 */
#define BLOCKTABLE_LINE 4u
#define BLOCKTABLE_PAGE_LINES                                                                      \
	((uint32_t)(TRACER_PAGE / sizeof(struct tracer_block) / BLOCKTABLE_LINE))
#define BLOCKTABLE_SPARE_LINES 8u

/* Returns the number of lines of a table of `pages` pages. */
static inline uint32_t blocktable_lines(uint32_t pages)
{
	return pages * BLOCKTABLE_PAGE_LINES - BLOCKTABLE_SPARE_LINES;
}

/* Returns the shard of a block. All blocks in the same aligned 64 KiB are in one shard, because
 * often a single thread uses all of this memory. */
static inline unsigned blocktable_shard(uint64_t addr)
{
	return (unsigned)((addr >> 16) * 0x9e3779b97f4a7c15u >> 58);
}

/*
 * Returns the index of a block's home. A search for the block begins at its home and ends at the
 * first free entry. Blocks in the same 256 bytes of memory have their homes in one cache line,
 * because such blocks are often allocated and freed in succession. When the number of lines
 * increases, no home moves to a lower index.
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

/* Prefetches the home of a block. Call it about 100 ns before blocktable_add(). */
void blocktable_expect(const struct tracer_area *area, uint64_t addr);

/* Adds a block made by tracer_block_make(). Replaces any block at the same address. */
void blocktable_add(struct tracer_area *area, const struct tracer_block *block);

/* Removes a block. Returns true and sets `*block` if the table contained the block and its heap was
 * not destroyed. */
bool blocktable_remove(struct tracer_area *area, uint64_t addr, struct tracer_block *block);

/*
 * Detaches all blocks from a heap that is about to be destroyed. `heap` is the tag of the heap.
 * Takes constant time, because the blocks leave the table later (see shared.h). Returns true if the
 * caller must report the outcome with blocktable_restore_heap() or blocktable_bury_heap().
 */
bool blocktable_forget_heap(struct tracer_area *area, uint32_t heap);

/* Reports that the heap was not destroyed. Its blocks are live again, including blocks that were
 * added in the meantime. */
void blocktable_restore_heap(struct tracer_area *area, uint32_t heap);

/* Reports that the heap was destroyed. Another heap may already be at its address. */
void blocktable_bury_heap(struct tracer_area *area, uint32_t heap);

/* Records that a block older than the tracer was freed. Does nothing if the table has a block at
 * that address: another thread has then got the memory and recorded it. */
void blocktable_free_old(struct tracer_area *area, uint64_t addr);

/* Removes the remaining blocks of destroyed heaps. Locks one shard at a time. */
void blocktable_clean(struct tracer_area *area);

/*
 * Heap tags: small numbers that represent heap handles, which are too large for block entries. A
 * tag consists of the heap's index in tracer_area.heaps and its generation. A heap that is created
 * at the address of a destroyed heap has the same index and another generation.
 */

/* Returns the first index in tracer_area.heaps at which a heap may be. The heap is at this index or
 * after it. */
static inline uint32_t heapindex_home(uint64_t heap)
{
	return (uint32_t)(heap >> 12) * 0x9e3779b1u >> (32 - TRACER_HEAPS_LOG2);
}

/*
 * Returns the tag of a known or new heap, or 0 if there is no more room. Any thread may call this
 * function; it takes no lock. If the heap at this address was destroyed, starts a new generation,
 * which occasionally takes as long as blocktable_clean(). A new generation starts only after the
 * destroying call has returned, because the system may refuse the destruction.
 */
uint32_t heapindex_of(struct tracer_area *area, uint64_t heap);

/* Returns the tag of a new heap, which no other thread knows yet. If a heap at the same address was
 * being destroyed, that heap counts as destroyed. */
uint32_t heapindex_new(struct tracer_area *area, uint64_t heap);

/*
 * The table of distinct stacks: frames -> id. Records are never removed. An index with open
 * addressing finds the records. When the index fills up, an index of four times its size replaces
 * it. There are no locks.
 *
 * If a module of a stack is unloaded, the stack gets a new id when it is next seen. See
 * tracer_stack.born.
 */

/* Returns the id of the stack with these frames. `depth` is 1 to TRACER_DEPTH_MAX. Returns 0 if the
 * stack is new and there is no room. */
uint32_t stacktable_intern(struct tracer_area *area, const uint64_t *frames, uint32_t depth);

/*
 * Layout of the indexes: a page with their counts, then the indexes one after another. The tracer
 * commits their memory. tracer_area.stack_buckets is the address of that page, aligned to 64 KiB.
 * The low bits of stack_buckets record which indexes are in use.
 */
#define STACKTABLE_FIRST_BYTES ((uint64_t)4096)

/* Returns the maximum number of indexes for a stack area of the given size. The last index takes at
 * most a quarter of that size. */
static inline unsigned stacktable_levels(uint64_t stacks_limit)
{
	unsigned levels = 1;

	while (STACKTABLE_FIRST_BYTES << 2 * levels <= stacks_limit / 4)
		levels++;
	return levels;
}

/* Returns the offset of an index, which is also the total size reserved for all smaller indexes. */
static inline uint64_t stacktable_index_offset(unsigned level)
{
	return TRACER_PAGE + STACKTABLE_FIRST_BYTES * ((((uint64_t)1 << 2 * level) - 1) / 3);
}

/*
 * Virtual memory that the program requested from the system itself: ranges of pages -> the stacks
 * that reserved, committed, or mapped them.
 *
 * Adjacent ranges of one allocation with equal properties are one node. A function takes
 * logarithmic time for each node that it changes, and holds the only lock of the table.
 * tracer_ranges.changing is odd while data visible from outside changes. If the lock is never
 * released because its thread was terminated, the table is broken. Later changes are counted in
 * tracer_area.dropped_ranges, as are changes for which there is no room. If there is no room to
 * split a node, its upper part is dropped. So the table may be incomplete, but it is never wrong.
 *
 * All addresses are page addresses: the start and the end of a range are multiples of the page
 * size. A range is not empty, and its allocation is known.
 */

/*
 * Adds memory that was just reserved or mapped. `*range` contains start, end, allocation, kind and
 * stacks. Forgets all allocations that overlap the memory, because their frees were missed.
 */
void ranges_add(struct tracer_area *area, const struct tracer_range *range);

/* Like ranges_add(), for memory that existed before. Adds only the parts that are not known yet. */
void ranges_fill(struct tracer_area *area, const struct tracer_range *range);

/* Returns true if all of [from, to) is known. */
bool ranges_is_known(struct tracer_area *area, uint64_t from, uint64_t to);

/* Sets the kind and the stack of the reserved memory in [from, to). Does not change other memory
 * there. */
void ranges_use(
	struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack);

/* Makes memory of the given kind in [from, to) reserved again, with the stack that reserved it.
 * `stack` is the stack that decommits the memory. */
void ranges_decommit(
	struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack);

/* Makes the memory in [from, to) part of the allocation with this base. */
void ranges_rebase(struct tracer_area *area, uint64_t from, uint64_t to, uint64_t base);

/* An allocation. Only the known memory in it counts. */
struct ranges_extent {
	uint64_t base, end;
	uint32_t kind; /* kind of the first node at or after the requested address */
};

/* Finds the allocation around an address. Returns false if no allocation is known there. */
bool ranges_find(struct tracer_area *area, uint64_t addr, struct ranges_extent *extent);

struct ranges_taken {
	uint32_t nodes;
	uint32_t session; /* session of the tables; the nodes are invalid in other sessions */
	/* remaining part of the same allocation, after the memory that was removed */
	uint64_t base, rest, rest_end;
};

/*
 * Removes [from, to) before the system is asked to free it. If another thread then gets the same
 * memory, it finds none of the old nodes. Outside readers still see the old nodes, with
 * RANGE_TAKEN. ranges_drop() frees these nodes. If the system refused to free the memory,
 * ranges_restore() restores them, except where other memory has become known. If the allocation
 * continues after `to`, its remaining part becomes an allocation of its own, as it does in the
 * system; ranges_restore() undoes this. `stack` is the stack that frees the memory. Returns false
 * if nothing was known. Otherwise the caller must call ranges_drop() or ranges_restore().
 */
bool ranges_detach(struct tracer_area *area, uint64_t from, uint64_t to, uint32_t stack,
	struct ranges_taken *taken);
void ranges_drop(struct tracer_area *area, const struct ranges_taken *taken);
void ranges_restore(struct tracer_area *area, const struct ranges_taken *taken);

/* Forgets [from, to) because the memory has a new owner, such as a heap that was created there. */
void ranges_forget(struct tracer_area *area, uint64_t from, uint64_t to);

/* Identity of a module, read from its mapped headers. */

#define MODULE_PATH_UNITS 32767 /* maximum path length in UTF-16 units */
#define MODULE_PDB_BYTES 1024 /* maximum PDB name length in bytes; longer names are left out */

/* A record of the maximum size. */
struct module_record {
	struct tracer_module module;
	uint8_t names[MODULE_PATH_UNITS * 2 + MODULE_PDB_BYTES];
};

struct module_image {
	uint64_t base;
	uint32_t bytes;
	const void *path; /* UTF-16 */
	uint16_t path_units;
	/* Copies bytes of the image. Returns false if they are not mapped. The image is read only
	 * through this function. */
	bool (*read)(uint64_t addr, void *to, uint32_t len);
};

/* Makes the record of an image. Properties that are missing or invalid in the image's headers are
 * 0. */
void module_record_make(struct module_record *record, const struct module_image *image);

/* Unloaded modules, in the order in which they were unloaded. They are recorded so that frames in
 * them keep their names. */

/*
 * Adds the unload of a module from [base, end). The caller must be certain that no new stack passes
 * through the module. `module` is a complete record of `record_bytes` bytes (header, path and PDB
 * name), which is copied. Equal records are stored once. Any thread may call this function.
 *
 * Returns false if there is no room; then there is no room for any later unload either. The unload
 * is counted as dropped. Stacks through the module are then reported with an unknown module, never
 * with a wrong module. If there is no room only for the record, the unload is added with
 * TRACER_NO_MODULE.
 */
bool unloads_add(
	struct tracer_area *area, uint64_t base, uint64_t end, const struct tracer_module *module);

/* Returns true if a frame is in a module that was unloaded after the first `from` unloads. */
bool unloads_hit(
	const struct tracer_area *area, uint64_t from, const uint64_t *frames, uint32_t depth);

/*
 * Sampling: on average, one block per `mean_bytes` bytes is recorded. The choice is random, so
 * patterns in the program have no influence. A block of s bytes is recorded with a probability of
 * exactly 1 - exp(-s / mean_bytes), independent of earlier blocks. A block of 0 bytes counts as a
 * block of 1 byte.
 */

/*
 * A thread's word is 0 before its first block. After that, it is 1 + the number of bytes to the
 * next recorded block. A distance that does not fit into a word is covered in several parts. All
 * parts except the last are marked with SAMPLE_PART, and no block is recorded at their ends. The
 * parts are independent, because the remainder of an exponential distance has the same distribution
 * as a new distance.
 */
#define SAMPLE_PART ((uint32_t)1 << 31)

/* Decides whether to record a block at the end of a distance. `bytes` is not 0. Called only by
 * sample_crosses(). */
bool sample_at_end(uint32_t *word, uint64_t *random, uint64_t mean_bytes, uint64_t bytes);

/*
 * Returns true if a newly allocated block must be recorded.
 *
 * `word` is the thread's own word, 0 before its first block. It fits into a TLS slot of either
 * bitness. `random` is shared by all threads and rarely used. Its initial value can be any number
 * that differs between runs. `mean_bytes` is 1 to 2^40, and must always be the same for a word.
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

/* Converts 64 random bits to an exponentially distributed distance in whole bytes, rounded down.
 * Before rounding, the error is at most a millionth of the mean. */
uint64_t sample_distance(uint64_t bits, uint64_t mean_bytes);

/* Number of words per thread, for threads without TLS slots. */
#define THREADWORDS_COUNT 4u

/* Returns the words of the calling thread, initially 0, or NULL if there are too many threads.
 * `block` is the address of the thread's TEB, `thread` the thread's id. */
uintptr_t *threadwords_find(uint64_t block, uint32_t thread);

/*
 * Filter of addresses that may be in the table. With the filter, freeing an unrecorded block reads
 * only one byte. The filter consists of counters; a counter that has reached its maximum stays
 * there. Any thread may use the filter. An address is added to the filter before its block is added
 * to the table, and removed after its block was removed from the table.
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
