#include "snapshot/tracer/memory.h"

#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/nt.h"

/* A holder that was moved off its processor comes back in some ms; one that is suspended may take
 * longer, and one that was ended never comes back. */
#define YIELDS 100

/* The system's own functions: calls through the hooks would be taken for the target's. */
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
