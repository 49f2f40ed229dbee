#include "snapshot/doctor/doctor_plan.h"

#include <stdlib.h>

#include "core/buf.h"

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
