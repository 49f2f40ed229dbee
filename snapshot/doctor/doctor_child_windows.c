#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/dump/kv.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/doctor/doctor_windows.h"
#include "snapshot/heap/nt_heap.h"

/* Of the flags of RtlCreateHeap(): winnt.h of the Windows 10 SDK. */
#ifndef HEAP_GROWABLE
#define HEAP_GROWABLE 2
#endif
#define CREATE_SEGMENT_HEAP 0x100

#define FIRST_BUILD 10240 /* of Windows 10 */

typedef void *(NTAPI *create_fn)(
	ULONG flags, void *base, SIZE_T reserve, SIZE_T commit, void *lock, void *parameters);

/* Whether the flag had its effect: a system that does not know it makes a heap as any other. */
static bool is_segment_heap(HANDLE heap)
{
	DWORD signature = 0;

	memcpy(&signature, (const char *)heap + NT_HEAP_SIGNATURE_AT(8 * sizeof(void *)),
		sizeof(signature));
	return signature == SEGMENT_HEAP_SIGNATURE;
}

HANDLE doctor_segment_heap(void)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	create_fn create = ntdll ? (create_fn)(void *)GetProcAddress(ntdll, "RtlCreateHeap") : NULL;
	HANDLE heap = NULL;

	if (create && windows_build() >= FIRST_BUILD)
		heap = create(HEAP_GROWABLE | CREATE_SEGMENT_HEAP, NULL, 0, 0, NULL, NULL);
	if (heap && !is_segment_heap(heap)) {
		HeapDestroy(heap);
		heap = NULL;
	}
	return heap;
}

/* Functions that are told apart by their addresses: they must be neither inlined nor merged, and the
 * call in them must not become a jump. */
#define SITE __attribute__((noipa)) static

static volatile unsigned last_site;

SITE void *allocate_at_0(HANDLE heap, SIZE_T bytes)
{
	void *block = HeapAlloc(heap, 0, bytes);

	last_site = 0;
	return block;
}

SITE void *allocate_at_1(HANDLE heap, SIZE_T bytes)
{
	void *block = HeapAlloc(heap, HEAP_ZERO_MEMORY, bytes);

	last_site = 1;
	return block;
}

SITE void *allocate_at_2(HANDLE heap, SIZE_T bytes)
{
	void *block = HeapAlloc(heap, 0, bytes);

	last_site = 2;
	return block;
}

SITE void *allocate_at_3(HANDLE heap, SIZE_T bytes)
{
	void *block = HeapAlloc(heap, HEAP_ZERO_MEMORY, bytes);

	last_site = 3;
	return block;
}

SITE void *reallocate(HANDLE heap, void *block, SIZE_T bytes)
{
	void *moved = HeapReAlloc(heap, 0, block, bytes);

	last_site = DOCTOR_RESIZE_SITE;
	return moved;
}

static void *(*const sites[DOCTOR_SITES])(HANDLE heap, SIZE_T bytes) = {
	allocate_at_0, allocate_at_1, allocate_at_2, allocate_at_3};

struct work {
	struct doctor_truth *truth;
	struct doctor_plan plan;
	void **blocks; /* of the plan's steps */
};

/* The heap of a step, or NULL when the child has none such. */
static HANDLE heap_of(const struct work *work, const struct doctor_step *step)
{
	return (HANDLE)(ULONG_PTR)work->truth->heaps[step->heap];
}

static bool fail(struct work *work, uint64_t bytes)
{
	work->truth->failed_bytes = bytes && bytes <= UINT32_MAX ? (uint32_t)bytes : 1;
	return false;
}

/* Notes one block; a moved one is noted as freed where it was. */
static bool note(struct work *work, size_t i, void *addr, uint64_t bytes, bool is_freed)
{
	const struct doctor_step *step = &work->plan.steps[i];
	struct doctor_block block = {.addr = (uint64_t)(ULONG_PTR)addr,
		.requested_bytes = bytes,
		.heap = step->heap,
		.group = step->group,
		.site = step->site,
		.was_bytes = step->then_bytes ? step->bytes : 0,
		.is_freed = is_freed};

	return doctor_truth_add(work->truth, &block) || fail(work, 0);
}

static bool allocate(struct work *work, size_t i)
{
	const struct doctor_step *step = &work->plan.steps[i];

	work->blocks[i] = sites[step->site](heap_of(work, step), step->bytes);
	if (!work->blocks[i])
		return fail(work, step->bytes);
	return step->then_bytes || step->is_freed ||
	       note(work, i, work->blocks[i], step->bytes, false);
}

static bool resize(struct work *work, size_t i)
{
	const struct doctor_step *step = &work->plan.steps[i];
	void *old = work->blocks[i],
	     *moved = reallocate(heap_of(work, step), old, step->then_bytes);

	if (!moved)
		return fail(work, step->then_bytes);
	work->blocks[i] = moved;
	return (moved == old || note(work, i, old, step->bytes, true)) &&
	       note(work, i, moved, step->then_bytes, false);
}

