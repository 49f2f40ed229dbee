#include "core/append.h"

#include <stdlib.h>
#include <windows.h>

#include "core/utf_windows.h"

#define NAME_SURROGATE                                                                             \
	0x20000000 /* "Reparse Point Tags", Microsoft Learn: it stands for another name */

static HANDLE open_any(const wchar_t *path, DWORD rights, DWORD how, DWORD flags)
{
	return CreateFileW(path, rights, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
		NULL, how, FILE_ATTRIBUTE_NORMAL | flags, NULL);
}

static bool is_same_file(HANDLE a, HANDLE b)
{
	BY_HANDLE_FILE_INFORMATION x, y;

	return GetFileInformationByHandle(a, &x) && GetFileInformationByHandle(b, &y) &&
	       x.dwVolumeSerialNumber == y.dwVolumeSerialNumber &&
	       x.nFileIndexHigh == y.nFileIndexHigh && x.nFileIndexLow == y.nFileIndexLow;
}

/* Opened as what lies there, it is handed on when it is a plain file. One that the system keeps elsewhere, as a volume
 * without duplicates does, is opened as the file that it is for everybody; a link is an error. */
static HANDLE pass_link(HANDLE handle, const wchar_t *path, DWORD rights)
{
	BY_HANDLE_FILE_INFORMATION info;
	FILE_ATTRIBUTE_TAG_INFO tag;
	HANDLE file = INVALID_HANDLE_VALUE;

	if (!GetFileInformationByHandle(handle, &info) ||
		!(info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT))
		return handle;
	if (GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof(tag)) &&
		!(tag.ReparseTag & NAME_SURROGATE))
		file = open_any(path, rights, OPEN_EXISTING, 0);
	if (file != INVALID_HANDLE_VALUE && !is_same_file(file, handle)) {
		CloseHandle(file);
		file = INVALID_HANDLE_VALUE;
	}
	CloseHandle(handle);
	if (file == INVALID_HANDLE_VALUE)
		SetLastError(ERROR_CANT_ACCESS_FILE);
	return file;
}

/* With the right to append and not that to write, each write goes to the end of the file. */
static HANDLE open_end(const wchar_t *path)
{
	const DWORD rights = FILE_APPEND_DATA | GENERIC_READ;
	HANDLE handle = open_any(path, rights, OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT);

	return handle == INVALID_HANDLE_VALUE ? handle : pass_link(handle, path, rights);
}

/* A byte where no file has any: whoever reads the file is not in the way. */
static void lock_append(HANDLE handle)
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
	HANDLE now =
		open_any(path, FILE_READ_ATTRIBUTES, OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT);
	bool is_there = now == INVALID_HANDLE_VALUE || is_same_file(handle, now);

	if (now != INVALID_HANDLE_VALUE)
		CloseHandle(now);
	return is_there;
}

int append_open(struct os_file *file, const char *path, struct err *err)
{
	wchar_t *wide = wide_path(path);
	HANDLE handle = INVALID_HANDLE_VALUE;
	DWORD code = ERROR_INVALID_NAME;
	char text[300];

	for (int tries = APPEND_LOCK_TRIES; wide; tries--) {
		handle = open_end(wide);
		code = GetLastError();
		if (handle == INVALID_HANDLE_VALUE)
			break;
		lock_append(handle);
		if (is_still(handle, wide) || !tries)
			break;
		CloseHandle(handle);
	}
	free(wide);
	if (handle == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_CREATE, path, "%s",
			code == ERROR_CANT_ACCESS_FILE ? "it is a link" :
							 windows_error(code, text, sizeof(text)));
	file->handle = (intptr_t)handle;
	return 0;
}
