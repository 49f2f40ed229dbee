/*
 * File names on Windows: long paths, and the renaming of a finished file to its final name.
 *
 * A finished file is renamed using its open handle. The handle has the DELETE access right, so a
 * virus scanner or indexer that does not share deletion cannot open the file. If the file were
 * closed first, such a program could open it and block the renaming. The file would then be lost.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/os_windows.h"

/* The limit for a folder is MAX_PATH minus room for an 8.3 name. */
#define SHORT_UNITS (MAX_PATH - 12)

static bool is_device_path(const wchar_t *path)
{
	return path[0] == L'\\' && path[1] == L'\\' && (path[2] == L'?' || path[2] == L'.') &&
	       path[3] == L'\\';
}

/* Converts a full path to the form without a length limit. */
static wchar_t *without_limit(const wchar_t *full)
{
	bool is_share = full[0] == L'\\' && full[1] == L'\\';
	const wchar_t *prefix = is_share ? L"\\\\?\\UNC\\" : L"\\\\?\\";
	const wchar_t *rest = is_share ? full + 2 : full;
	wchar_t *path = xmalloc((wcslen(prefix) + wcslen(rest) + 1) * sizeof(*path));

	wcscpy(path, prefix);
	wcscat(path, rest);
	return path;
}

wchar_t *wide_path_long(wchar_t *path)
{
	DWORD units = path ? GetFullPathNameW(path, 0, NULL, NULL) : 0, got;
	wchar_t *full, *result = NULL;

	if (units < SHORT_UNITS || is_device_path(path))
		return path;
	full = xmalloc(units * sizeof(*full));
	got = GetFullPathNameW(path, units, full, NULL);
	if (got && got < units)
		result = is_device_path(full) ? wcsdup(full) : without_limit(full);
	free(full);
	free(path);
	return result;
}

wchar_t *wide_path(const char *path)
{
	return wide_path_long(wide_from_utf8(path));
}

/* Returns the full path, or NULL if the system cannot determine it. */
static wchar_t *wide_full(const wchar_t *path)
{
	DWORD units = GetFullPathNameW(path, 0, NULL, NULL);
	wchar_t *full = units ? xmalloc(units * sizeof(*full)) : NULL;
	DWORD got = full ? GetFullPathNameW(path, units, full, NULL) : 0;

	if (got && got < units)
		return full;
	free(full);
	return NULL;
}

char *os_full_path(const char *path)
{
	wchar_t *wide = wide_from_utf8(path), *full = wide ? wide_full(wide) : NULL;
	char *result = full ? wide_to_utf8(full) : NULL;

	free(full);
	free(wide);
	return result;
}

/* A file that another program is reading cannot be replaced, so wait and retry. */
#define PUT_TRIES 10
#define PUT_WAIT_MS 150

bool path_set_temporary(void *handle, bool is_temporary)
{
	FILE_DISPOSITION_INFO info = {.DeleteFile = is_temporary};

	return SetFileInformationByHandle(handle, FileDispositionInfo, &info, sizeof(info));
}

int os_sync(struct os_file *file, const char *path, struct err *err)
{
	char text[300];
	DWORD code = FlushFileBuffers((HANDLE)file->handle) ? 0 : GetLastError();

	/* Some file systems (network, user mode) do not implement flushing. These errors do not
	 * mean that a write failed. */
	if (!code || code == ERROR_INVALID_FUNCTION || code == ERROR_NOT_SUPPORTED)
		return 0;
	return err_set(err, ERR_WRITE, path, "%s", windows_error(code, text, sizeof(text)));
}

struct file_naming {
	HANDLE handle;
	bool is_temporary;
	const wchar_t *from, *to;
	FILE_RENAME_INFO *info;
	DWORD info_bytes;
	bool is_new;
};

static bool is_taken(DWORD code)
{
	return code == ERROR_ALREADY_EXISTS || code == ERROR_FILE_EXISTS;
}

