#include "snapshot/inject.h"

#include <stdbool.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>

#include "core/utf_windows.h"
#include "snapshot/tracer/shared.h"

#define LOAD_MS 60000
#define PATH_UNITS 32768

static int fail(const char *name, const char *what, struct err *err)
{
	char text[300];

	return err_set(err, ERR_INJECT, name, "%s: %s", what,
		windows_error(GetLastError(), text, sizeof(text)));
}

/* The DLL's full path: beside this program. */
static bool dll_path(wchar_t path[PATH_UNITS])
{
	DWORD len = GetModuleFileNameW(NULL, path, PATH_UNITS);
	const wchar_t *name = L"" TRACER_DLL;

	while (len && path[len - 1] != L'\\' && path[len - 1] != L'/')
		len--;
	if (!len || len + wcslen(name) >= PATH_UNITS)
		return false;
	wcscpy(path + len, name);
	return GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
}

/* Runs LoadLibraryW(path) in a thread of the process: its result's lower half, 0 when it failed. */
static DWORD load(HANDLE process, void *remote_path)
{
	/* kernel32 lies at the same address in every process of one bitness. */
	LPTHREAD_START_ROUTINE start = (LPTHREAD_START_ROUTINE)(void *)GetProcAddress(
		GetModuleHandleW(L"kernel32.dll"), "LoadLibraryW");
	HANDLE thread = CreateRemoteThread(process, NULL, 0, start, remote_path, 0, NULL);
	HANDLE handles[] = {thread, process};
	DWORD result = 0;

	if (!thread)
		return 0;
	if (WaitForMultipleObjects(2, handles, FALSE, LOAD_MS) == WAIT_OBJECT_0)
		GetExitCodeThread(thread, &result);
	else
		SetLastError(ERROR_TIMEOUT);
	CloseHandle(thread);
	return result;
}

int tracer_inject(void *process, const char *name, struct err *err)
{
	wchar_t *path = malloc(PATH_UNITS * sizeof(*path));
	void *remote = NULL;
	size_t bytes;
	int rc = 0;

	if (!path)
		return err_set(err, ERR_NOMEM, name, NULL);
	if (!dll_path(path)) {
		rc = fail(name, TRACER_DLL, err);
		goto out;
	}
	bytes = (wcslen(path) + 1) * sizeof(*path);
	remote = VirtualAllocEx(process, NULL, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
	if (!remote || !WriteProcessMemory(process, remote, path, bytes, NULL))
		rc = fail(name, "no memory in it", err);
	else if (!load(process, remote))
		rc = fail(name, "it does not load the DLL", err);
out:
	if (remote)
		VirtualFreeEx(process, remote, 0, MEM_RELEASE);
	free(path);
	return rc;
}
