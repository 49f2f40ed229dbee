/*
 * Frees blocks without calling the tracer's hook, as ntdll of Windows 7 and 8 does: it inlines a
 * free, or calls the function below RtlFreeHeap. Each step leaks 100 blocks of 48 bytes. It also
 * allocates 2000 blocks of 72 bytes and frees them in this way, or normally if there is no tracer.
 *
 *   bypass [STEPS]   does STEPS steps and ends, instead of waiting after each step
 *   bypass locked    has a second heap, whose lock another thread holds until the end
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/step.h"
#include "snapshot/tracer/shared.h"

#define LEAKS 100
#define FREES 2000

typedef ULONG_PTR(WINAPI *free_fn)(void *heap, ULONG flags, void *block);

/* Returns the address to which RtlFreeHeap's trampoline leads, or RtlFreeHeap if it is not
 * hooked. */
static free_fn free_past_hook(void)
{
	const struct tracer_area *area = NULL;
	HMODULE tracer =
		GetModuleHandleA(sizeof(void *) == 8 ? "hsnap-tracer64.dll" : "hsnap-tracer32.dll");

	if (tracer)
		area = (const struct tracer_area *)(void *)GetProcAddress(tracer, "hsnap_tracer");
	if (area && area->state == TRACER_ON)
		return (free_fn)(uintptr_t)area->hooks[HOOK_FREE].original;
	return (free_fn)(void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "RtlFreeHeap");
}

static __attribute__((noinline, noipa)) void *bypass_leak(void)
{
	return step_leak(HeapAlloc(GetProcessHeap(), 0, 48));
}

static __attribute__((noinline, noipa)) void *bypass_gone(void)
{
	return step_leak(HeapAlloc(GetProcessHeap(), 0, 72));
}

static void work(void)
{
	static void *gone[FREES];
	free_fn free_block = free_past_hook();

	for (int i = 0; i < LEAKS; i++)
		bypass_leak();
	for (int i = 0; i < FREES; i++)
		gone[i] = bypass_gone();
	for (int i = 0; i < FREES; i++)
		free_block(GetProcessHeap(), 0, gone[i]);
}

static HANDLE is_locked;

static DWORD WINAPI hold_lock(void *heap)
{
	HeapLock(heap);
	SetEvent(is_locked);
	Sleep(INFINITE);
	return 0;
}

static void lock_a_heap(void)
{
	is_locked = CreateEventW(NULL, TRUE, FALSE, NULL);
	CreateThread(NULL, 0, hold_lock, HeapCreate(0, 0, 0), 0, NULL);
	WaitForSingleObject(is_locked, INFINITE);
}

int main(int argc, char **argv)
{
	unsigned long step = 0;

	if (argc > 1 && !strcmp(argv[1], "locked")) {
		lock_a_heap();
	} else if (argc > 1) {
		for (int i = atoi(argv[1]); i > 0; i--)
			work();
		return 0;
	}
	do {
		work();
	} while (step_done(++step));
	return 0;
}
