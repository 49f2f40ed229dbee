/* The blocks that the doctor's child allocates, and functions that maintain the truth. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/doctor/doctor.h"

const char *const doctor_heap_names[DOCTOR_HEAPS] = {
	[DOCTOR_PROCESS_HEAP] = "process heap",
	[DOCTOR_GROWABLE] = "growable",
	[DOCTOR_FIXED] = "fixed maximum",
	[DOCTOR_UNLOCKED] = "no-serialize",
	[DOCTOR_SEGMENT] = "segment heap",
};

const char *const doctor_group_names[DOCTOR_GROUPS] = {
	[DOCTOR_SMALL] = "blocks of 0 to 1024 bytes",
	[DOCTOR_MIDDLE] = "blocks to 16 KiB",
	[DOCTOR_BACK_END] = "blocks to 256 KiB",
	[DOCTOR_BIG] = "big blocks",
	[DOCTOR_RESIZED] = "reallocated blocks",
};

bool doctor_truth_add(struct doctor_truth *truth, const struct doctor_block *block)
{
	if (truth->block_count >= DOCTOR_BLOCKS_MAX)
		return false;
	truth->blocks[truth->block_count++] = *block;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct doctor_block *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (int)x->is_freed - (int)y->is_freed;
}

void doctor_truth_sort(struct doctor_truth *truth)
{
	uint64_t last = 0;
	uint32_t kept = 0;

	qsort(truth->blocks, truth->block_count, sizeof(*truth->blocks), compare);
	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (!block->addr || (block->is_freed && block->addr == last))
			continue;
		last = block->addr;
		truth->blocks[kept++] = *block;
	}
	truth->block_count = kept;
}

bool doctor_truth_is_sound(const struct doctor_truth *truth)
{
	uint64_t last = 0;

	if (!truth->block_count || truth->block_count > DOCTOR_BLOCKS_MAX ||
		truth->listed_count > DOCTOR_LISTED_MAX)
		return false;
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

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/*
 * Number of allocations per size. Windows activates a size class of its low fragmentation heap
 * after about 18 allocations of that class. So sizes with which this heap is tested are allocated
 * more often. Blocks of a megabyte are tested only once per kind of heap, because all of the
 * child's memory is also written to a minidump.
 */
static const struct repeats {
	unsigned small, middle, back_end, big;
	uint32_t big_max, resized_max; /* larger blocks are not planned */
} repeats[DOCTOR_HEAPS] = {
	[DOCTOR_PROCESS_HEAP] = {24, 21, 4, 2, 0x80000, 200000},
	[DOCTOR_GROWABLE] = {24, 21, 4, 2, UINT32_MAX, UINT32_MAX},
	[DOCTOR_FIXED] = {6, 3, 3, 0, 0, 200000},
	[DOCTOR_UNLOCKED] = {6, 3, 3, 2, 0x80000, 200000},
	[DOCTOR_SEGMENT] = {24, 21, 4, 2, UINT32_MAX, UINT32_MAX},
};

static const uint32_t middle[] = {1025, 1280, 1536, 2047, 2048, 3072, 4095, 4096, 5000, 6144, 8191,
	8192, 10000, 12288, 14336, 16368, 16384};

static const uint32_t back_end[] = {
	16385, 20000, 32768, 65520, 65536, 70001, 131071, 131072, 200000, 262144};

/* Sizes near the limits above which a block has memory of its own: 508 KiB in segment heaps and x86
 * NT heaps, 1020 KiB in x64 NT heaps, 0xfeff0 in Wine. */
static const uint32_t big[] = {0x7eff0, 0x7f000, 0x7f001, 0x80000, 0xfefd0, 0xfefe8, 0xfeff0,
	0xfeff8, 0xff000, 0xff001, 0x234567};

static const struct {
	uint32_t from, to;
} resized[] = {{16, 24}, {24, 1}, {100, 1000}, {1000, 100}, {1024, 70000}, {70000, 300},
	{150000, 160001}, {50000, 1500000}, {1500000, 2500000}, {2000000, 4000}};

static void add(struct doctor_truth *truth, struct doctor_block block)
{
	block.site = (uint8_t)(truth->block_count % DOCTOR_SITES);
	doctor_truth_add(truth, &block);
}

/* Adds blocks of one size class. The last two are late. Every third of the others is freed. */
static void add_class(struct doctor_truth *truth, struct doctor_block block, uint64_t bytes,
	unsigned times, unsigned vary)
{
	for (unsigned k = 0; k < times; k++) {
		block.requested_bytes = bytes ? bytes - k % vary : 0;
		block.is_late = times > 4 && k + 2 >= times;
		block.is_freed = !block.is_late && k % 3 == 1;
		add(truth, block);
	}
}

static void add_list(struct doctor_truth *truth, int heap, enum doctor_group group,
	const uint32_t *sizes, size_t count, unsigned times, uint32_t max)
{
	const struct doctor_block block = {.heap = (uint8_t)heap, .group = (uint8_t)group};

	for (size_t i = 0; i < count; i++) {
		if (sizes[i] <= max)
			add_class(truth, block, sizes[i], times, 1);
	}
}

static void add_heap(struct doctor_truth *truth, int heap, const struct repeats *times)
{
	struct doctor_block block = {.heap = (uint8_t)heap, .group = DOCTOR_SMALL};

	for (unsigned bytes = 0; bytes <= 1024; bytes += 8)
		add_class(truth, block, bytes, times->small, 8);
	add_list(truth, heap, DOCTOR_MIDDLE, middle, COUNT(middle), times->middle, UINT32_MAX);
	add_list(truth, heap, DOCTOR_BACK_END, back_end, COUNT(back_end), times->back_end,
		UINT32_MAX);
	add_list(truth, heap, DOCTOR_BIG, big, COUNT(big), times->big, times->big_max);
	block.group = DOCTOR_RESIZED;
	for (size_t i = 0; i < COUNT(resized); i++) {
		block.was_bytes = resized[i].from;
		block.requested_bytes = resized[i].to;
		if (resized[i].from <= times->resized_max && resized[i].to <= times->resized_max)
			add(truth, block);
	}
}

void doctor_plan(struct doctor_truth *truth)
{
	for (int heap = 0; heap < DOCTOR_HEAPS; heap++)
		add_heap(truth, heap, &repeats[heap]);
}
