/* The doctor's child. It creates heaps, allocates the planned blocks from distinct functions, and
 * records the truth in the memory that it shares with its parent. */
#include <string.h>

#include <windows.h>

#include "core/dump/kv.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/heap/nt_heap.h"

/* Flags of RtlCreateHeap(), from winnt.h of the Windows 10 SDK. */
#ifndef HEAP_GROWABLE
#define HEAP_GROWABLE 2
#endif
#define CREATE_SEGMENT_HEAP 0x100

typedef void *(NTAPI *create_fn)(
	ULONG flags, void *base, SIZE_T reserve, SIZE_T commit, void *lock, void *parameters);

/* Returns true if the flag had an effect. A system that does not know the flag creates an ordinary
 * heap. */
static bool is_segment_heap(HANDLE heap)
{
	DWORD signature = 0;

	memcpy(&signature, (const char *)heap + NT_HEAP_SIGNATURE_AT(8 * sizeof(void *)),
		sizeof(signature));
	return signature == SEGMENT_HEAP_SIGNATURE;
}

/* Returns NULL if this system does not create segment heaps on request. */
static HANDLE make_segment_heap(void)
{
	create_fn create =
		(create_fn)(void *)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlCreateHeap");
	HANDLE heap = NULL;

	if (create)
		heap = create(HEAP_GROWABLE | CREATE_SEGMENT_HEAP, NULL, 0, 0, NULL, NULL);
	if (heap && !is_segment_heap(heap)) {
		HeapDestroy(heap);
		heap = NULL;
	}
	return heap;
}

/*
 * Functions that are distinguished by their addresses. They must be neither inlined nor merged, and
 * the call in them must not become a jump. The linker sorts sections by the part of their name
 * after the $, so each function ends where the next one begins. */
#define SITE(place) __attribute__((noipa, section(".text$doctor" place))) static

static volatile unsigned last_site;

#define ALLOCATE_AT(n)                                                                             \
	SITE(#n) uint64_t allocate_at_##n(HANDLE heap, SIZE_T bytes)                               \
	{                                                                                          \
		void *block = HeapAlloc(heap, (n) % 2 ? HEAP_ZERO_MEMORY : 0, bytes);              \
                                                                                                   \
		last_site = (n);                                                                   \
		return (ULONG_PTR)block;                                                           \
	}

ALLOCATE_AT(0)
ALLOCATE_AT(1)
ALLOCATE_AT(2)
ALLOCATE_AT(3)

SITE("4") uint64_t doctor_reallocate(HANDLE heap, uint64_t block, SIZE_T bytes)
{
	void *moved = HeapReAlloc(heap, 0, (void *)(ULONG_PTR)block, bytes);

	last_site = DOCTOR_RESIZE_SITE;
	return (ULONG_PTR)moved;
}

static uint64_t (*const sites[DOCTOR_SITES])(HANDLE heap, SIZE_T bytes) = {
	allocate_at_0, allocate_at_1, allocate_at_2, allocate_at_3};

static bool fail(struct doctor_truth *truth, uint64_t bytes)
{
	truth->failed_bytes = bytes ? (uint32_t)bytes : 1;
	return false;
}

static bool allocate(struct doctor_truth *truth, struct doctor_block *block, HANDLE heap)
{
	uint64_t bytes = block->was_bytes ? block->was_bytes : block->requested_bytes;

	block->addr = sites[block->site](heap, bytes);
	return block->addr || fail(truth, bytes);
}

/* Reallocates a block. If the block moves, adds its old address as a freed block. */
static bool resize(struct doctor_truth *truth, struct doctor_block *block, HANDLE heap)
{
	struct doctor_block old = *block;

	block->addr = doctor_reallocate(heap, old.addr, block->requested_bytes);
	if (!block->addr)
		return fail(truth, block->requested_bytes);
	old.is_freed = true;
	return block->addr == old.addr || doctor_truth_add(truth, &old) || fail(truth, 0);
}

/* Allocates, reallocates or frees a block, if the plan requires it in this pass. doctor.h describes
 * the order. */
static bool do_block(struct doctor_truth *truth, struct doctor_block *block, int pass)
{
	HANDLE heap = (HANDLE)(ULONG_PTR)truth->heaps[block->heap];

	if (!heap)
		return true;
	switch (pass) {
	case 0: return block->is_late || allocate(truth, block, heap);
	case 1: return !block->was_bytes || resize(truth, block, heap);
	case 2:
		return !block->is_freed || HeapFree(heap, 0, (void *)(ULONG_PTR)block->addr) ||
		       fail(truth, block->requested_bytes);
	default: return !block->is_late || allocate(truth, block, heap);
	}
}

/* The outer function on every stack. */
SITE("5") void doctor_perform(struct doctor_truth *truth)
{
	uint32_t count = truth->block_count;
	bool ok = true;

	for (int pass = 0; pass < 4; pass++) {
		for (uint32_t i = 0; ok && i < count; i++)
			ok = do_block(truth, &truth->blocks[i], pass);
	}
}

/* Marks the end of doctor_perform(). */
SITE("6") void doctor_end(void)
{
	last_site = DOCTOR_SITES;
}

static uint64_t addr_of(void (*function)(void))
{
	return (uint64_t)(ULONG_PTR)function;
}

static void print_code(struct doctor_truth *truth)
{
	const char *base = (const char *)GetModuleHandleW(NULL);
	const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)base;
	const IMAGE_NT_HEADERS *nt = (const IMAGE_NT_HEADERS *)(base + dos->e_lfanew);
	uint64_t starts[DOCTOR_SITES + 3];

	truth->image.from = (uint64_t)(ULONG_PTR)base;
	truth->image.to = truth->image.from + nt->OptionalHeader.SizeOfImage;
	for (int i = 0; i < DOCTOR_SITES; i++)
		starts[i] = addr_of((void (*)(void))sites[i]);
	starts[DOCTOR_RESIZE_SITE] = addr_of((void (*)(void))doctor_reallocate);
	starts[DOCTOR_RESIZE_SITE + 1] = addr_of((void (*)(void))doctor_perform);
	starts[DOCTOR_RESIZE_SITE + 2] = addr_of(doctor_end);
	for (int i = 0; i <= DOCTOR_RESIZE_SITE; i++)
		truth->sites[i] = (struct doctor_range){starts[i], starts[i + 1]};
	truth->outer = (struct doctor_range){
		starts[DOCTOR_RESIZE_SITE + 1], starts[DOCTOR_RESIZE_SITE + 2]};
}

