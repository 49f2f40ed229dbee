#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "snapshot/doctor/doctor.h"

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

/* Where the small live block is in the list: some way in, not the first. */
static struct doctor_block *victim(struct doctor_truth *truth)
{
	unsigned skip = 10;

	for (uint32_t i = 0; i < truth->block_count; i++) {
		struct doctor_block *block = &truth->blocks[i];

		if (block->heap == DOCTOR_GROWABLE && block->group == DOCTOR_SMALL &&
			!block->is_freed && block->requested_bytes && !skip--)
			return block;
	}
	return NULL;
}

static void leave_out(struct doctor_truth *truth, struct doctor_block *block)
{
	struct doctor_block *end = truth->blocks + truth->block_count--;

	memmove(block, block + 1, (size_t)(end - block - 1) * sizeof(*block));
}

bool doctor_lie(struct doctor_truth *truth, const char *how)
{
	struct doctor_block *block = victim(truth);

	if (!block)
		return false;
	if (!strcmp(how, "size"))
		block->requested_bytes++;
	else if (!strcmp(how, "place"))
		block->addr += 8;
	else if (!strcmp(how, "heap"))
		block->heap = DOCTOR_UNLOCKED;
	else if (!strcmp(how, "site"))
		block->site = (uint8_t)((block->site + 1) % DOCTOR_SITES);
	else if (!strcmp(how, "freed"))
		block->is_freed = true;
	else if (!strcmp(how, "silent"))
		leave_out(truth, block);
	else
		return false;
	return true;
}

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define SMALL_MAX 1024
#define SMALL_STEP 8

/* A size class of Windows' low fragmentation heap goes live after some 18 allocations, so there are
 * more than that of each where such a heap is to be tried. Blocks of a megabyte are tried once for each
 * kind of heap: all of the child's memory goes into a minidump too. */
static const struct repeats {
	unsigned small, middle, back_end, big;
	uint64_t big_max, resized_max; /* larger ones are left out */
} repeats[DOCTOR_HEAPS] = {
	[DOCTOR_PROCESS_HEAP] = {24, 21, 4, 2, 0x80000, 200000},
	[DOCTOR_GROWABLE] = {24, 21, 4, 2, UINT64_MAX, UINT64_MAX},
	[DOCTOR_FIXED] = {6, 3, 3, 0, 0, 200000},
	[DOCTOR_UNLOCKED] = {6, 3, 3, 2, 0x80000, 200000},
	[DOCTOR_SEGMENT] = {24, 21, 4, 2, UINT64_MAX, UINT64_MAX},
};

static const uint32_t middle[] = {1025, 1280, 1536, 2047, 2048, 3072, 4095, 4096, 5000, 6144, 8191,
	8192, 10000, 12288, 14336, 16368, 16384};

static const uint32_t back_end[] = {
	16385, 20000, 32768, 65520, 65536, 70001, 131071, 131072, 200000, 262144};

/* About the sizes from which on a block has memory of its own: of segment heaps and x86 NT heaps
 * (508 KiB), of x64 NT heaps (1020 KiB), of Wine (0xfeff0). */
static const uint32_t big[] = {0x7eff0, 0x7f000, 0x7f001, 0x7f010, 0x80000, 0xfefd0, 0xfefe8,
	0xfeff0, 0xfeff8, 0xff000, 0xff001, 0x100000, 0x100001, 0x234567, 0x400000};

static const struct {
	uint32_t from, to;
} resized[] = {{16, 24}, {24, 1}, {100, 1000}, {1000, 100}, {1024, 70000}, {70000, 300},
	{150000, 160001}, {50000, 1500000}, {1500000, 2500000}, {2000000, 4000}};

static int add(struct doctor_plan *plan, const struct doctor_step *step)
{
	if (array_grow((void **)&plan->steps, &plan->cap, plan->count, sizeof(*step)))
		return -ERR_NOMEM;
	plan->steps[plan->count] = *step;
	plan->steps[plan->count].site = (uint8_t)(plan->count % DOCTOR_SITES);
	plan->count++;
	return 0;
}

/* Blocks of one size class. The last two are late; of the others every third goes again. */
static int add_class(struct doctor_plan *plan, struct doctor_step step, uint64_t bytes,
	unsigned times, unsigned vary)
{
	int rc = 0;

	for (unsigned k = 0; !rc && k < times; k++) {
		step.bytes = bytes ? bytes - k % vary : 0;
		step.is_late = times > 4 && k + 2 >= times;
		step.is_freed = !step.is_late && k % 3 == 1;
		rc = add(plan, &step);
	}
	return rc;
}

static int add_list(struct doctor_plan *plan, struct doctor_step step, const uint32_t *sizes,
	size_t count, unsigned times, uint64_t max)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		if (sizes[i] <= max)
			rc = add_class(plan, step, sizes[i], times, 1);
	}
	return rc;
}

static int add_small(struct doctor_plan *plan, struct doctor_step step, unsigned times)
{
	int rc = 0;

	for (unsigned bytes = 0; !rc && bytes <= SMALL_MAX; bytes += SMALL_STEP)
		rc = add_class(plan, step, bytes, times, SMALL_STEP);
	return rc;
}

static int add_resized(struct doctor_plan *plan, struct doctor_step step, uint64_t max)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < COUNT(resized); i++) {
		step.bytes = resized[i].from;
		step.then_bytes = resized[i].to;
		if (step.bytes <= max && step.then_bytes <= max)
			rc = add(plan, &step);
	}
	return rc;
}

static int add_heap(struct doctor_plan *plan, enum doctor_heap heap)
{
	const struct repeats *times = &repeats[heap];
	struct doctor_step step = {.heap = (uint8_t)heap, .group = DOCTOR_SMALL};
	int rc = add_small(plan, step, times->small);

	step.group = DOCTOR_MIDDLE;
	rc = rc ? rc : add_list(plan, step, middle, COUNT(middle), times->middle, UINT64_MAX);
	step.group = DOCTOR_BACK_END;
	rc = rc ? rc : add_list(plan, step, back_end, COUNT(back_end), times->back_end, UINT64_MAX);
	step.group = DOCTOR_BIG;
	rc = rc ? rc : add_list(plan, step, big, COUNT(big), times->big, times->big_max);
	step.group = DOCTOR_RESIZED;
	return rc ? rc : add_resized(plan, step, times->resized_max);
}

int doctor_plan_make(struct doctor_plan *plan)
{
	int rc = 0;

	*plan = (struct doctor_plan){0};
	for (int heap = 0; !rc && heap < DOCTOR_HEAPS; heap++)
		rc = add_heap(plan, (enum doctor_heap)heap);
	if (rc)
		doctor_plan_release(plan);
	return rc;
}

void doctor_plan_release(struct doctor_plan *plan)
{
	free(plan->steps);
	*plan = (struct doctor_plan){0};
}
