/* Memory, clock and waiting in the target, using only ntdll. Implements tracer_memory.h, except for
 * the functions that read a thread's words (guard.c). A thread that waits first yields its
 * processor, and later sleeps. */
#include "snapshot/tracer/tracer_memory.h"

#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tracer_nt.h"

/* Number of tries before waiting. A lock holder that was preempted runs again within milliseconds.
 * A suspended holder may take longer, and a terminated holder never releases the lock. */
#define YIELDS 100

/* The system's own functions. Calls through the hooks would count as the target's calls. */
typedef NTSTATUS(NTAPI *allocate_fn)(
	HANDLE process, PVOID *base, ULONG_PTR zero_bits, PSIZE_T bytes, ULONG type, ULONG protect);
typedef NTSTATUS(NTAPI *free_fn)(HANDLE process, PVOID *base, PSIZE_T bytes, ULONG type);

bool memory_commit(void *at, uint64_t bytes)
{
	allocate_fn allocate =
		(allocate_fn)(ULONG_PTR)hsnap_tracer.hooks[HOOK_VIRTUAL_ALLOCATE].original;
	SIZE_T size = (SIZE_T)bytes;

	return allocate(THIS_PROCESS, &at, 0, &size, MEM_COMMIT, PAGE_READWRITE) >= 0;
}

void memory_decommit(void *at, uint64_t bytes)
{
	free_fn free = (free_fn)(ULONG_PTR)hsnap_tracer.hooks[HOOK_VIRTUAL_FREE].original;
	SIZE_T size = (SIZE_T)bytes;

	free(THIS_PROCESS, &at, &size, MEM_DECOMMIT);
}

bool memory_may_wait(struct memory_patience *patience, uint64_t limit)
{
	LARGE_INTEGER now = {0};

	NtQuerySystemTime(&now);
	return memory_is_patient(patience, (uint64_t)now.QuadPart, limit);
}

bool memory_wait(struct memory_patience *patience)
{
	LARGE_INTEGER one_ms = {.QuadPart = -10000};

	if (RtlDllShutdownInProgress())
		return false;
	if (patience->tries++ < YIELDS) {
		NtYieldExecution();
		return true;
	}
	NtDelayExecution(FALSE, &one_ms);
	return memory_may_wait(patience, MEMORY_PATIENCE);
}

uint32_t memory_thread_id(void)
{
	return GetCurrentThreadId();
}

bool memory_is_alone(uint64_t hsnap_process)
{
	LARGE_INTEGER one_ms = {.QuadPart = -10000};

	return NtWaitForSingleObject((HANDLE)(uintptr_t)hsnap_process, FALSE, &one_ms) !=
	       STATUS_TIMEOUT;
}

bool memory_wait_hsnap(struct memory_patience *patience)
{
	if (patience->tries++ >= YIELDS)
		return !memory_is_alone(hsnap_tracer.rings_process);
	NtYieldExecution();
	return true;
}