static void make_heaps(struct doctor_truth *truth)
{
	const HANDLE heaps[DOCTOR_HEAPS] = {
		[DOCTOR_PROCESS_HEAP] = GetProcessHeap(),
		[DOCTOR_GROWABLE] = HeapCreate(0, 0, 0),
		[DOCTOR_FIXED] = HeapCreate(0, 0, DOCTOR_FIXED_BYTES),
		[DOCTOR_UNLOCKED] = HeapCreate(HEAP_NO_SERIALIZE, 0, 0),
		[DOCTOR_SEGMENT] = make_segment_heap(),
	};

	for (int i = 0; i < DOCTOR_HEAPS; i++)
		truth->heaps[i] = (uint64_t)(ULONG_PTR)heaps[i];
}

/* Records the heaps' front ends. Called after the work, because a heap activates its front end only
 * after some use. */
static void print_front_ends(struct doctor_truth *truth)
{
	for (int i = 0; i < DOCTOR_HEAPS; i++) {
		ULONG front_end = 0;

		if (truth->heaps[i] &&
			HeapQueryInformation((HANDLE)(ULONG_PTR)truth->heaps[i],
				HeapCompatibilityInformation, &front_end, sizeof(front_end), NULL))
			truth->front_ends[i] = front_end;
	}
}

/* Records the result of GetProcessHeaps(). Leaves the list empty if it does not fit. */
static void list_heaps(struct doctor_truth *truth)
{
	HANDLE heaps[DOCTOR_LISTED_MAX];
	DWORD count = GetProcessHeaps(DOCTOR_LISTED_MAX, heaps);

	if (count > DOCTOR_LISTED_MAX)
		return;
	for (DWORD i = 0; i < count; i++)
		truth->listed[i] = (uint64_t)(ULONG_PTR)heaps[i];
	truth->listed_count = (uint32_t)count;
}

/* Signals the parent and waits for its signal. Returns false if the parent has exited. */
static bool exchange_signals(HANDLE handles[DOCTOR_HANDLES])
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
	if (!truth || !exchange_signals(handles))
		return 2;
	print_code(truth);
	make_heaps(truth);
	doctor_plan(truth);
	doctor_perform(truth);
	print_front_ends(truth);
	list_heaps(truth);
	doctor_truth_sort(truth);
	exchange_signals(handles);
	return 0;
}
