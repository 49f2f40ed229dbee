#include "snapshot/schedule/task_run_windows.h"

#include <stdlib.h>
#include <windows.h>

#include "core/buf.h"
#include "core/utf_windows.h"
#include "snapshot/control/delegate_windows.h"
#include "snapshot/control/spawn_windows.h"
#include "snapshot/control/start_fail_windows.h"

/* As Task Scheduler puts it together. */
static wchar_t *command_line(const char *program, const char *arguments)
{
	wchar_t *wide = NULL;
	struct buf line;

	buf_init(&line);
	if (!buf_printf(&line, "\"%s\" %s", program, arguments ? arguments : ""))
		wide = wide_from_utf8(line.data);
	buf_release(&line);
	return wide;
}

static bool start(
	const wchar_t *program, wchar_t *line, const wchar_t *folder, PROCESS_INFORMATION *info)
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	HANDLE none = CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE,
		&inherited, OPEN_EXISTING, 0, NULL);
	bool is_started;

	spawn_pass_streams(&startup);
	startup.dwFlags |= STARTF_USESTDHANDLES;
	startup.hStdInput = none;
	is_started =
		CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, folder, &startup, info);
	if (none != INVALID_HANDLE_VALUE) {
		DWORD error = GetLastError();

		CloseHandle(none);
		SetLastError(error);
	}
	return is_started;
}

/* "C:\folder\" of "C:\folder\program.exe". */
static wchar_t *folder_of(const char *program)
{
	wchar_t *folder = wide_from_utf8(program);
	wchar_t *name = folder ? wcsrchr(folder, L'\\') : NULL;

	if (name)
		name[1] = L'\0';
	return folder;
}

int task_run(const char *program, const char *arguments, uint32_t *exit_status, struct err *err)
{
	wchar_t *wide = wide_from_utf8(program), *folder = folder_of(program);
	wchar_t *line = command_line(program, arguments);
	PROCESS_INFORMATION info;
	DWORD status = 2;
	int rc = 0;

	leave_interrupts_to_child();
	if (!wide || !folder || !line) {
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	} else if (!start(wide, line, folder, &info)) {
		rc = start_fail(GetLastError(), program, err);
	} else {
		WaitForSingleObject(info.hProcess, INFINITE);
		GetExitCodeProcess(info.hProcess, &status);
		CloseHandle(info.hThread);
		CloseHandle(info.hProcess);
		*exit_status = status;
	}
	free(line);
	free(folder);
	free(wide);
	return rc;
}