static bool give_back(struct work *work, size_t i)
{
	const struct doctor_step *step = &work->plan.steps[i];

	if (!HeapFree(heap_of(work, step), 0, work->blocks[i]))
		return fail(work, step->bytes);
	return note(work, i, work->blocks[i], step->bytes, true);
}

/* What a pass over the plan does to a step; doctor_plan.h gives the order. */
static bool do_step(struct work *work, size_t i, int pass)
{
	const struct doctor_step *step = &work->plan.steps[i];

	switch (pass) {
	case 0: return step->is_late || allocate(work, i);
	case 1: return !step->then_bytes || resize(work, i);
	case 2: return !step->is_freed || give_back(work, i);
	default: return !step->is_late || allocate(work, i);
	}
}

/* The function that is further out on every stack. */
SITE bool perform(struct work *work)
{
	bool ok = true;

	for (int pass = 0; pass < 4; pass++) {
		for (size_t i = 0; ok && i < work->plan.count; i++) {
			if (heap_of(work, &work->plan.steps[i]))
				ok = do_step(work, i, pass);
		}
	}
	return ok;
}

static void tell_code(struct doctor_truth *truth)
{
	const char *base = (const char *)GetModuleHandleW(NULL);
	const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)base;
	const IMAGE_NT_HEADERS *nt = (const IMAGE_NT_HEADERS *)(base + dos->e_lfanew);

	truth->image.from = (uint64_t)(ULONG_PTR)base;
	truth->image.to = truth->image.from + nt->OptionalHeader.SizeOfImage;
	for (int i = 0; i < DOCTOR_SITES; i++)
		truth->sites[i] = doctor_code_of((const void *)(ULONG_PTR)sites[i]);
	truth->sites[DOCTOR_RESIZE_SITE] = doctor_code_of((const void *)(ULONG_PTR)reallocate);
	truth->outer = doctor_code_of((const void *)(ULONG_PTR)perform);
}

static void make_heaps(struct doctor_truth *truth)
{
	const HANDLE heaps[DOCTOR_HEAPS] = {
		[DOCTOR_PROCESS_HEAP] = GetProcessHeap(),
		[DOCTOR_GROWABLE] = HeapCreate(0, 0, 0),
		[DOCTOR_FIXED] = HeapCreate(0, 0, DOCTOR_FIXED_BYTES),
		[DOCTOR_UNLOCKED] = HeapCreate(HEAP_NO_SERIALIZE, 0, 0),
		[DOCTOR_SEGMENT] = doctor_segment_heap(),
	};

	for (int i = 0; i < DOCTOR_HEAPS; i++)
		truth->heaps[i] = (uint64_t)(ULONG_PTR)heaps[i];
}

/* After the work, since a heap gets its front end in use. */
static void tell_front_ends(struct doctor_truth *truth)
{
	for (int i = 0; i < DOCTOR_HEAPS; i++) {
		ULONG front_end = 0;

		if (truth->heaps[i] &&
			HeapQueryInformation((HANDLE)(ULONG_PTR)truth->heaps[i],
				HeapCompatibilityInformation, &front_end, sizeof(front_end), NULL))
			truth->front_ends[i] = front_end;
	}
}

/* For tests: a child that does not tell the truth about one block must be noticed. */
static void lie(struct doctor_truth *truth)
{
	char *how = os_env(DOCTOR_LIE_VARIABLE);

	if (how)
		doctor_lie(truth, how);
	free(how);
}

static bool work(struct doctor_truth *truth)
{
	struct work work = {.truth = truth};
	bool ok = false;

	tell_code(truth);
	if (doctor_plan_make(&work.plan))
		return fail(&work, 0);
	work.blocks = calloc(work.plan.count, sizeof(*work.blocks));
	if (!work.blocks) {
		fail(&work, 0);
	} else {
		ok = perform(&work);
	}
	doctor_truth_settle(truth);
	tell_front_ends(truth);
	lie(truth);
	truth->magic = DOCTOR_MAGIC;
	free(work.blocks);
	doctor_plan_release(&work.plan);
	return ok;
}

/* Says so and waits to be told to go on; false when the parent has ended. */
static bool take_turns(HANDLE handles[DOCTOR_HANDLES])
{
	HANDLE wait[] = {handles[DOCTOR_GO], handles[DOCTOR_PARENT]};

	SetEvent(handles[DOCTOR_SAID]);
	return WaitForMultipleObjects(2, wait, FALSE, INFINITE) == WAIT_OBJECT_0;
}

int doctor_child_main(int argc, char **argv)
{
	HANDLE handles[DOCTOR_HANDLES];
	struct doctor_truth *truth;
	uint64_t value;

	if (argc != DOCTOR_HANDLES)
		return 2;
	for (int i = 0; i < DOCTOR_HANDLES; i++) {
		if (kv_number(argv[i], 16, &value))
			return 2;
		handles[i] = (HANDLE)(ULONG_PTR)value;
	}
	truth = MapViewOfFile(
		handles[DOCTOR_MEMORY], FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, sizeof(*truth));
	if (!truth || !take_turns(handles))
		return 2;
	make_heaps(truth);
	if (!take_turns(handles))
		return 2;
	work(truth);
	take_turns(handles);
	return 0;
}
