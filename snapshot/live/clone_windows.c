#include "snapshot/live/clone_windows.h"

/*
 * Process snapshotting as Microsoft documents it (processsnapshot.h, Windows 8.1); found at run time,
 * since Windows 7 and Wine do not have it.
 */
#define CAPTURE_VA_CLONE 1u /* PSS_CAPTURE_VA_CLONE */
#define CREATE_BREAKAWAY_OPTIONAL 0x04000000u /* PSS_CREATE_BREAKAWAY_OPTIONAL, with the next one */
#define CREATE_BREAKAWAY 0x08000000u /* PSS_CREATE_BREAKAWAY: out of the process's job */
#define CREATE_RELEASE_SECTION 0x80000000u /* PSS_CREATE_RELEASE_SECTION: of the image */
#define QUERY_VA_CLONE 1 /* PSS_QUERY_VA_CLONE_INFORMATION */

struct va_clone {
	HANDLE process; /* PSS_VA_CLONE_INFORMATION.VaCloneHandle */
};

typedef DWORD(WINAPI *capture_fn)(
	HANDLE process, DWORD flags, DWORD thread_flags, HANDLE *snapshot);
typedef DWORD(WINAPI *query_fn)(HANDLE snapshot, int what, void *info, DWORD bytes);
typedef DWORD(WINAPI *free_fn)(HANDLE process, HANDLE snapshot);

static struct {
	capture_fn capture;
	query_fn query;
	free_fn free;
} pss;

static bool capture(void *process, void **snapshot)
{
	const DWORD flags = CAPTURE_VA_CLONE | CREATE_BREAKAWAY_OPTIONAL | CREATE_BREAKAWAY |
			    CREATE_RELEASE_SECTION;

	/* A clone counts in the job of its process, which may be full. */
	return pss.capture(process, flags, 0, snapshot) == ERROR_SUCCESS ||
	       pss.capture(process, CAPTURE_VA_CLONE, 0, snapshot) == ERROR_SUCCESS;
}

static bool clone(void *snapshot, void **process)
{
	struct va_clone info = {0};

	if (pss.query(snapshot, QUERY_VA_CLONE, &info, sizeof(info)) != ERROR_SUCCESS ||
		!info.process)
		return false;
	*process = info.process;
	return true;
}

/* Freeing the snapshot closes its handles; that alone is not said to end the clone's process. */
static void end_clone(void *process)
{
	TerminateProcess(process, 0);
}

static void free_snapshot(void *snapshot)
{
	pss.free(GetCurrentProcess(), snapshot);
}

static long suspend(void *process)
{
	return NtSuspendProcess(process);
}

static void resume(void *process)
{
	NtResumeProcess(process);
}

struct hold_calls clone_calls(void)
{
	struct hold_calls calls = {.end_clone = end_clone,
		.free_snapshot = free_snapshot,
		.suspend = suspend,
		.resume = resume};
	HMODULE kernel32 = GetModuleHandleW(L"kernel32.dll");

	pss.capture = (capture_fn)(void *)GetProcAddress(kernel32, "PssCaptureSnapshot");
	pss.query = (query_fn)(void *)GetProcAddress(kernel32, "PssQuerySnapshot");
	pss.free = (free_fn)(void *)GetProcAddress(kernel32, "PssFreeSnapshot");
	if (pss.capture && pss.query && pss.free) {
		calls.capture = capture;
		calls.clone = clone;
	}
	return calls;
}
