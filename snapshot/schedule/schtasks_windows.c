#include "snapshot/schedule/schtasks_windows.h"

#include <stdlib.h>
#include <windows.h>

#include "core/utf_windows.h"
#include "snapshot/control/command_line.h"
#include "snapshot/schedule/task_store_windows.h"

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
