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
 * What is recorded of the tables' changes, for hsnap: see rings.h. A function that changes a table gets
 * its thread's ring before it takes the table's lock, for that may mean to wait until hsnap has made room;
 * it says under the lock what it changes, and lets go of the ring behind it. It costs nothing but
 * a look or two at tracer_area.rings where nothing is recorded.
 */

/* Of one rings_begin(). */
#define RINGS_EVENTS_MAX TRACER_SHARDS

struct ring *rings_enter(struct tracer_area *area, uint32_t count);
void rings_leave(struct ring *ring);

/* The calling thread's ring, with room for so many events; NULL: nothing is recorded. */
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
 * Takes a table's lock, and before it the calling thread's ring, as rings_begin() has it, for rings_end(). hsnap
 * begins and ends a recording while threads stand still and nobody has such a lock: so either all that is done under it is
 * recorded, or nothing. False: the lock was never given back, and there is no ring.
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

/* Adds an event, whose order and time are not set yet, under the lock of the stream that *order counts. */
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
 * Memory for all tables: committed as they fill, in the room that hsnap reserved, up to a limit.
 * tracer_area.committed_bytes says at any rest how much that is, to the byte.
 */

/* Zeroed memory, whole pages, that nobody else commits; false when the limit would be passed, or the
 * system has none. */
bool tables_commit(struct tracer_area *area, void *at, uint64_t bytes);

void tables_decommit(struct tracer_area *area, void *at, uint64_t bytes);

/* Says that memory got from tables_commit() is, after all, that of another thread, which has been
 * given the very same. It stays committed. */
void tables_share(struct tracer_area *area, uint64_t bytes);

/* A table that only grows, at its end. */
struct tables_part {
	uint64_t start, limit_bytes; /* the room: address, whole pages */
	uint64_t step_bytes; /* so much at a time, whole pages */
};

/* Makes the first end bytes of a part usable, of which *committed are; any number of threads. */
bool tables_extend(struct tracer_area *area, const struct tables_part *part, uint64_t *committed,
	uint64_t end);

/*
 * The table of live blocks: address -> size, heap, stack.
 *
 * Open addressing in shards, each with a lock of its own. It is held for a few memory accesses, and
 * now and then while the shard's table grows or shrinks, where it is: for two passes through it, and a
 * real call that commits or decommits pages at its end. A lock that is not given back (its thread
 * was ended inside) breaks its shard: waiting ends, what comes after is counted as dropped.
 *
 * A large table grows by a quarter when it is four fifths full, and shrinks when it is less than a third full: of 16 bytes
 * an entry, a live block costs 20 to 25 while there are ever more, and 50 at most. The blocks of a destroyed heap
 * count as live until their shard was used again, about as often as a 64th of its entries.
 */

/* Four entries each. Blocks whose home is in one of the last are behind it where it is taken: there are some
 * entries more than lines, and the very last one is always free. */
#define BLOCKTABLE_LINE 4u
#define BLOCKTABLE_PAGE_LINES                                                                      \
	((uint32_t)(TRACER_PAGE / sizeof(struct tracer_block) / BLOCKTABLE_LINE))
#define BLOCKTABLE_SPARE_LINES 8u

/* Of a table of so many pages. */
static inline uint32_t blocktable_lines(uint32_t pages)
{
	return pages * BLOCKTABLE_PAGE_LINES - BLOCKTABLE_SPARE_LINES;
}

/* Which shard has a block: one for each 64 KiB of memory, since that is often one thread's. */
static inline unsigned blocktable_shard(uint64_t addr)
{
	return (unsigned)((addr >> 16) * 0x9e3779b97f4a7c15u >> 58);
}

/*
 * The entry where a block is, or from there on the first free one: blocks that lie in the same 256 bytes of
 * memory have their places in one cache line, for they often come and go one after the other. With more lines a home
 * lies where it was or further on.
 */
static inline uint64_t blocktable_home(uint64_t addr, uint32_t lines)
{
	uint64_t hash = (addr >> 8) * 0x9e3779b97f4a7c15u >> 32;

	return (hash * lines >> 32) * BLOCKTABLE_LINE + (addr >> 6 & 3);
}

/* The address of a shard's table. */
static inline uint64_t blocktable_at(const struct tracer_area *area, unsigned shard)
{
	return area->shard_tables + shard * area->shard_bytes;
}

/* Has the processor fetch where a block will be put: to be called some 100 ns before that. */
void blocktable_expect(const struct tracer_area *area, uint64_t addr);

/* Adds a block, made by tracer_block_make(); one that is there under the same address is replaced. */
void blocktable_put(struct tracer_area *area, const struct tracer_block *block);

/* Takes a block out: true and *block when it was there. */
bool blocktable_take(struct tracer_area *area, uint64_t addr, struct tracer_block *block);

/*
 * Takes out all blocks of a heap that is about to be destroyed, by its tag; in no time, for they are
 * only disowned (see shared.h), and leave the table later. True when it is up to the caller to say what
 * became of it: by one of the next two.
 */