/* Renames using the handle, or by name if the file system does not support that. Returns 0 or a
 * Windows error code. */
static DWORD rename_once(const struct file_naming *naming)
{
	DWORD code;

	if (SetFileInformationByHandle(
		    naming->handle, FileRenameInfo, naming->info, naming->info_bytes))
		return 0;
	code = GetLastError();
	if (naming->is_new && is_taken(code))
		return code;
	return MoveFileExW(
		       naming->from, naming->to, naming->is_new ? 0 : MOVEFILE_REPLACE_EXISTING) ?
		       0 :
		       GetLastError();
}

/* Returns true if the rename may have failed because the target is in use, so that a later attempt
 * may succeed. */
static bool may_pass(const struct file_naming *naming, DWORD code)
{
	DWORD attributes = GetFileAttributesW(naming->to);

	if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
		return false;
	return code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION ||
	       code == ERROR_LOCK_VIOLATION || code == ERROR_USER_MAPPED_FILE;
}

static DWORD rename_patiently(const struct file_naming *naming)
{
	DWORD code = rename_once(naming);

	for (int tries = 1; tries < PUT_TRIES && code && may_pass(naming, code); tries++) {
		Sleep(PUT_WAIT_MS);
		code = rename_once(naming);
	}
	return code;
}

/* Renames a file that is marked for deletion. Removes the mark first, because a marked file cannot
 * be renamed. Restores the mark if the rename fails. */
static DWORD rename_temporary(const struct file_naming *naming)
{
	DWORD code;

	if (naming->is_temporary && !path_set_temporary(naming->handle, false))
		return GetLastError();
	code = rename_patiently(naming);
	if (code && naming->is_temporary)
		path_set_temporary(naming->handle, true);
	return code;
}

/* Fills naming->info and renames. Returns 0 or a Windows error code (ERROR_NOT_ENOUGH_MEMORY if out
 * of memory). */
static DWORD rename_to(struct file_naming *naming)
{
	wchar_t *full = wide_full(naming->to);
	size_t units = full ? wcslen(full) : 0;
	DWORD code = ERROR_NOT_ENOUGH_MEMORY;

	naming->info_bytes = (DWORD)(sizeof(*naming->info) + units * sizeof(*full));
	naming->info = xcalloc(1, naming->info_bytes);
	if (full) {
		naming->info->ReplaceIfExists = !naming->is_new;
		naming->info->FileNameLength = (DWORD)(units * sizeof(*full));
		wmemcpy(naming->info->FileName, full, units);
		code = rename_temporary(naming);
	}
	free(naming->info);
	free(full);
	return code;
}

int os_put(struct os_file *file, const char *from, const char *to, bool is_new, struct err *err)
{
	wchar_t *wide_from = wide_path(from), *wide_to = wide_path(to);
	struct file_naming naming = {.handle = (HANDLE)file->handle,
		.is_temporary = file->is_temporary,
		.from = wide_from,
		.to = wide_to,
		.is_new = is_new};
	DWORD code = wide_from && wide_to ? rename_to(&naming) : ERROR_NOT_ENOUGH_MEMORY;
	char text[300];

	free(wide_from);
	free(wide_to);
	if (!code)
		return 0;
	if (code == ERROR_NOT_ENOUGH_MEMORY)
		return err_set(err, ERR_NOMEM, to, NULL);
	if (is_new && is_taken(code))
		return err_set(err, ERR_EXISTS, to, NULL);
	return err_set(err, ERR_CREATE, to, "%s", windows_error(code, text, sizeof(text)));
}

int os_replace(const char *from, const char *to, struct err *err)
{
	wchar_t *wide_from = wide_path(from), *wide_to = wide_path(to);
	char text[300];
	int rc = 0;

	if (!wide_from || !wide_to)
		rc = err_set(err, ERR_NOMEM, to, NULL);
	else if (!MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING))
		rc = err_set(err, ERR_CREATE, to, "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	free(wide_from);
	free(wide_to);
	return rc;
}
