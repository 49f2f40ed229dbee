#include "snapshot/doctor/doctor.h"

#include <stdlib.h>

const char *doctor_heap_name(enum doctor_heap heap)
{
	static const char *const names[DOCTOR_HEAPS] = {
		[DOCTOR_PROCESS_HEAP] = "process heap",
		[DOCTOR_GROWABLE] = "growable",
		[DOCTOR_FIXED] = "fixed maximum",
		[DOCTOR_UNLOCKED] = "no-serialize",
		[DOCTOR_SEGMENT] = "segment heap",
	};

	return names[heap];
}

const char *doctor_group_name(enum doctor_group group)
{
	static const char *const names[DOCTOR_GROUPS] = {
		[DOCTOR_SMALL] = "blocks of 0 to 1024 bytes",
		[DOCTOR_MIDDLE] = "blocks to 16 KiB",
		[DOCTOR_BACK_END] = "blocks to 256 KiB",
		[DOCTOR_BIG] = "big blocks",
		[DOCTOR_RESIZED] = "reallocated blocks",
	};

	return names[group];
}

bool doctor_truth_add(struct doctor_truth *truth, const struct doctor_block *block)
{
	if (truth->block_count >= DOCTOR_BLOCKS_MAX)
		return false;
	truth->blocks[truth->block_count++] = *block;
	return true;
}

/* By address; of several at one address the live one first. */
static int compare(const void *a, const void *b)
{
	const struct doctor_block *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (int)x->is_freed - (int)y->is_freed;
}

void doctor_truth_settle(struct doctor_truth *truth)
{
	uint32_t kept = 0;

	qsort(truth->blocks, truth->block_count, sizeof(*truth->blocks), compare);
	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (kept && block->is_freed && truth->blocks[kept - 1].addr == block->addr)
			continue;
		truth->blocks[kept++] = *block;
	}
	truth->block_count = kept;
}

static bool is_range(const struct doctor_range *range)
{
	return range->from < range->to;
}

static bool are_blocks_sound(const struct doctor_truth *truth)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (block->addr <= last || block->heap >= DOCTOR_HEAPS ||
			block->group >= DOCTOR_GROUPS || block->site >= DOCTOR_SITES ||
			!truth->heaps[block->heap])
			return false;
		last = block->addr;
	}
	return true;
}

bool doctor_truth_is_sound(const struct doctor_truth *truth)
{
	if (truth->magic != DOCTOR_MAGIC || !truth->block_count ||
		truth->block_count > DOCTOR_BLOCKS_MAX || !is_range(&truth->image) ||
		!is_range(&truth->outer))
		return false;
	for (size_t i = 0; i <= DOCTOR_SITES; i++) {
		if (!is_range(&truth->sites[i]))
			return false;
	}
	return are_blocks_sound(truth);
}

size_t doctor_truth_from(const struct doctor_truth *truth, uint64_t addr)
{
	size_t low = 0, high = truth->block_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (truth->blocks[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct doctor_block *doctor_truth_find(const struct doctor_truth *truth, uint64_t addr)
{
	size_t i = doctor_truth_from(truth, addr);

	return i < truth->block_count && truth->blocks[i].addr == addr ? &truth->blocks[i] : NULL;
}
