/* The single blocks of each row shown: their sizes, and whether they exist in both dumps. */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/read/stack_store.h"
#include "diff/query/view.h"

/* A block or, if it has no stack, blocks of one size. */
struct shown_block {
	uint64_t bytes, count;
	uint32_t shown; /* index in view->blocks */
	bool is_new;
};

struct block_run {
	struct view *view;
	uint32_t *shown; /* indexed by row of the comparison: index in view->blocks, or ROW_NONE */
	struct shown_block *blocks;
	size_t count, cap;
};

/* Returns the index of a block's row in view->blocks, or ROW_NONE. */
static uint32_t shown_of(const struct block_run *run, size_t dump, const struct listed_block *block)
{
	uint32_t row = block->cell == CELL_NONE ?
			       ROW_NONE :
			       run->view->comparison->cell_rows[dump][block->cell];

	return row == ROW_NONE ? ROW_NONE : run->shown[row];
}

static void add_blocks(struct block_run *run, size_t dump, bool is_new)
{
	const struct dump_sums *sums = &run->view->comparison->dumps[dump];

	for (size_t i = 0; i < sums->single.listed_count; i++) {
		uint32_t shown = shown_of(run, dump, &sums->single.listed[i]);

		if (shown == ROW_NONE)
			continue;
		array_grow((void **)&run->blocks, &run->cap, run->count, sizeof(*run->blocks));
		run->blocks[run->count++] = (struct shown_block){
			sums->single.listed[i].requested_bytes, 1, shown, is_new};
	}
}

/* Adds the groups of blocks without a stack, unless their exact sizes are unknown. */
static void add_groups(struct block_run *run, size_t dump, bool is_new)
{
	const struct dump_sums *sums = &run->view->comparison->dumps[dump];
	const uint32_t *row = run->view->comparison->cell_rows[dump];
	struct cell_walk walk = stack_totals_walk(sums);
	const struct stack_total *cell;

	for (; sums->has_stackless && (cell = stack_totals_next(&walk)); row++) {
		const uint32_t shown = *row == ROW_NONE ? ROW_NONE : run->shown[*row];
		uint64_t bytes;

		if (shown == ROW_NONE || cell->stack == STACK_NONE ||
			!stackless_size(sums_stack(sums, cell->stack), &bytes))
			continue;
		array_grow((void **)&run->blocks, &run->cap, run->count, sizeof(*run->blocks));
		run->blocks[run->count++] =
			(struct shown_block){bytes, cell->sums.block_count, shown, is_new};
	}
}

static int by_row_and_size(const void *a, const void *b)
{
	const struct shown_block *x = a, *y = b;

	if (x->shown != y->shown)
		return x->shown < y->shown ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static void count_sizes(struct block_run *run)
{
	struct size_change *sizes;
	size_t count = 0;

	if (!run->count)
		return;
	qsort(run->blocks, run->count, sizeof(*run->blocks), by_row_and_size);
	for (size_t i = 0; i < run->count; i++)
		count += !i || by_row_and_size(&run->blocks[i - 1], &run->blocks[i]);
	sizes = arena_alloc(&run->view->arena, count * sizeof(*sizes));
	for (size_t i = 0; i < run->count; i++) {
		const struct shown_block *block = &run->blocks[i];
		struct row_blocks *of = &run->view->blocks[block->shown];

		if (!of->sizes)
			of->sizes = sizes;
		if (!i || by_row_and_size(block - 1, block)) {
			of->size_count++;
			*sizes++ = (struct size_change){.bytes = block->bytes};
		}
		sizes[-1].new_count += block->is_new ? block->count : 0;
		sizes[-1].old_count += block->is_new ? 0 : block->count;
	}
}

static void count_block(struct block_totals *to, const struct listed_block *block)
{
	to->block_count++;
	to->requested_bytes += block->requested_bytes;
}

/* Counts each block as kept, new or freed. Each block of OLD is matched with at most one block of
 * NEW, even if a dump lists a block twice. */
static void find_again(struct block_run *run)
{
	const struct dump_sums *old = run->view->comparison->dumps, *now = old + 1;
	bool *is_found = xcalloc(old->single.listed_count + 1, sizeof(*is_found));
	struct u64map numbers;

	u64map_init(&numbers);
	u64map_reserve(&numbers, old->single.listed_count);
	for (size_t i = 0; i < old->single.listed_count; i++) {
		uint32_t number = (uint32_t)i;

		if (shown_of(run, 0, &old->single.listed[i]) != ROW_NONE)
			u64map_add(&numbers, old->single.listed[i].addr, &number);
	}
	for (size_t i = 0; i < now->single.listed_count; i++) {
		const struct listed_block *block = &now->single.listed[i];
		uint32_t shown = shown_of(run, 1, block), number;
		struct row_blocks *of;

		if (shown == ROW_NONE)
			continue;
		of = &run->view->blocks[shown];
		if (!u64map_find(&numbers, block->addr, &number) || is_found[number] ||
			shown_of(run, 0, &old->single.listed[number]) != shown ||
			old->single.listed[number].requested_bytes != block->requested_bytes) {
			count_block(&of->came, block);
			continue;
		}
		is_found[number] = true;
		count_block(&of->kept, block);
	}
	for (size_t i = 0; i < old->single.listed_count; i++) {
		uint32_t shown = is_found[i] ? ROW_NONE : shown_of(run, 0, &old->single.listed[i]);

		if (shown != ROW_NONE)
			count_block(&run->view->blocks[shown].gone, &old->single.listed[i]);
	}
	u64map_release(&numbers);
	free(is_found);
}

void view_blocks(struct view *view, bool has_sizes, bool has_age)
{
	const struct comparison *comparison = view->comparison;
	struct block_run run = {
		.view = view, .shown = xmalloc((comparison->row_count + 1) * sizeof(*run.shown))};

	view->has_sizes = has_sizes;
	view->has_age = has_age;
	view->blocks = xcalloc(view->shown_count + 1, sizeof(*view->blocks));
	memset(run.shown, 0xff, comparison->row_count * sizeof(*run.shown)); /* ROW_NONE */
	for (size_t i = 0; i < view->shown_count; i++)
		run.shown[view->rows[i]] = (uint32_t)i;
	if (has_sizes) {
		for (size_t i = 0; i < comparison->dump_count; i++) {
			add_blocks(&run, i, i + 1 == comparison->dump_count);
			add_groups(&run, i, i + 1 == comparison->dump_count);
		}
		count_sizes(&run);
	}
	if (has_age)
		find_again(&run);
	free(run.blocks);
	free(run.shown);
}
