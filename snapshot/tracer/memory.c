#include "snapshot/tracer/memory.h"

#include "snapshot/tracer/nt.h"

/* A holder that was moved off its processor comes back in some ms; one that is suspended may take
 * longer, and one that was ended never comes back. */
#define YIELDS 100
#define SLEEPS 10000 /* of 1 ms and more */

void *memory_reserve(uint64_t bytes)
{
	PVOID base = NULL;
	SIZE_T size = (SIZE_T)bytes;

	if (size != bytes || NtAllocateVirtualMemory(THIS_PROCESS, &base, 0, &size, MEM_RESERVE,
				     PAGE_READWRITE) < 0)
		return NULL;
	return base;
}

bool memory_commit(void *at, uint64_t bytes)
{
	SIZE_T size = (SIZE_T)bytes;

	return NtAllocateVirtualMemory(THIS_PROCESS, &at, 0, &size, MEM_COMMIT, PAGE_READWRITE) >=
	       0;
}

void memory_release(void *at, uint64_t bytes)
{
	SIZE_T size = 0;

	(void)bytes;
	NtFreeVirtualMemory(THIS_PROCESS, &at, &size, MEM_RELEASE);
}

bool memory_wait(unsigned tries)
{
	LARGE_INTEGER one_ms = {.QuadPart = -10000};

	if (RtlDllShutdownInProgress())
		return false;
	if (tries < YIELDS)
		NtYieldExecution();
	else
		NtDelayExecution(FALSE, &one_ms);
	return tries < YIELDS + SLEEPS;
}
