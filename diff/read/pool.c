#include "diff/read/pool.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

#define TEXTS_BYTES_MAX ((size_t)32 << 20) /* further stacks are read anew each time */
#define MIX UINT64_C(0x9e3779b97f4a7c15)

int pool_init(struct pool *pool, struct sums *sums)
{
	*pool = (struct pool){.sums = sums};
	arena_init(&pool->arena);
	table_init(&pool->heaps);
	pool->lock = thread_lock_new();
	return pool->lock ? 0 : -ERR_NOMEM;
}

void pool_release(struct pool *pool)
{
	thread_lock_free(pool->lock);
	free(pool->slots);
	free(pool->texts);
	table_release(&pool->heaps);
	arena_release(&pool->arena);
	*pool = (struct pool){0};
}

static int heap_put(struct pool *pool, uint64_t addr, uint32_t *index)
{
	struct sums *sums = pool->sums;
	const uint64_t *known = table_find(&pool->heaps, &addr, sizeof(addr));

	if (known) {
		*index = (uint32_t)*known;
		return 0;
	}
	if (sums->heap_count >= INT32_MAX ||
		array_grow(
			(void **)&sums->heaps, &pool->heap_cap, sums->heap_count, sizeof(addr)) ||
		table_add(&pool->heaps, &addr, sizeof(addr), sums->heap_count))
		return -ERR_NOMEM;
	*index = (uint32_t)sums->heap_count;
	sums->heaps[sums->heap_count++] = addr;
	return 0;
}

int pool_heap(struct pool *pool, uint64_t addr, uint32_t *index)
{
	int rc;

	thread_lock_take(pool->lock);
	rc = heap_put(pool, addr, index);
	thread_lock_leave(pool->lock);
	return rc;
}

/* Where the cell is, or where it would be. */
static uint64_t *slot_of(struct pool *pool, const struct cell *wanted)
{
	uint64_t key = wanted->stack * MIX ^ ((uint64_t)wanted->heap << 1 | wanted->is_bare);
	size_t mask = pool->slot_count - 1, at = (size_t)((key ^ key >> 32) * MIX >> 32) & mask;

	for (; pool->slots[at]; at = (at + 1) & mask) {
		const struct cell *cell = &pool->sums->cells[pool->slots[at] - 1];

		if (cell->stack == wanted->stack && cell->heap == wanted->heap &&
			cell->is_bare == wanted->is_bare)
			break;
	}
	return &pool->slots[at];
}

static int slots_grow(struct pool *pool)
{
	size_t count = pool->slot_count ? 2 * pool->slot_count : 1024;
	uint64_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ERR_NOMEM;
	free(pool->slots);
	pool->slots = slots;
	pool->slot_count = count;
	for (size_t i = 0; i < pool->sums->cell_count; i++)
		*slot_of(pool, &pool->sums->cells[i]) = i + 1;
	return 0;
}

/* The cell's sums, or NULL: out of memory. */
static struct census *cell_sums(struct pool *pool, const struct cell *wanted)
{
	struct sums *sums = pool->sums;
	uint64_t *slot;

	if (2 * sums->cell_count >= pool->slot_count && slots_grow(pool))
		return NULL;
	slot = slot_of(pool, wanted);
	if (!*slot) {
		if (array_grow((void **)&sums->cells, &pool->cell_cap, sums->cell_count,
			    sizeof(*wanted)))
			return NULL;
		sums->cells[sums->cell_count] = (struct cell){
			.stack = wanted->stack, .heap = wanted->heap, .is_bare = wanted->is_bare};
		*slot = ++sums->cell_count;
	}
	return &sums->cells[*slot - 1].sums;
}

static int count_cell(struct pool *pool, const struct cell *more, bool take_away)
{
	uint64_t sign = take_away ? UINT64_MAX : 1; /* modulo 2^64 */
	struct cell cell = *more;
	struct census *to;

	if (cell.heap == HEAP_NONE && heap_put(pool, 0, &cell.heap))
		return -ERR_NOMEM;
	to = cell_sums(pool, &cell);
	if (!to)
		return -ERR_NOMEM;
	to->block_count += sign * cell.sums.block_count;
	to->requested_bytes += sign * cell.sums.requested_bytes;
	to->overhead_bytes += sign * cell.sums.overhead_bytes;
	return 0;
}

int pool_count(struct pool *pool, const struct cell *more, size_t count, bool take_away)
{
	int rc = 0;

	thread_lock_take(pool->lock);
	for (size_t i = 0; !rc && i < count; i++)
		rc = count_cell(pool, &more[i], take_away);
	thread_lock_leave(pool->lock);
	return rc;
}

static int count_entry(
	struct pool *pool, const struct pool_entry *entry, uint32_t heap, bool take_away)
{
	struct cell cell = {.heap = heap, .is_bare = !entry->stack.frames, .sums = entry->sums};
	int rc = stackset_put(&pool->sums->stacks, &entry->stack, entry->id_len, &cell.stack);

	return rc ? rc : count_cell(pool, &cell, take_away);
}

size_t pool_entries(struct pool *pool, const struct pool_entry *entries, size_t count,
	uint32_t heap, bool take_away)
{
	size_t done = 0;

	thread_lock_take(pool->lock);
	while (done < count && !count_entry(pool, &entries[done], heap, take_away))
		done++;
	thread_lock_leave(pool->lock);
	return done;
}

/* What is kept for a stack: the first text that came with it, as long as there is room. */
static int text_put(struct pool *pool, uint32_t stack, struct pool_text *text)
{
	struct pool_text *kept;

	while (stack >= pool->text_count) {
		if (array_grow((void **)&pool->texts, &pool->text_cap, pool->text_count,
			    sizeof(*kept)))
			return -ERR_NOMEM;
		pool->texts[pool->text_count++] = (struct pool_text){0};
	}
	kept = &pool->texts[stack];
	if (!kept->text && pool->arena.used_bytes < TEXTS_BYTES_MAX) {
		char *copy = arena_text(&pool->arena, text->text, text->len);

		if (!copy)
			return -ERR_NOMEM;
		*kept = *text;
		kept->text = copy;
	}
	*text = *kept;
	return 0;
}

int pool_stack(struct pool *pool, const struct stack *wanted, size_t id_len, uint32_t *index,
	struct pool_text *text)
{
	int rc;

	thread_lock_take(pool->lock);
	rc = stackset_put(&pool->sums->stacks, wanted, id_len, index);
	if (!rc && text)
		rc = text_put(pool, *index, text);
	thread_lock_leave(pool->lock);
	return rc;
}