bool blocktable_forget_heap(struct tracer_area *area, uint32_t heap);

/* The heap was not destroyed after all: its blocks are back, and those put since. */
void blocktable_restore_heap(struct tracer_area *area, uint32_t heap);

/* It was destroyed; there may be another one at its address already. */
void blocktable_bury_heap(struct tracer_area *area, uint32_t heap);

/* Records that a block was freed which is older than the tracer. When the table has one at its address,
 * somebody else got that memory by then, and has said so. */
void blocktable_free_old(struct tracer_area *area, uint64_t addr);

/* Takes out what is left of destroyed heaps; each shard's lock is held while it is looked through. */
void blocktable_clean(struct tracer_area *area);

/*
 * Heaps by a small number, for the block table has no room for their handles: a tag is the heap's
 * index in tracer_area.heaps and its generation. A heap at the address of one that was destroyed has
 * the same index and another generation.
 */

/* Where in tracer_area.heaps a heap is, or behind that. */
static inline uint32_t heapindex_home(uint64_t heap)
{
	return (uint32_t)(heap >> 12) * 0x9e3779b1u >> (32 - TRACER_HEAPS_LOG2);
}

/*
 * The tag of a heap, new or not; 0 when there is no room for more. Any thread, no lock. For a heap
 * that was destroyed this begins a new one, and now and then takes the time of blocktable_clean(). For
 * one whose destruction has not returned it does not, for that may be refused.
 */
uint32_t heapindex_of(struct tracer_area *area, uint64_t heap);

/* The same for a heap that was just created, before others know it: one that was being destroyed at
 * its address is no more. */
uint32_t heapindex_new(struct tracer_area *area, uint64_t heap);

/*
 * The table of distinct stacks: frames -> id. Records are only ever added, and an index of them, of
 * open addressing, is replaced by one four times as large when it fills. There are no locks.
 *
 * A stack that passes through a module which was unloaded since it was last seen is another one from
 * then on: see tracer_stack.born.
 */

/* The id of the stack with these frames (depth of 1 to TRACER_DEPTH_MAX); 0 when it is new and
 * there is no room left. */
uint32_t stacktable_intern(struct tracer_area *area, const uint64_t *frames, uint32_t depth);

/*
 * The indices lie behind one another, after a page with their counts; they are committed here.
 * tracer_area.stack_buckets is their address, aligned to 64 KiB, and below that what is in use.
 */
#define STACKTABLE_FIRST_BYTES ((uint64_t)4096)

/* How many indices there can be for a stack area of so many bytes: the last one takes a quarter of
 * what that takes, or an eighth, or less. */
static inline unsigned stacktable_levels(uint64_t stacks_limit)
{
	unsigned levels = 1;

	while (STACKTABLE_FIRST_BYTES << 2 * levels <= stacks_limit / 4)
		levels++;
	return levels;
}

/* Where an index begins, or the room for so many ends. */
static inline uint64_t stacktable_index_offset(unsigned level)
{
	return TRACER_PAGE + STACKTABLE_FIRST_BYTES * ((((uint64_t)1 << 2 * level) - 1) / 3);
}

/*
 * The virtual memory that the program took from the system itself: ranges of pages -> who reserved,
 * committed, or mapped them.
 *
 * Neighbours of one allocation that agree in all that is known about them are one node. Each function
 * costs the logarithm of the number of nodes for each node it touches. One lock is held meanwhile, and
 * tracer_ranges.changing is odd while anything that can be seen from outside changes. A lock that is
 * never given back (its thread was ended inside) breaks the table: what comes after is counted in
 * tracer_area.dropped_ranges, and so is what finds no room. Where there is no room to cut a node in
 * two, its upper part is dropped: the table rather knows too little than says what is not so.
 *
 * Addresses are those of pages: start and end of a range are multiples of their size. A range is not
 * empty, and its allocation is known.
 */

/*
 * Memory that was reserved or mapped just now: start, end, allocation, kind and stacks of *range. Every
 * allocation that overlaps it must have gone without being seen, and is forgotten.
 */
void ranges_add(struct tracer_area *area, const struct tracer_range *range);

/* The same where nothing is known yet; what is known stays. For memory that was there before. */
void ranges_fill(struct tracer_area *area, const struct tracer_range *range);

/* True when all of [from, to) is known. */
bool ranges_is_known(struct tracer_area *area, uint64_t from, uint64_t to);

/* What is reserved in [from, to), and nothing else there, becomes of that kind, by this stack. */
void ranges_use(
	struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack);

/* What is of that kind in [from, to) is only reserved again, by whom it was; stack is who gives it up. */
void ranges_give_up(
	struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack);

/* What lies in [from, to) is of the allocation with this base from now on. */
void ranges_rebase(struct tracer_area *area, uint64_t from, uint64_t to, uint64_t base);

/* An allocation as far as it is known. */
struct ranges_extent {
	uint64_t base, end;
	uint32_t kind; /* of the first node at or behind the address that was asked for */
};

