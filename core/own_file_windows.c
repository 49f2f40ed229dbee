#include "core/own_file.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include "core/buf.h"
#include "core/utf_windows.h"

/* The byte that is locked: one that no file has, for nobody can read a locked one. */
#define LOCKED_AT_HIGH 0x3fffffff

char *own_cache_folder(void)
{
	char *caches = os_env("LOCALAPPDATA");
	struct buf path;

	buf_init(&path);
	if (caches && *caches && buf_printf(&path, "%s\\hsnap", caches))
		buf_release(&path);
	free(caches);
	return path.data;
}

static bool is_regular(HANDLE handle)
{
	BY_HANDLE_FILE_INFORMATION info;

	return GetFileType(handle) == FILE_TYPE_DISK && GetFileInformationByHandle(handle, &info) &&
	       !(info.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT));
}

static HANDLE open_wide(const wchar_t *path, DWORD access, DWORD how)
{
	HANDLE handle =
		CreateFileW(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
			NULL, how, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT, NULL);

	if (handle != INVALID_HANDLE_VALUE && !is_regular(handle)) {
		CloseHandle(handle);
		handle = INVALID_HANDLE_VALUE;
	}
	return handle;
}

int own_file_open(struct os_file *file, const char *path)
{
	wchar_t *wide = wide_path(path);
	HANDLE handle = wide ? open_wide(wide, GENERIC_READ, OPEN_EXISTING) : INVALID_HANDLE_VALUE;

	free(wide);
	if (handle == INVALID_HANDLE_VALUE)
		return -ERR_OPEN;
	file->handle = (intptr_t)handle;
	return 0;
}

/* What cannot be made shows when the file is. */
static void make_folders(wchar_t *path)
{
	for (wchar_t *at = wcspbrk(path, L"\\/"); at; at = wcspbrk(at + 1, L"\\/")) {
		wchar_t slash = *at;

		*at = L'\0';
		if (*path)
			CreateDirectoryW(path, NULL);
		*at = slash;
	}
}

static HANDLE open_or_make(wchar_t *path)
{
	HANDLE handle = open_wide(path, GENERIC_READ | GENERIC_WRITE, OPEN_EXISTING);

	if (handle != INVALID_HANDLE_VALUE || GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES)
		return handle;
	make_folders(path);
	return open_wide(path, GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS);
}

static bool lock_own(HANDLE handle)
{
	OVERLAPPED at = {.Offset = 0, .OffsetHigh = LOCKED_AT_HIGH};

	return LockFileEx(
		handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at);
}

int own_file_lock(struct os_file *file, const char *path)
{
	wchar_t *wide = wide_path(path);
	HANDLE handle = wide ? open_or_make(wide) : INVALID_HANDLE_VALUE;

	free(wide);
	if (handle == INVALID_HANDLE_VALUE)
		return -ERR_CREATE;
	for (int i = 0; i < OWN_FILE_TRIES; i++) {
		if (lock_own(handle)) {
			file->handle = (intptr_t)handle;
			return 0;
		}
		if (GetLastError() != ERROR_LOCK_VIOLATION && GetLastError() != ERROR_IO_PENDING)
			break; /* a file system without locks */
		Sleep(OWN_FILE_TRY_MS);
	}
	CloseHandle(handle);
	return -ERR_BUSY;
}

int own_file_write(struct os_file *file, uint64_t offset, const void *bytes, size_t len)
{
	const char *from = bytes;

	while (len) {
		OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
		DWORD part = len > 1u << 20 ? 1u << 20 : (DWORD)len, put = 0;

		if (!WriteFile((HANDLE)file->handle, from, part, &put, &at) || !put)
			return -ERR_WRITE;
		from += put;
		offset += put;
		len -= put;
	}
	return 0;
}

int own_file_cut(struct os_file *file, uint64_t size)
{
	LARGE_INTEGER at = {.QuadPart = (LONGLONG)size};

	return SetFilePointerEx((HANDLE)file->handle, at, NULL, FILE_BEGIN) &&
			       SetEndOfFile((HANDLE)file->handle) ?
		       0 :
		       -ERR_WRITE;
}
