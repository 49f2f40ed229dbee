/*
 * What several threads that read one dump share: its stacks, and the sums of each in each heap.
 *
 * Threads count in tallies of their own (diff/read/tally.h) and come here for what is new to them. Every
 * function but the first two takes the pool's lock itself.
 */
#ifndef DIFF_POOL_H
#define DIFF_POOL_H

#include "core/arena.h"
#include "core/dump.h"
#include "core/table.h"
#include "core/thread.h"
#include "diff/read/sum.h"

#define HEAP_NONE UINT32_MAX /* no heading was seen: heap 0 */

/* A stack's lines as they stood in the dump, with their line ends. */
struct pool_text {
	const char *text; /* NULL: none was kept */
	uint32_t len, line_count;
};

struct pool {
	struct thread_lock *lock;
	struct sums *sums; /* stacks, cells and heaps are filled */
	size_t cell_cap, heap_cap;
	struct table heaps; /* addresses to their numbers */
	uint64_t *slots; /* of an open table: 0, or the number of a cell and 1 more */
	size_t slot_count; /* a power of two, or 0 */
	struct pool_text *texts; /* by stack */
	size_t text_count, text_cap;
	struct arena arena; /* of texts */
};

/* sums must outlive the pool. 0 or -ERR_NOMEM; release it also then. */
int pool_init(struct pool *pool, struct sums *sums);
void pool_release(struct pool *pool);

/* The number of a heap: 0 or -ERR_NOMEM. */
int pool_heap(struct pool *pool, uint64_t addr, uint32_t *index);

/* Adds to the sums of cells, or takes away what was added before. 0 or -ERR_NOMEM. */
int pool_count(struct pool *pool, const struct cell *more, size_t count, bool take_away);

/* One entry of a dump. */
struct pool_entry {
	struct stack stack;
	size_t id_len;
	struct census sums;
};

/* Counts entries of one heap, or takes away what was counted before: how many, from the first one on;
 * fewer than count when memory is out. */
size_t pool_entries(struct pool *pool, const struct pool_entry *entries, size_t count,
	uint32_t heap, bool take_away);

/* As stackset_put(). When text is given it comes back as what is kept for that stack, for all
 * threads and as long as the pool lives. */
int pool_stack(struct pool *pool, const struct stack *wanted, size_t id_len, uint32_t *index,
	struct pool_text *text);

#endif
