#include <stdlib.h>
#include <wchar.h>

#include <windows.h>

#include "core/folder.h"
#include "core/utf_windows.h"

/* Where an open file really is, or NULL: that is not known (some network drives), or no memory. */
static wchar_t *final_path(HANDLE handle)
{
	DWORD units = GetFinalPathNameByHandleW(handle, NULL, 0, 0);
	wchar_t *path = units ? malloc(((size_t)units + 1) * sizeof(*path)) : NULL;

	if (path && GetFinalPathNameByHandleW(handle, path, units + 1, 0) <= units)
		return path;
	free(path);
	return NULL;
}

/* Where the last part of path begins. */
static const wchar_t *name_of(const wchar_t *path)
{
	const wchar_t *name = path + wcslen(path);

	while (name > path && !wcschr(L"\\/:", name[-1]))
		name--;
	return name;
}

static wchar_t *final_folder(const wchar_t *path)
{
	size_t len = (size_t)(name_of(path) - path);
	wchar_t *folder = malloc((len + 2) * sizeof(*folder)), *result = NULL;
	HANDLE handle;

	if (!folder)
		return NULL;
	wmemcpy(folder, path, len);
	wcscpy(folder + len, len ? L"" : L".");
	handle = CreateFileW(folder, FILE_READ_ATTRIBUTES,
		FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
		FILE_FLAG_BACKUP_SEMANTICS, NULL);
	if (handle != INVALID_HANDLE_VALUE) {
		result = final_path(handle);
		CloseHandle(handle);
	}
	free(folder);
	return result;
}

static bool is_same_path(const wchar_t *a, const wchar_t *b, int len)
{
	return CompareStringOrdinal(a, len, b, len, TRUE) == CSTR_EQUAL;
}

/* Wine opens and removes what a link of the system below it leads to, and tells of no link: then the file
 * is not where it was found. */
static bool is_elsewhere(HANDLE handle, const wchar_t *path)
{
	wchar_t *is_at = final_path(handle), *folder = final_folder(path);
	size_t len = folder ? wcslen(folder) : 0;
	bool elsewhere = false;

	if (len && folder[len - 1] == L'\\') /* a drive's root */
		len--;
	if (is_at && folder)
		elsewhere = wcslen(is_at) <= len || is_at[len] != L'\\' ||
			    !is_same_path(is_at, folder, (int)len) ||
			    !is_same_path(is_at + len + 1, name_of(path), -1);
	free(is_at);
	free(folder);
	return elsewhere;
}

/* 0 or an error of Windows. */
static DWORD remove_wide(const wchar_t *path)
{
	FILE_DISPOSITION_INFO info = {.DeleteFile = TRUE};
	HANDLE handle = CreateFileW(path, DELETE | FILE_READ_ATTRIBUTES,
		FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
		FILE_FLAG_OPEN_REPARSE_POINT, NULL);
	DWORD code = 0;

	if (handle == INVALID_HANDLE_VALUE)
		return GetLastError();
	if (is_elsewhere(handle, path))
		code = ERROR_ACCESS_DENIED;
	else if (!SetFileInformationByHandle(handle, FileDispositionInfo, &info, sizeof(info)))
		code = GetLastError();
	CloseHandle(handle);
	return code;
}

int folder_remove(const char *path, struct err *err)
{
	wchar_t *wide = wide_path(path);
	char text[300];
	DWORD code;

	if (!wide)
		return err_set(err, ERR_NOMEM, path, NULL);
	code = remove_wide(wide);
	free(wide);
	if (!code || code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND)
		return 0;
	return err_set(err, ERR_REMOVE, path, "%s", windows_error(code, text, sizeof(text)));
}
