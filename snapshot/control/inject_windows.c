/* Loads the tracer into a process in one of two ways: by a new thread of a running process, or by
 * calls that are queued to the first thread of a suspended process. */
#include <stdlib.h>
#include <wchar.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/control/inject_windows.h"
#include "snapshot/control/refusal.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/tracer/shared.h"

#define PATIENCE_MS 10000
#define NO_DLL                                                                                     \
	TRACER_DLL " is missing, perhaps removed by an antivirus: keep hsnap-tracer64.dll and "    \
		   "hsnap-tracer32.dll beside hsnap.exe"
#define WAIT_AGAIN_MS 10

static int fail(const char *name, const char *what, struct err *err)
{
	char text[300];

	return err_set(err, ERR_INJECT, name, "%s: %s", what,
		windows_error(GetLastError(), text, sizeof(text)));
}

/* Copies the path into the process. Returns the copy's address, or NULL. */
static void *place(HANDLE process, const wchar_t *path)
{
	SIZE_T bytes = (wcslen(path) + 1) * sizeof(*path);
	void *placed =
		VirtualAllocEx(process, NULL, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);

	if (placed && !WriteProcessMemory(process, placed, path, bytes, NULL)) {
		VirtualFreeEx(process, placed, 0, MEM_RELEASE);
		placed = NULL;
	}
	return placed;
}

/* Returns the address of a kernel32 function. The address is the same in all processes of one
 * bitness. */
static void *kernel32(const char *name)
{
	return (void *)GetProcAddress(GetModuleHandleW(L"kernel32.dll"), name);
}

int inject_not_loaded(
	const struct control_facts *facts, enum refusal_way way, const char *name, struct err *err)
{
	err_set(err, ERR_INJECT, name, "does not load " TRACER_DLL);
	return refusal_explain(facts, way, REFUSAL_LOAD, err);
}

/* Waits for the thread. Takes ownership of `placed`, the path in the process. Frees it only when
 * the thread can no longer read it. */
static int wait_for(HANDLE process, HANDLE thread, void *placed, const char *name, struct err *err)
{
	HANDLE handles[] = {thread, process};

	switch (WaitForMultipleObjects(2, handles, FALSE, PATIENCE_MS)) {
	case WAIT_OBJECT_0: VirtualFreeEx(process, placed, 0, MEM_RELEASE); return 0;
	case WAIT_OBJECT_0 + 1: return err_set(err, ERR_GONE, name, NULL);
	default:
		return err_set(err, ERR_BUSY, name,
			"its loader is busy or it is suspended: the tracer was not loaded within "
			"%d s",
			PATIENCE_MS / 1000);
	}
}

int inject_load_tracer(
	HANDLE process, const char *name, const struct control_facts *facts, struct err *err)
{
	wchar_t *path = program_beside(L"" TRACER_DLL);
	void *placed;
	HANDLE thread;
	int rc;

	if (!path)
		return err_set(err, ERR_INJECT, name, NO_DLL);
	placed = place(process, path);
	free(path);
	if (!placed)
		return fail(name, "no memory can be allocated in it", err);
	thread = CreateRemoteThread(process, NULL, 0,
		(LPTHREAD_START_ROUTINE)kernel32("LoadLibraryW"), placed, 0, NULL);
	if (!thread) {
		fail(name, "no thread can be started in it", err);
		rc = refusal_explain(facts, REFUSAL_ATTACH, REFUSAL_THREAD, err);
		VirtualFreeEx(process, placed, 0, MEM_RELEASE);
		return rc;
	}
	rc = wait_for(process, thread, placed, name, err);
	CloseHandle(thread);
	return rc;
}

bool inject_call(HANDLE process, uint64_t function)
{
	HANDLE thread = CreateRemoteThread(
		process, NULL, 0, (LPTHREAD_START_ROUTINE)(ULONG_PTR)function, NULL, 0, NULL);
	bool has_returned = thread && WaitForSingleObject(thread, PATIENCE_MS) == WAIT_OBJECT_0;

	if (thread)
		CloseHandle(thread);
	return has_returned;
}

/* Time that a process has for loading the tracer after its parent has exited. If the parent has
 * resumed the first thread, this time is enough. Otherwise the thread is never resumed. */
#define ORPHAN_MS 10000

static bool share(struct injection *injection, HANDLE ours, DWORD access, HANDLE *theirs)
{
	return ours && DuplicateHandle(GetCurrentProcess(), ours, injection->process, theirs,
			       access, FALSE, 0);
}

static bool queue(HANDLE thread, const char *function, const void *first, ULONG_PTR second)
{
	return NtQueueApcThread(thread, kernel32(function), (ULONG_PTR)first, second, 0) >= 0;
}

