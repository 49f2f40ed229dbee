/* Joins the heaps of two dumps by address. */
#include "diff/query/heap_view.h"

#include <stdlib.h>

#include "core/base/hash.h"

static void add_memory(struct heap_memory *to, const struct heap_memory *more)
{
	to->committed_bytes += more->committed_bytes;
	to->reserved_bytes += more->reserved_bytes;
	block_totals_add(&to->blocks, &more->blocks);
	to->space.is_known |= more->space.is_known;
	if (to->space.free_run_bytes < more->space.free_run_bytes)
		to->space.free_run_bytes = more->space.free_run_bytes;
	block_totals_add(&to->space.lfh, &more->space.lfh);
	block_totals_add(&to->space.vs, &more->space.vs);
}

static uint64_t change_of(const struct heap_change *row)
{
	return row->now.committed_bytes > row->old.committed_bytes ?
		       row->now.committed_bytes - row->old.committed_bytes :
		       row->old.committed_bytes - row->now.committed_bytes;
}

static int by_change(const void *a, const void *b)
{
	const struct heap_change *x = a, *y = b;

	if (change_of(x) != change_of(y))
		return change_of(x) < change_of(y) ? 1 : -1;
	if (x->now.committed_bytes != y->now.committed_bytes)
		return x->now.committed_bytes < y->now.committed_bytes ? 1 : -1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Adds the heaps of one dump. `numbers` maps addresses to rows. */
static void add_dump(struct heap_view *heaps, const struct comparison *comparison,
	size_t number_of_dump, struct u64map *numbers)
{
	const struct dump_sums *dump = &comparison->dumps[number_of_dump];
	const bool is_now = number_of_dump + 1 == comparison->dump_count;

	for (size_t i = 0; i < dump->heap_fact_count; i++) {
		const struct heap_fact *fact = &dump->heap_facts[i];
		uint32_t number = (uint32_t)heaps->count;
		struct heap_change *row;

		if (heap_name(fact->addr))
			continue;
		if (u64map_add(numbers, fact->addr, &number))
			heaps->rows[heaps->count++] =
				(struct heap_change){.addr = fact->addr, .kind = fact->kind};
		row = &heaps->rows[number];
		add_memory(is_now ? &row->now : &row->old, &fact->memory);
		*(is_now ? &row->is_now : &row->is_old) = true;
		if (!fact->creator_depth)
			continue;
		row->creator =
			(struct stack){.frames = fact->creator, .frame_count = fact->creator_depth};
		row->creator_dump = number_of_dump;
	}
}

void heap_view_make(
	struct heap_view *heaps, const struct comparison *comparison, struct arena *arena)
{
	const struct dump_sums *first = comparison->dumps,
			       *last = first ? first + comparison->dump_count - 1 : NULL;
	struct u64map numbers;

	*heaps = (struct heap_view){0};
	if (!first || comparison->is_sum)
		return;
	heaps->is_single = first == last;
	if (!first->heap_fact_count && !last->heap_fact_count)
		return;
	heaps->rows = arena_alloc(
		arena, (first->heap_fact_count + last->heap_fact_count + 1) * sizeof(*heaps->rows));
	u64map_init(&numbers);
	if (!heaps->is_single)
		add_dump(heaps, comparison, 0, &numbers);
	add_dump(heaps, comparison, comparison->dump_count - 1, &numbers);
	u64map_release(&numbers);
	if (heaps->count)
		qsort(heaps->rows, heaps->count, sizeof(*heaps->rows), by_change);
	for (size_t i = 0; i < heaps->count; i++) {
		add_memory(&heaps->total.old, &heaps->rows[i].old);
		add_memory(&heaps->total.now, &heaps->rows[i].now);
	}
}
