#include "core/append.h"

#include <stdlib.h>
#include <windows.h>

#include "core/utf_windows.h"

/* With the right to append and not that to write, each write goes to the end of the file. */
static HANDLE open_end(const wchar_t *path, DWORD rights)
{
	return CreateFileW(path, rights, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
		NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
}

/* A byte where no file has any: whoever reads the file is not in the way. */
static void lock(HANDLE handle)
{
	OVERLAPPED at = {.OffsetHigh = 0x40000000};

	for (int i = 0; i < APPEND_LOCK_TRIES; i++) {
		if (LockFileEx(handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
			    &at) ||
			(GetLastError() != ERROR_LOCK_VIOLATION &&
				GetLastError() != ERROR_IO_PENDING))
			return;
		os_sleep_ms(APPEND_LOCK_MS);
	}
}

/* Whether it was not moved away before it was locked. */
static bool is_still(HANDLE handle, const wchar_t *path)
{
	BY_HANDLE_FILE_INFORMATION open_one, there;
	HANDLE now = open_end(path, FILE_READ_ATTRIBUTES);
	bool is_same = true;

	if (now == INVALID_HANDLE_VALUE)
		return true;
	if (GetFileInformationByHandle(handle, &open_one) &&
		GetFileInformationByHandle(now, &there))
		is_same = open_one.dwVolumeSerialNumber == there.dwVolumeSerialNumber &&
			  open_one.nFileIndexHigh == there.nFileIndexHigh &&
			  open_one.nFileIndexLow == there.nFileIndexLow;
	CloseHandle(now);
	return is_same;
}

int append_open(struct os_file *file, const char *path, struct err *err)
{
	wchar_t *wide = wide_path(path);
	HANDLE handle = INVALID_HANDLE_VALUE;
	DWORD code = ERROR_INVALID_NAME;
	char text[300];

	for (int tries = APPEND_LOCK_TRIES; wide; tries--) {
		handle = open_end(wide, FILE_APPEND_DATA | GENERIC_READ);
		code = GetLastError();
		if (handle == INVALID_HANDLE_VALUE)
			break;
		lock(handle);
		if (is_still(handle, wide) || !tries)
			break;
		CloseHandle(handle);
	}
	free(wide);
	if (handle == INVALID_HANDLE_VALUE)
		return err_set(
			err, ERR_CREATE, path, "%s", windows_error(code, text, sizeof(text)));
	file->handle = (intptr_t)handle;
	return 0;
}
