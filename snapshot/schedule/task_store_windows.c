#include "snapshot/schedule/task_store_windows.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/os.h"
#include "core/utf_windows.h"
#include "snapshot/schedule/scheduler_fail_windows.h"
#include "snapshot/schedule/task/task_xml.h"

#define PATH_UNITS (MAX_PATH + 300) /* and a name, which ifeo_check_name() limits */

bool task_store_is_wine(void)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");

	return ntdll && GetProcAddress(ntdll, "wine_get_version");
}

/* "SYSTEM32\Tasks\hsnap\NAME": false, when it does not fit. */
static bool store_path(wchar_t path[PATH_UNITS], const wchar_t *name)
{
	static const wchar_t folder[] = L"\\Tasks\\hsnap\\";
	UINT len = GetSystemDirectoryW(path, MAX_PATH);

	if (!len || len >= MAX_PATH || len + wcslen(folder) + wcslen(name) >= PATH_UNITS)
		return false;
	wcscat(wcscat(path, folder), name);
	return true;
}

/* The same as UTF-8, for the functions of core: the caller's to free; NULL: no room. */
static char *store_path_of(const char *name)
{
	wchar_t path[PATH_UNITS], *wide = wide_from_utf8(name);
	char *text = wide && store_path(path, wide) ? utf8_from_wide(path) : NULL;

	free(wide);
	return text;
}

/* Reads all of an open file, which is no longer than a task may be. */
static int read_all(struct os_file *file, struct buf *bytes, const char *name, struct err *err)
{
	char piece[4096];
	int64_t len;

	while ((len = os_read(file, piece, sizeof(piece), name, err)) > 0) {
		if (bytes->len + (size_t)len > 2 * TASK_XML_MAX_BYTES)
			return err_set(err, ERR_TASK, name, "it is too long");
		if (buf_add(bytes, piece, (size_t)len))
			return err_set(err, ERR_NOMEM, NULL, NULL);
	}
	return (int)len;
}

/* And not only kept from us. */
static bool is_missing(const char *path)
{
	wchar_t *wide = wide_path(path);
	DWORD attributes = wide ? GetFileAttributesW(wide) : 0, error = GetLastError();

	free(wide);
	return attributes == INVALID_FILE_ATTRIBUTES &&
	       (error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND);
}

int task_store_read(struct buf *bytes, const char *name, struct err *err)
{
	char *path = store_path_of(name);
	struct os_file file;
	int rc;

	if (!path)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	if (os_open(&file, path, NULL)) {
		rc = is_missing(path) ? scheduler_no_task(name, err) :
					scheduler_fail(E_ACCESSDENIED, name, err);
	} else {
		rc = read_all(&file, bytes, name, err);
		os_close(&file);
	}
	free(path);
	return rc;
}

int task_store_write(const struct buf *bytes, const char *name, struct err *err)
{
	char *path = store_path_of(name);
	wchar_t *wide = path ? wide_path(path) : NULL;
	HANDLE file = wide ? CreateFileW(wide, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
				     FILE_ATTRIBUTE_NORMAL, NULL) :
			     INVALID_HANDLE_VALUE;
	DWORD done = 0;
	char text[300];
	int rc = 0;

	if (file == INVALID_HANDLE_VALUE ||
		!WriteFile(file, bytes->data, (DWORD)bytes->len, &done, NULL) || done < bytes->len)
		rc = err_set(err, ERR_SYSTEM, name, "Wine's store of tasks: %s",
			windows_error(GetLastError(), text, sizeof(text)));
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	free(wide);
	free(path);
	return rc;
}

HRESULT task_store_each(HRESULT (*each)(void *ctx, const wchar_t *name), void *ctx)
{
	wchar_t path[PATH_UNITS];
	WIN32_FIND_DATAW found;
	HRESULT hr = S_OK;
	HANDLE search;

	if (!store_path(path, L"*"))
		return E_OUTOFMEMORY;
	search = FindFirstFileW(path, &found);
	if (search == INVALID_HANDLE_VALUE)
		return GetLastError() == ERROR_ACCESS_DENIED ? E_ACCESSDENIED : S_OK;
	do {
		if (!(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY))
			hr = each(ctx, found.cFileName);
	} while (hr == S_OK && FindNextFileW(search, &found));
	FindClose(search);
	return hr;
}