/* The allocation around an address; false when none is known. */
bool ranges_find(struct tracer_area *area, uint64_t addr, struct ranges_extent *extent);

struct ranges_taken {
	uint32_t nodes;
	uint32_t session; /* of the tables: with others it says nothing */
	uint64_t base, rest, rest_end; /* what lay behind, of the same allocation */
};

/*
 * Takes out what is in [from, to), before the system is asked to free it: then another thread that
 * gets the same memory finds nothing of it. It stays listed, with RANGE_TAKEN, for whoever looks from outside until
 * ranges_drop() frees it, or ranges_put_back() brings it back because the system refused; but where
 * something is known by then that stays. What lies behind it in the same allocation is one by itself
 * meanwhile and after ranges_drop(), as for the system. Returns false when nothing was known; else one
 * of the two has to follow. stack is who frees it.
 */
bool ranges_take(struct tracer_area *area, uint64_t from, uint64_t to, uint32_t stack,
	struct ranges_taken *taken);
void ranges_drop(struct tracer_area *area, const struct ranges_taken *taken);
void ranges_put_back(struct tracer_area *area, const struct ranges_taken *taken);

/* What is in [from, to) belongs to somebody else from now on: a heap that was built there, say. */
void ranges_forget(struct tracer_area *area, uint64_t from, uint64_t to);

/*
 * What identifies a module, as far as its mapped headers tell.
 */

#define MODULE_PATH_UNITS 32767 /* of the longest path that there is */
#define MODULE_PDB_BYTES 1024 /* a longer name is left out */

/* Room for any record. */
struct module_record {
	struct tracer_module module;
	uint8_t names[MODULE_PATH_UNITS * 2 + MODULE_PDB_BYTES];
};

struct module_image {
	uint64_t base;
	uint32_t bytes;
	const void *path; /* UTF-16 */
	uint16_t path_units;
	/* Copies bytes of the image; false when they are not there. Nothing else touches it. */
	bool (*read)(uint64_t addr, void *to, uint32_t len);
};

/* Makes the record of an image. What its headers do not tell, or tell wrongly, is 0 in it. */
void module_record_make(struct module_record *record, const struct module_image *image);

/*
 * Modules that were unloaded, in that order, so that frames in them keep their names.
 */

/*
 * Adds the unload of a module from [base, end), once it is certain that no new stack goes through it.
 * module is a complete record (its header, path and pdb behind one another; record_bytes in all);
 * it is copied, equal ones are kept once. Any thread.
 *
 * False when there is no room, and then for all that come later: the unload is counted as dropped, and
 * stacks through it will be told to be through an unknown module, never through a wrong one.
 * When only the record finds no room, the unload is added with TRACER_NO_MODULE.
 */
bool unloads_add(
	struct tracer_area *area, uint64_t base, uint64_t end, const struct tracer_module *module);

/* Whether a frame lies in one of the modules that were unloaded after so many other unloads. */
bool unloads_hit(
	const struct tracer_area *area, uint64_t from, const uint64_t *frames, uint32_t depth);

/*
 * Which blocks are recorded when not all are: one in so many bytes on the average, chosen so that
 * nothing about a program's own pattern counts. A block of s bytes is recorded with a probability of
 * exactly 1 - exp(-s / mean_bytes), whatever was recorded before; one of 0 bytes as one of 1.
 */

/*
 * A thread's word is 0 before its first block, then the bytes to the next one that is recorded + 1. A
 * distance that does not fit is gone in parts, and at the end of each but the last nothing is
 * recorded: SAMPLE_PART marks those. Since the rest of an exponential distance is distributed as a
 * fresh one, the parts need not know of each other.
 */
#define SAMPLE_PART ((uint32_t)1 << 31)

/* Decides at the end of a distance; bytes is not 0. For sample_crosses(). */
bool sample_at_end(uint32_t *word, uint64_t *random, uint64_t mean_bytes, uint64_t bytes);

/*
 * Whether to record a block that was just allocated.
 *
 * word: the thread's own, 0 before its first block. It fits into a TLS slot of either bitness.
 * random: one for all threads, begun with anything that differs between runs; used seldom.
 * mean_bytes: 1 to 2^40, always the same one for a word.
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

/* An exponentially distributed distance from 64 random bits, rounded down to whole bytes; what it is
 * rounded from is right to 1 part in a million of the mean. */
uint64_t sample_distance(uint64_t bits, uint64_t mean_bytes);

/* Words of each thread where it has no TLS slot. */
#define THREADWORDS_COUNT 4u

/* The words of the calling thread, 0 at its beginning. block: the address of the thread's own block (its TEB); thread: its
 * id. NULL: too many threads. */
uintptr_t *threadwords_find(uint64_t block, uint32_t thread);

/*
 * Which addresses may be in the table, so that the free of a block that was not recorded looks at one
 * byte. Counters that are full stay so. Any thread; an address is added before its block is put into
 * the table and removed after it was taken out.
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
