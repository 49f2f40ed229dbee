#include "snapshot/control/load_windows.h"

#include <stdlib.h>
#include <wchar.h>

#include "core/utf_windows.h"
#include "snapshot/control/program_windows.h"
#include "snapshot/tracer/shared.h"

#define PATIENCE_MS 10000

static int load_fail(const char *name, const char *what, struct err *err)
{
	char text[300];

	return err_set(err, ERR_INJECT, name, "%s: %s", what,
		windows_error(GetLastError(), text, sizeof(text)));
}

/* A copy of the path in the process, or NULL. */
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

/* kernel32 lies at the same address in every process of one bitness. */
static LPTHREAD_START_ROUTINE load_library(void)
{
	return (LPTHREAD_START_ROUTINE)(void *)GetProcAddress(
		GetModuleHandleW(L"kernel32.dll"), "LoadLibraryW");
}

/* Owns placed until the thread cannot read it any more. */
static int wait_for(HANDLE process, HANDLE thread, void *placed, const char *name, struct err *err)
{
	HANDLE handles[] = {thread, process};

	switch (WaitForMultipleObjects(2, handles, FALSE, PATIENCE_MS)) {
	case WAIT_OBJECT_0: VirtualFreeEx(process, placed, 0, MEM_RELEASE); return 0;
	case WAIT_OBJECT_0 + 1: return err_set(err, ERR_GONE, name, NULL);
	default:
		return err_set(err, ERR_BUSY, name,
			"its loader is busy or it is suspended: it has not loaded the tracer in "
			"%d s",
			PATIENCE_MS / 1000);
	}
}

int load_tracer(HANDLE process, const char *name, struct err *err)
{
	wchar_t *path = program_beside(L"" TRACER_DLL);
	void *placed;
	HANDLE thread;
	int rc;

	if (!path)
		return err_set(err, ERR_INJECT, name, TRACER_DLL " is not there");
	placed = place(process, path);
	free(path);
	if (!placed)
		return load_fail(name, "no memory in it", err);
	thread = CreateRemoteThread(process, NULL, 0, load_library(), placed, 0, NULL);
	if (!thread) {
		rc = load_fail(name, "it takes no thread", err);
		VirtualFreeEx(process, placed, 0, MEM_RELEASE);
		return rc;
	}
	rc = wait_for(process, thread, placed, name, err);
	CloseHandle(thread);
	return rc;
}
