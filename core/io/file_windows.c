/*
 * Shared files on Windows: locked logs, folders, and the user's own files. Links are recognized by
 * their reparse points. Wine hides links of the host system, so such a link is recognized by the
 * final path of the opened file.
 */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <windows.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "core/io/file.h"

/* Flag of a reparse point that represents another name ("Reparse Point Tags", Microsoft Learn). */
#define NAME_SURROGATE 0x20000000

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

/* Returns a handle for a file that was opened without following a reparse point. A plain file keeps
 * its handle. A file whose data the system stores elsewhere (deduplication) is reopened in the
 * usual way. A link is an error. */
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

/* Opens a log with the right to append but not to write, so that each write goes to the end of the
 * file. */
static HANDLE open_end(const wchar_t *path)
{
	const DWORD rights = FILE_APPEND_DATA | GENERIC_READ;
	HANDLE handle = open_any(path, rights, OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT);

	return handle == INVALID_HANDLE_VALUE ? handle : pass_link(handle, path, rights);
}

/* Locks a byte far beyond the end of any file, so that readers are not affected. */
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

/* Returns true if the file at `path` was not replaced between opening and locking. */
static bool is_still(HANDLE handle, const wchar_t *path)
{
	HANDLE now =
		open_any(path, FILE_READ_ATTRIBUTES, OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT);
	bool is_there = now == INVALID_HANDLE_VALUE || is_same_file(handle, now);

	if (now != INVALID_HANDLE_VALUE)
		CloseHandle(now);
	return is_there;
}

int file_append_open(struct os_file *file, const char *path, struct err *err)
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
			code == ERROR_CANT_ACCESS_FILE ? "a link" :
							 windows_error(code, text, sizeof(text)));
	file->handle = (intptr_t)handle;
	return 0;
}

const char folder_separators[] = "\\/:";

bool folder_same_letter(uint32_t a, uint32_t b)
{
	const wchar_t left = (wchar_t)a, right = (wchar_t)b;

	if (a == b)
		return true;
	return a <= 0xffff && b <= 0xffff &&
	       CompareStringOrdinal(&left, 1, &right, 1, TRUE) == CSTR_EQUAL;
}

/* Returns true for symbolic links, junctions and the like. Other reparse points (a file in the
 * cloud, a deduplicated file) are treated as plain files. */
static bool leads_elsewhere(const WIN32_FIND_DATAW *found)
{
	return found->dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT &&
	       IsReparseTagNameSurrogate(found->dwReserved0);
}

static int hand_on(const WIN32_FIND_DATAW *found,
	int (*each)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err)
{
	struct folder_entry entry = {.is_link = leads_elsewhere(found)};
	char *name;
	int rc;

	if (!wcscmp(found->cFileName, L".") || !wcscmp(found->cFileName, L".."))
		return 0;
	name = wide_to_utf8(found->cFileName);
	entry.name = name;
	entry.is_file =
		!entry.is_link &&
		!(found->dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE));
	if (entry.is_file)
		entry.size_bytes = (uint64_t)found->nFileSizeHigh << 32 | found->nFileSizeLow;
	rc = name ? each(ctx, &entry) : err_set(err, ERR_NOMEM, NULL, NULL);
	free(name);
	return rc;
}

/* Returns the pattern that lists `path`: path, separator and "*". After "D:", which is the current
 * folder of that drive, adds no separator. */
static wchar_t *wide_pattern(const char *path)
{
	char last = *path ? path[strlen(path) - 1] : '\\';
	struct buf pattern;
	wchar_t *wide;

	buf_init(&pattern);
	buf_printf(&pattern, "%s%s*", path, strchr("\\/:", last) ? "" : "\\");
	wide = wide_path(pattern.data);
	buf_release(&pattern);
	return wide;
}

int folder_each(const char *path, enum folder_want want,
	int (*entry)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err)
{
	wchar_t *pattern = wide_pattern(path);
	WIN32_FIND_DATAW found;
	char text[300];
	HANDLE handle;
	DWORD code;
	int rc = 0;

	(void)want; /* Windows always returns type and size, at no extra cost */
	if (!pattern)
		return err_set(err, ERR_NOMEM, path, NULL);
	handle = FindFirstFileExW(pattern, FindExInfoBasic, &found, FindExSearchNameMatch, NULL,
		FIND_FIRST_EX_LARGE_FETCH);
	code = GetLastError();
	free(pattern);
	if (handle == INVALID_HANDLE_VALUE && code == ERROR_FILE_NOT_FOUND)
		return 0; /* an empty folder without ".", such as the root of a drive */
	if (handle == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_OPEN, path, "%s", windows_error(code, text, sizeof(text)));
	do
		rc = hand_on(&found, entry, ctx, err);
	while (!rc && FindNextFileW(handle, &found));
	code = GetLastError();
	if (!rc && code != ERROR_NO_MORE_FILES)
		rc = err_set(err, ERR_READ, path, "%s", windows_error(code, text, sizeof(text)));
	FindClose(handle);
	return rc;
}

/* Returns the real path of an open file, or NULL if the system does not know it (some network
 * drives). */
static wchar_t *final_path(HANDLE handle)
{
	DWORD units = GetFinalPathNameByHandleW(handle, NULL, 0, 0);
	wchar_t *path = units ? xmalloc(((size_t)units + 1) * sizeof(*path)) : NULL;
	DWORD got = path ? GetFinalPathNameByHandleW(handle, path, units + 1, 0) : 0;

	if (got && got <= units)
		return path;
	free(path);
	return NULL;
}

/* Returns the last component of path. */
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
	wchar_t *folder = xmalloc((len + 2) * sizeof(*folder)), *result = NULL;
	HANDLE handle;

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

/* Returns true if the opened file is really located somewhere other than at `path`. For a link of
 * the host system, Wine opens and removes the link's target, and does not report a link. */
static bool is_elsewhere(HANDLE handle, const wchar_t *path)
{
	wchar_t *is_at = final_path(handle), *folder = final_folder(path);
	size_t len = folder ? wcslen(folder) : 0;
	bool elsewhere = false;

	if (len && folder[len - 1] == L'\\') /* the root of a drive ends with a backslash */
		len--;
	if (is_at && folder)
		elsewhere = wcslen(is_at) <= len || is_at[len] != L'\\' ||
			    !is_same_path(is_at, folder, (int)len) ||
			    !is_same_path(is_at + len + 1, name_of(path), -1);
	free(is_at);
	free(folder);
	return elsewhere;
}

/* Removes a file or link. Returns 0 or a Windows error code. */
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

/* Upper half of the offset of the locked byte. Other processes cannot read a locked byte, so the
 * byte lies beyond the end of any file. */
#define LOCKED_AT_HIGH 0x3fffffff

char *own_cache_folder(void)
{
	char *caches = os_env("LOCALAPPDATA");
	struct buf path;

	buf_init(&path);
	if (caches && *caches)
		buf_printf(&path, "%s\\hsnap", caches);
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

/* Creates the folders in the path. Errors are ignored here: creating the file will then fail. */
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
			break; /* the file system has no locks */
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
