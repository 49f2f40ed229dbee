#include <stdint.h>
#include <stdlib.h>

#include <windows.h>
#include <aclapi.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/io/command_line.h"
#include "snapshot/schedule/scheduler_windows.h"
#include "snapshot/schedule/task.h"

#define CHANGES                                                                                    \
	(FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_DELETE_CHILD | DELETE | WRITE_DAC |             \
		WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL)

static bool is_everybody(SID *who)
{
	static const WELL_KNOWN_SID_TYPE all[] = {
		WinWorldSid, WinBuiltinUsersSid, WinAuthenticatedUserSid, WinInteractiveSid};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (IsWellKnownSid(who, all[i]))
			return true;
	}
	return false;
}

bool rights_are_everybodys(ACL *list)
{
	if (!list)
		return true;
	for (DWORD i = 0; i < list->AceCount; i++) {
		ACCESS_ALLOWED_ACE *entry;

		if (GetAce(list, i, (void **)&entry) &&
			entry->Header.AceType == ACCESS_ALLOWED_ACE_TYPE &&
			!(entry->Header.AceFlags & INHERIT_ONLY_ACE) && entry->Mask & CHANGES &&
			is_everybody((SID *)&entry->SidStart))
			return true;
	}
	return false;
}

/* Of what the path leads to, or with FILE_FLAG_OPEN_REPARSE_POINT of a link there itself. */
static bool is_everybodys(const wchar_t *path, DWORD flags)
{
	HANDLE handle = CreateFileW(path, READ_CONTROL,
		FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
		FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
	PSECURITY_DESCRIPTOR all = NULL;
	ACL *list = NULL;
	bool is_so = false;

	if (handle == INVALID_HANDLE_VALUE)
		return false;
	if (GetSecurityInfo(handle, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, NULL, NULL, &list,
		    NULL, &all) == ERROR_SUCCESS) {
		is_so = rights_are_everybodys(list);
		LocalFree(all);
	}
	CloseHandle(handle);
	return is_so;
}

bool rights_of_path_are_everybodys(const wchar_t *path)
{
	return is_everybodys(path, 0) || is_everybodys(path, FILE_FLAG_OPEN_REPARSE_POINT);
}

#define LIMIT_MS 60000
#define PROGRAM L"\\schtasks.exe"

/* With no streams at all: it cannot ask, and what it says goes nowhere. False with the last error set. */
static bool start(const wchar_t *program, wchar_t *line, PROCESS_INFORMATION *info)
{
	STARTUPINFOW startup = {.cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES};

	return CreateProcessW(
		program, line, NULL, NULL, FALSE, CREATE_NO_WINDOW, NULL, NULL, &startup, info);
}

/* Its exit status; 1 when it takes too long, and is ended. */
static DWORD finish(const PROCESS_INFORMATION *info)
{
	DWORD status = 1;

	if (WaitForSingleObject(info->hProcess, LIMIT_MS) != WAIT_OBJECT_0)
		TerminateProcess(info->hProcess, 1);
	else
		GetExitCodeProcess(info->hProcess, &status);
	CloseHandle(info->hThread);
	CloseHandle(info->hProcess);
	return status;
}

static int ask(const char *name, const char *const *argv, struct err *err)
{
	wchar_t program[MAX_PATH + sizeof(PROGRAM)], *wide = NULL;
	UINT len = GetSystemDirectoryW(program, MAX_PATH);
	PROCESS_INFORMATION info;
	char text[300];
	struct buf line;
	DWORD status;
	int rc = 0;

	buf_init(&line);
	if (!command_line_add(&line, argv))
		wide = wide_from_utf8(line.data);
	if (!wide || !len || len >= MAX_PATH) {
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	} else if (!start(wcscat(program, PROGRAM), wide, &info)) {
		rc = err_set(err, ERR_SYSTEM, name, "schtasks.exe: %s",
			windows_error(GetLastError(), text, sizeof(text)));
	} else {
		status = finish(&info);
		if (status)
			rc = err_set(err, ERR_SYSTEM, name,
				"schtasks.exe ended with status %lu; run hsnap as administrator",
				status);
	}
	free(wide);
	buf_release(&line);
	return rc;
}

/* A file of this user's with the bytes in it, whose path is in the empty path: 0 or an error. */
static int write_file(wchar_t path[MAX_PATH], const struct buf *bytes, struct err *err)
{
	wchar_t folder[MAX_PATH];
	DWORD len = GetTempPathW(MAX_PATH, folder), done = 0;
	HANDLE file = INVALID_HANDLE_VALUE;
	char text[300];
	bool is_well;

	path[0] = L'\0';
	if (len && len < MAX_PATH && GetTempFileNameW(folder, L"hsn", 0, path))
		file = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
			FILE_ATTRIBUTE_TEMPORARY, NULL);
	is_well = file != INVALID_HANDLE_VALUE &&
		  WriteFile(file, bytes->data, (DWORD)bytes->len, &done, NULL) &&
		  done == bytes->len;
	windows_error(GetLastError(), text, sizeof(text));
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	return is_well ? 0 : err_set(err, ERR_SYSTEM, "a file for schtasks.exe", "%s", text);
}

static int name_add(struct buf *path, const char *name)
{
	return buf_printf(path, "\\hsnap\\%s", name);
}

/* What it does not tell: whether there is one. 0, -ERR_NO_TASK, or -ERR_ADMIN: that cannot be seen. */
static int look(const char *name, struct err *err)
{
	struct buf bytes;
	int rc;

	buf_init(&bytes);
	rc = task_store_read(&bytes, name, err);
	buf_release(&bytes);
	return rc == -ERR_TASK ? 0 : rc;
}

int schtasks_add(const char *name, const struct buf *bytes, bool may_replace, struct err *err)
{
	wchar_t wide[MAX_PATH];
	struct buf task;
	char *file;
	int rc;

	if (!may_replace && !look(name, NULL))
		return err_set(err, ERR_TASK_EXISTS, name, NULL);
	rc = write_file(wide, bytes, err);
	file = rc ? NULL : utf8_from_wide(wide);
	buf_init(&task);
	if (!rc && (!file || name_add(&task, name)))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	if (!rc) {
		const char *const argv[] = {"schtasks.exe", "/create", "/xml", file, "/tn",
			task.data, may_replace ? "/f" : NULL, NULL};

		rc = ask(name, argv, err);
	}
	if (wide[0])
		DeleteFileW(wide);
	buf_release(&task);
	free(file);
	return rc;
}

int schtasks_remove(const char *name, struct err *err)
{
	struct buf task;
	int rc = look(name, err);

	if (rc)
		return rc;
	buf_init(&task);
	if (name_add(&task, name)) {
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	} else {
		const char *const argv[] = {
			"schtasks.exe", "/delete", "/tn", task.data, "/f", NULL};

		rc = ask(name, argv, err);
	}
	buf_release(&task);
	return rc;
}

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
