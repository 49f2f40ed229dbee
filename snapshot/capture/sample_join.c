/* Estimates from the blocks of a sampling tracer. Each group of equal blocks becomes a sum, scaled
 * by the weight of its size. */
#include "snapshot/capture/capture_parts.h"

#include <stdlib.h>

#include "core/base/memory.h"

/* Up to this limit, a double can represent every count exactly. */
#define COUNT_MAX ((uint64_t)1 << 53)

static int order_of(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Sorts primarily by size, so that a rounding error is compensated in blocks of nearly the same
 * size. */
static int by_size(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	int order = order_of(x->requested_bytes, y->requested_bytes);

	if (!order)
		order = order_of(x->heap, y->heap);
	if (!order)
		order = order_of(x->stack, y->stack);
	return order ? order : order_of(x->overhead_bytes, y->overhead_bytes);
}

/* Sorts in the order of the dump: by heap and stack, then by size. */
static int by_heap(const void *a, const void *b)
{
	const struct block_sum *x = a, *y = b;
	int order = order_of(x->heap, y->heap);

	if (!order)
		order = order_of(x->stack, y->stack);
	if (!order)
		order = order_of(
			x->requested_bytes / x->block_count, y->requested_bytes / y->block_count);
	return order ? order :
		       order_of(x->overhead_bytes / x->block_count,
			       y->overhead_bytes / y->block_count);
}

static void add_sum(struct snapshot *snapshot, const struct block *block, uint64_t count)
{
	const struct block_totals all = {
		count, count * block->requested_bytes, count * block->overhead_bytes};

	if (block->stack == STACK_NONE)
		block_totals_add(&snapshot->heaps[block->heap].stackless, &all);
	else
		*snapshot_add_sum(snapshot) =
			(struct block_sum){all.block_count, all.requested_bytes, all.overhead_bytes,
				block->heap, block->stack, BLOCK_HELD};
}

/*
 * Counts must be whole numbers. A rounding error, at most a half, is carried over to the next
 * count. So the sum of all counts is off by at most a half, and the sum of bytes by less than about
 * one largest block.
 */
void sample_add_sums(struct snapshot *snapshot, uint64_t sample_bytes)
{
	struct block *recorded = snapshot->blocks;
	size_t count = snapshot->block_count;
	double owed = 0;

	if (count)
		qsort(recorded, count, sizeof(*recorded), by_size);
	for (size_t from = 0, to; from < count; from = to) {
		const struct block *block = &recorded[from];
		uint64_t whole;

		for (to = from + 1; to < count && !by_size(block, &recorded[to]);)
			to++;
		owed += (double)(to - from) *
			block_sample_weight(block->requested_bytes, sample_bytes);
		/* A group contains at least one block, so at least a half is still to be
		 * counted. */
		whole = owed < COUNT_MAX ? (uint64_t)(owed + 0.5) : COUNT_MAX;
		whole += !whole;
		owed -= (double)whole;
		add_sum(snapshot, block, whole);
	}
	snapshot->block_count = 0;
	if (snapshot->sum_count)
		qsort(snapshot->sums, snapshot->sum_count, sizeof(*snapshot->sums), by_heap);
}
