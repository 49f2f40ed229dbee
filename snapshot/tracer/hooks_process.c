/*
 * The end of the process, and the beginning of others.
 */
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/nt.h"

typedef ULONG_PTR(WINAPI *terminate_fn)(HANDLE process, NTSTATUS status);

/* Holds every thread that would end the process until hsnap has taken its snapshot, or is gone. */
static void wait_for_snapshot(void)
{
	static LONG waited;
	struct tracer_area *area = &hsnap_tracer;
	HANDLE handles[] = {
		(HANDLE)(uintptr_t)area->exit_continue, (HANDLE)(uintptr_t)area->hsnap_process};

	if (!area->exit_reached)
		return;
	if (!InterlockedExchange(&waited, 1))
		NtSetEvent((HANDLE)(uintptr_t)area->exit_reached, NULL);
	NtWaitForMultipleObjects(2, handles, 1 /* any */, FALSE, NULL);
}

static ULONG_PTR WINAPI hook_terminate(HANDLE process, NTSTATUS status)
{
	if (!process || process == THIS_PROCESS) /* NULL: "all my other threads" */
		wait_for_snapshot();
	return ((terminate_fn)hook_original(HOOK_TERMINATE))(process, status);
}

void hooks_process_init(void)
{
	hsnap_tracer.hooks[HOOK_TERMINATE].hook = (uintptr_t)hook_terminate;
}
