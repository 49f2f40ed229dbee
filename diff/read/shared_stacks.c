/* Stacks and cells shared by the threads that read a dump. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "diff/read/count.h"

/* maximum size of all cached texts; a stack without a cached text is parsed each time it occurs */
#define TEXTS_BYTES_MAX ((size_t)32 << 20)
#define MIX UINT64_C(0x9e3779b97f4a7c15)

void shared_stacks_init(struct shared_stacks *pool, struct dump_sums *sums)
{
	*pool = (struct shared_stacks){.sums = sums, .lock = thread_lock_new()};
	arena_init(&pool->arena);
	for (size_t i = 0; i < BLOCK_REACHES; i++)
		u64map_init(&pool->heaps[i]);
	hash_index_init(&pool->cells);
}

void shared_stacks_release(struct shared_stacks *pool)
{
	thread_lock_free(pool->lock);
	hash_index_release(&pool->cells);
	free(pool->first_cells);
	free(pool->texts);
	for (size_t i = 0; i < BLOCK_REACHES; i++)
		u64map_release(&pool->heaps[i]);
	arena_release(&pool->arena);
	*pool = (struct shared_stacks){0};
}

static uint32_t heap_number(struct shared_stacks *pool, uint64_t addr, enum block_reach reach)
{
	struct dump_sums *sums = pool->sums;
	uint32_t heap = (uint32_t)sums->heap_count;

	if (sums->heap_count >= HEAP_NONE)
		memory_out();
	if (u64map_add(&pool->heaps[reach], addr, &heap)) {
		array_grow((void **)&sums->heaps, &pool->heap_cap, sums->heap_count, sizeof(addr));
		array_grow((void **)&sums->reaches, &pool->reach_cap, sums->heap_count, 1);
		sums->reaches[sums->heap_count] = (unsigned char)reach;
		sums->heaps[sums->heap_count++] = addr;
	}
	return heap;
}

uint32_t shared_stacks_heap(struct shared_stacks *pool, uint64_t addr, enum block_reach reach)
{
	uint32_t heap;

	thread_lock_acquire(pool->lock);
	heap = heap_number(pool, addr, reach);
	thread_lock_leave(pool->lock);
	return heap;
}

static uint32_t cell_add(struct shared_stacks *pool, const struct stack_total *wanted)
{
	struct dump_sums *sums = pool->sums;

	array_grow((void **)&sums->cells, &pool->cell_cap, sums->cell_count, sizeof(*wanted));
	sums->cells[sums->cell_count] = (struct stack_total){
		.stack = wanted->stack, .heap = wanted->heap, .is_bare = wanted->is_bare};
	return (uint32_t)sums->cell_count++;
}

/* Returns true if both cells have the same key. Ignores their sums. */
static bool is_cell(const struct stack_total *cell, const struct stack_total *wanted)
{
	return cell->stack == wanted->stack && cell->heap == wanted->heap &&
	       cell->is_bare == wanted->is_bare;
}

/* Returns the number of a cell that is not the first cell of its stack. */
static uint32_t further_cell(struct shared_stacks *pool, const struct stack_total *wanted)
{
	uint64_t key = wanted->stack * MIX ^ ((uint64_t)wanted->heap << 1 | wanted->is_bare);
	uint32_t hash = (uint32_t)((key ^ key >> 32) * MIX >> 32), number;
	struct hash_probe probe = hash_index_probe(&pool->cells, hash);

	while ((number = hash_index_next(&pool->cells, &probe)) != INDEX_NONE) {
		if (is_cell(&pool->sums->cells[number], wanted))
			return number;
	}
	number = cell_add(pool, wanted);
	hash_index_add(&pool->cells, hash, number);
	return number;
}

/* Returns the number of a stack's cell in a heap. */
static uint32_t cell_number(struct shared_stacks *pool, const struct stack_total *wanted)
{
	size_t at = 2 * (size_t)wanted->stack + wanted->is_bare;

	if (wanted->stack == STACK_NONE)
		return further_cell(pool, wanted);
	while (at >= pool->first_count) {
		array_grow((void **)&pool->first_cells, &pool->first_cap, pool->first_count,
			sizeof(*pool->first_cells));
		pool->first_cells[pool->first_count++] = CELL_NONE;
	}
	if (pool->first_cells[at] == CELL_NONE)
		pool->first_cells[at] = cell_add(pool, wanted);
	return is_cell(&pool->sums->cells[pool->first_cells[at]], wanted) ?
		       pool->first_cells[at] :
		       further_cell(pool, wanted);
}

