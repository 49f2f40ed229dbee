/*
 * Stacks that are not recorded in the thread's TEB, for example those made by coroutine libraries.
 * Their bounds are those of the memory region around the stack pointer.
 *
 * The system dispatches exceptions only on a stack that is recorded in the TEB. Reading unwind data
 * may fault, so the region is recorded in the TEB while unwind data is read.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_REGION_H
#define SNAPSHOT_TRACER_UNWIND_REGION_H

#include "snapshot/tracer/tracer_nt.h"
#include "snapshot/tracer/unwind.h"

/* Number of bytes that the unwinder may need below the frames. The region must extend that far
 * down. It is not known whether these bytes are free. */
#define UNWIND_REGION_ROOM 8192

struct unwind_region {
	uint64_t low, high; /* bounds of the pages with the same properties */
	uint64_t allocation; /* start of the allocation that contains the pages */
	uint32_t frees; /* unwind_frees at the time of the query */
};

/* Finds the region around a slot. *cached is the result of the last search. */
static inline bool unwind_region_find(struct unwind_region *cached, uint64_t slot)
{
	MEMORY_BASIC_INFORMATION info;
	uint32_t frees = __atomic_load_n(&unwind_frees, __ATOMIC_RELAXED);

	if (cached->frees == frees && slot - cached->low < cached->high - cached->low)
		return true;
	if (NtQueryVirtualMemory(THIS_PROCESS, (LPCVOID)(ULONG_PTR)slot,
		    NT_MEMORY_BASIC_INFORMATION, &info, sizeof(info), NULL) < 0 ||
		info.State != MEM_COMMIT)
		return false;
	*cached = (struct unwind_region){
		.low = (ULONG_PTR)info.BaseAddress,
		.high = (uint64_t)(ULONG_PTR)info.BaseAddress + info.RegionSize,
		.allocation = (ULONG_PTR)info.AllocationBase,
		.frees = frees,
	};
	return true;
}

/* Returns true if the region extends far enough below the caller's frame. */
static inline bool unwind_region_has_room(const struct unwind_region *region)
{
	return (ULONG_PTR)__builtin_frame_address(0) - region->allocation > UNWIND_REGION_ROOM;
}

/* Records the region as the thread's stack in the TEB. Returns the previous contents, which
 * unwind_region_leave() restores. */
static inline NT_TIB unwind_region_enter(const struct unwind_region *region)
{
	NT_TIB *tib = (NT_TIB *)NtCurrentTeb(), before = *tib;

	tib->StackBase = (PVOID)(ULONG_PTR)region->high;
	tib->StackLimit = (PVOID)(ULONG_PTR)region->allocation;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return before;
}

static inline void unwind_region_leave(const NT_TIB *before)
{
	NT_TIB *tib = (NT_TIB *)NtCurrentTeb();

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	tib->StackBase = before->StackBase;
	tib->StackLimit = before->StackLimit;
}

#endif
