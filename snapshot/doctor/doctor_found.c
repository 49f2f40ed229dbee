#include "snapshot/doctor/doctor_found.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct doctor_found_block *x = a, *y = b;

	return x->addr == y->addr ? 0 : x->addr < y->addr ? -1 : 1;
}

void doctor_found_sort(struct doctor_found *found)
{
	if (found->block_count)
		qsort(found->blocks, found->block_count, sizeof(*found->blocks), compare);
}

static int make(
	struct doctor_found *found, size_t count, const struct heap *heaps, size_t heap_count)
{
	struct doctor_found_block *blocks = calloc(count ? count : 1, sizeof(*blocks));

	if (!blocks)
		return -ERR_NOMEM;
	*found = (struct doctor_found){
		.blocks = blocks, .block_count = count, .heaps = heaps, .heap_count = heap_count};
	return 0;
}

int doctor_found_by_walk(struct doctor_found *found, const struct walk *walk)
{
	if (make(found, walk->block_count, walk->heaps, walk->heap_count))
		return -ERR_NOMEM;
	for (size_t i = 0; i < walk->block_count; i++) {
		const struct walked_block *block = &walk->blocks[i];

		found->blocks[i] = (struct doctor_found_block){.addr = block->addr,
			.requested_bytes = block->requested_bytes,
			.overhead_bytes = block->overhead_bytes,
			.heap = walk->heaps[block->heap].addr};
	}
	doctor_found_sort(found);
	return 0;
}

int doctor_found_by_snapshot(struct doctor_found *found, const struct snapshot *snapshot)
{
	if (make(found, snapshot->block_count, snapshot->heaps, snapshot->heap_count))
		return -ERR_NOMEM;
	found->has_stacks = true;
	for (size_t i = 0; i < snapshot->block_count; i++) {
		const struct block *block = &snapshot->blocks[i];
		const struct stack *stack = &snapshot->stacks.stacks[block->stack];

		found->blocks[i] = (struct doctor_found_block){.addr = block->addr,
			.requested_bytes = block->requested_bytes,
			.overhead_bytes = block->overhead_bytes,
			.heap = snapshot->heaps[block->heap].addr,
			.frames = stack->frames,
			.frame_count = stack->frame_count};
	}
	doctor_found_sort(found);
	return 0;
}

void doctor_found_release(struct doctor_found *found)
{
	free(found->blocks);
	*found = (struct doctor_found){0};
}

const struct doctor_found_block *doctor_found_at(const struct doctor_found *found, uint64_t addr)
{
	size_t low = 0, high = found->block_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (found->blocks[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < found->block_count && found->blocks[low].addr == addr ? &found->blocks[low] :
									     NULL;
}

const struct heap *doctor_found_heap(const struct doctor_found *found, uint64_t addr)
{
	for (size_t i = 0; i < found->heap_count; i++) {
		if (found->heaps[i].addr == addr)
			return &found->heaps[i];
	}
	return NULL;
}