static bool queue_all(struct injection *injection, HANDLE thread)
{
	injection->is_queued = queue(thread, "LoadLibraryW", injection->their_path, 0);
	return injection->is_queued && queue(thread, "SetEvent", injection->their_loaded, 0) &&
	       queue(thread, "WaitForSingleObject", injection->their_go, INFINITE) &&
	       queue(thread, "CloseHandle", injection->their_go, 0);
}

int injection_prepare(struct injection *injection, HANDLE process, HANDLE thread, const char *name,
	struct err *err)
{
	wchar_t *path = program_beside(L"" TRACER_DLL);
	int rc = 0;

	*injection = (struct injection){.process = process};
	injection->loaded = CreateEventW(NULL, TRUE, FALSE, NULL);
	injection->go = CreateMutexW(NULL, TRUE, NULL);
	if (!path)
		rc = err_set(err, ERR_INJECT, name, NO_DLL);
	else if (!(injection->their_path = place(process, path)))
		rc = fail(name, "no memory can be allocated in it", err);
	else if (!share(injection, injection->loaded, EVENT_MODIFY_STATE,
			 &injection->their_loaded) ||
		 !share(injection, injection->go, SYNCHRONIZE, &injection->their_go))
		rc = fail(name, "handles cannot be duplicated into it", err);
	else if (!queue_all(injection, thread))
		rc = fail(name, "no call can be queued to its thread", err);
	free(path);
	return rc;
}

DWORD inject_wait_any(DWORD count, const HANDLE *handles, int64_t until_ms)
{
	for (;;) {
		int64_t left_ms = until_ms - os_clock_ms();
		int64_t piece_ms = left_ms < 0 ? 0 : left_ms < OS_WAIT_MS ? left_ms : OS_WAIT_MS;
		DWORD got = WaitForMultipleObjects(
			count, handles, FALSE, until_ms ? (DWORD)piece_ms : INFINITE);

		if (got == WAIT_FAILED) /* WAIT_FAILED gives no information about any handle */
			Sleep(WAIT_AGAIN_MS);
		else if (got != WAIT_TIMEOUT || left_ms <= 0)
			return got;
	}
}

static void close_theirs(struct injection *injection, HANDLE handle)
{
	if (handle)
		DuplicateHandle(
			injection->process, handle, NULL, NULL, 0, FALSE, DUPLICATE_CLOSE_SOURCE);
}

/* Closes the process's handles, except the handle that the thread waits for and closes itself. */
static void release_theirs(struct injection *injection)
{
	close_theirs(injection, injection->their_loaded);
	if (!injection->is_queued)
		close_theirs(injection, injection->their_go);
	if (injection->their_path)
		VirtualFreeEx(injection->process, injection->their_path, 0, MEM_RELEASE);
	injection->their_loaded = NULL;
	injection->their_path = NULL;
}

/*
 * Before the tracer is turned on, releases the objects that the thread has used. In Wine 8, a later
 * release could cause a deadlock, because a thread of the process makes the release call for hsnap.
 * Wine may choose a thread that is still being created. Such a thread makes the call only when it
 * waits for something itself, for example the loader lock. If the holder of the loader lock is
 * ending the process, the holder waits for hsnap's snapshot. The process and hsnap would then wait
 * for each other forever.
 */
enum injection_state injection_wait(struct injection *injection, HANDLE parent, int64_t until_ms)
{
	HANDLE handles[] = {injection->loaded, injection->process, parent};
	DWORD got = inject_wait_any(parent ? 3 : 2, handles, until_ms);
	int64_t orphan_ms = os_clock_ms() + ORPHAN_MS;

	if (got == WAIT_OBJECT_0 + 2)
		got = inject_wait_any(
			2, handles, until_ms && until_ms < orphan_ms ? until_ms : orphan_ms);
	switch (got) {
	case WAIT_OBJECT_0: release_theirs(injection); return INJECTION_LOADED;
	case WAIT_TIMEOUT:
		return until_ms && os_clock_ms() >= until_ms ? INJECTION_LATE : INJECTION_ORPHANED;
	default: return INJECTION_ENDED;
	}
}

/* Returns true if the path and the handles may still be used by the queued calls. The thread makes
 * these calls when it is resumed, possibly later and by another process. */
static bool is_in_use(const struct injection *injection)
{
	return injection->is_queued && WaitForSingleObject(injection->loaded, 0) != WAIT_OBJECT_0;
}

void injection_release(struct injection *injection)
{
	if (!is_in_use(injection))
		release_theirs(injection);
	if (injection->go) {
		ReleaseMutex(injection->go);
		CloseHandle(injection->go);
	}
	if (injection->loaded)
		CloseHandle(injection->loaded);
	*injection = (struct injection){0};
}
