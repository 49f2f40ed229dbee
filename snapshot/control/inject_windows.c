#include <stdlib.h>
#include <wchar.h>

#include "snapshot/control/inject_windows.h"

#include "core/utf_windows.h"
#include "snapshot/control/program_windows.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/tracer/shared.h"

static int fail(const char *name, const char *what, struct err *err)
{
	char text[300];

	return err_set(err, ERR_INJECT, name, "%s: %s", what,
		windows_error(GetLastError(), text, sizeof(text)));
}

/* A copy of the path in the process. */
static bool place_path(struct injection *injection, const wchar_t *path)
{
	SIZE_T bytes = (wcslen(path) + 1) * sizeof(*path);

	injection->their_path = VirtualAllocEx(
		injection->process, NULL, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
	return injection->their_path &&
	       WriteProcessMemory(injection->process, injection->their_path, path, bytes, NULL);
}

static bool share(struct injection *injection, HANDLE ours, DWORD access, HANDLE *theirs)
{
	return ours && DuplicateHandle(GetCurrentProcess(), ours, injection->process, theirs,
			       access, FALSE, 0);
}

/* kernel32 lies at the same address in every process of one bitness. */
static void *kernel32(const char *name)
{
	return (void *)GetProcAddress(GetModuleHandleW(L"kernel32.dll"), name);
}

static bool queue(HANDLE thread, const char *function, const void *first, ULONG_PTR second)
{
	return NtQueueApcThread(thread, kernel32(function), (ULONG_PTR)first, second, 0) >= 0;
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
		rc = fail(name, TRACER_DLL, err);
	else if (!place_path(injection, path))
		rc = fail(name, "no memory in it", err);
	else if (!share(injection, injection->loaded, EVENT_MODIFY_STATE,
			 &injection->their_loaded) ||
		 !share(injection, injection->go, SYNCHRONIZE, &injection->their_go))
		rc = fail(name, "it takes no handles", err);
	else if (!queue(thread, "LoadLibraryW", injection->their_path, 0) ||
		 !queue(thread, "SetEvent", injection->their_loaded, 0) ||
		 !queue(thread, "WaitForSingleObject", injection->their_go, INFINITE))
		rc = fail(name, "its thread takes no calls", err);
	free(path);
	return rc;
}

bool injection_wait(struct injection *injection)
{
	HANDLE handles[] = {injection->loaded, injection->process};

	return WaitForMultipleObjects(2, handles, FALSE, INFINITE) == WAIT_OBJECT_0;
}

static void close_theirs(struct injection *injection, HANDLE handle)
{
	if (handle)
		DuplicateHandle(
			injection->process, handle, NULL, NULL, 0, FALSE, DUPLICATE_CLOSE_SOURCE);
}

void injection_release(struct injection *injection)
{
	if (injection->go) {
		ReleaseMutex(injection->go);
		CloseHandle(injection->go);
	}
	if (injection->loaded)
		CloseHandle(injection->loaded);
	close_theirs(injection, injection->their_loaded);
	close_theirs(injection, injection->their_go);
	if (injection->their_path)
		VirtualFreeEx(injection->process, injection->their_path, 0, MEM_RELEASE);
	*injection = (struct injection){0};
}