static void count_cell(struct shared_stacks *pool, struct stack_total cell, bool take_away)
{
	uint64_t sign = take_away ? UINT64_MAX : 1; /* UINT64_MAX is -1 modulo 2^64 */
	struct block_totals *to;
	uint32_t number;

	if (cell.heap == HEAP_NONE)
		cell.heap = heap_number(pool, 0, BLOCK_HELD);
	number = cell_number(pool, &cell);
	to = &pool->sums->cells[number].sums;
	to->block_count += sign * cell.sums.block_count;
	to->requested_bytes += sign * cell.sums.requested_bytes;
	to->overhead_bytes += sign * cell.sums.overhead_bytes;
}

void shared_stacks_count(
	struct shared_stacks *pool, const struct stack_total *more, size_t count, bool take_away)
{
	thread_lock_acquire(pool->lock);
	for (size_t i = 0; i < count; i++)
		count_cell(pool, more[i], take_away);
	thread_lock_leave(pool->lock);
}

/* Returns the cached text of a stack. If the stack has none, caches `text`, unless the cache has
 * reached its limit; the result is then empty. */
static struct pool_text known_text(
	struct shared_stacks *pool, uint32_t stack, const struct pool_text *text)
{
	struct pool_text *known;

	while (stack >= pool->text_count) {
		array_grow((void **)&pool->texts, &pool->text_cap, pool->text_count, sizeof(*text));
		pool->texts[pool->text_count++] = (struct pool_text){0};
	}
	known = &pool->texts[stack];
	if (!known->text && pool->arena.used_bytes < TEXTS_BYTES_MAX) {
		*known = *text;
		known->text = arena_text(&pool->arena, text->text, text->len);
	}
	return *known;
}

#define PREFETCH_AHEAD 8 /* number of entries between two steps of stackset_prefetch() */
#define PREFETCH_STEPS 3

/* Finds or adds the stacks of entries. */
static void add_stacks(struct stackset *set, struct pool_entry *entries, size_t count)
{
	for (size_t i = 0; i < count + PREFETCH_STEPS * PREFETCH_AHEAD; i++) {
		size_t at = i;

		for (unsigned step = 0; step < PREFETCH_STEPS; step++, at -= PREFETCH_AHEAD) {
			if (at < count) /* false if the subtraction wrapped around below 0 */
				stackset_prefetch(set, entries[at].hash, step);
		}
		if (at < count)
			entries[at].number = stackset_add_hashed(
				set, entries[at].hash, &entries[at].stack, entries[at].id_len);
	}
}

/* Prefetches the cell of an entry's stack. The first call prefetches the cell's number, a later
 * call with `is_near` the cell itself. Must be inline, because gcc would remove a call without
 * effect. */
static inline __attribute__((always_inline)) void cell_prefetch(
	const struct shared_stacks *pool, const struct pool_entry *entry, bool is_near)
{
	size_t at = 2 * (size_t)entry->number + !entry->stack.frames;

	if (at >= pool->first_count)
		return;
	if (!is_near)
		__builtin_prefetch(&pool->first_cells[at]);
	else if (pool->first_cells[at] != CELL_NONE)
		__builtin_prefetch(&pool->sums->cells[pool->first_cells[at]].sums);
}

void shared_stacks_entries(struct shared_stacks *pool, struct pool_entry *entries, size_t count,
	uint32_t heap, bool take_away)
{
	struct stackset *set = &pool->sums->stacks;

	for (size_t i = 0; i < count; i++)
		entries[i].hash = stackset_hash(set, entries[i].stack.id, entries[i].id_len);
	thread_lock_acquire(pool->lock);
	add_stacks(set, entries, count);
	for (struct pool_entry *entry = entries; entry < entries + count; entry++) {
		struct stack_total cell = {.stack = entry->number,
			.heap = heap,
			.is_bare = !entry->stack.frames,
			.sums = entry->sums};
		size_t cell_count = pool->sums->cell_count;

		if (entries + count - entry > PREFETCH_AHEAD)
			cell_prefetch(pool, entry + PREFETCH_AHEAD, true);
		if (entries + count - entry > 2 * PREFETCH_AHEAD)
			cell_prefetch(pool, entry + 2 * PREFETCH_AHEAD, false);
		count_cell(pool, cell, take_away);
		/* Cache a text only when its stack occurs again. */
		if (entry->text.text && pool->sums->cell_count > cell_count)
			entry->text = (struct pool_text){0};
		else if (entry->text.text)
			entry->text = known_text(pool, entry->number, &entry->text);
	}
	thread_lock_leave(pool->lock);
}
