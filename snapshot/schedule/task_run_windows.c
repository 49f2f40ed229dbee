#include "snapshot/schedule/task_run_windows.h"

#include <stdlib.h>
#include <windows.h>

#include "core/utf_windows.h"
#include "snapshot/control/delegate_windows.h"
#include "snapshot/control/spawn_windows.h"
#include "snapshot/control/start_fail_windows.h"

/* As Task Scheduler puts it together. */
static wchar_t *command_line(const struct task_read *task)
{
	wchar_t *wide = NULL;
	struct buf line;

	buf_init(&line);
	if (!buf_printf(&line, "\"%s\" %s", task->program.data,
		    task->arguments.data ? task->arguments.data : ""))
		wide = wide_from_utf8(line.data);
	buf_release(&line);
	return wide;
}

static bool start(const struct task_read *task, const wchar_t *program, wchar_t *line,
	const wchar_t *folder, PROCESS_INFORMATION *info)
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	HANDLE none = CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE,
		&inherited, OPEN_EXISTING, 0, NULL);
	bool is_started;

	spawn_pass_streams(&startup);
	startup.dwFlags |= STARTF_USESTDHANDLES;
	startup.hStdInput = none;
	is_started = CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL,
		task->folder.len ? folder : NULL, &startup, info);
	if (none != INVALID_HANDLE_VALUE) {
		DWORD error = GetLastError();

		CloseHandle(none);
		SetLastError(error);
	}
	return is_started;
}

int task_run(const struct task_read *task, uint32_t *exit_status, struct err *err)
{
	wchar_t *program = wide_from_utf8(task->program.data);
	wchar_t *folder = wide_from_utf8(task->folder.data ? task->folder.data : "");
	wchar_t *line = command_line(task);
	PROCESS_INFORMATION info;
	DWORD status = 2;
	int rc = 0;

	leave_interrupts_to_child();
	if (!program || !folder || !line) {
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	} else if (!start(task, program, line, folder, &info)) {
		rc = start_fail(GetLastError(), task->program.data, err);
	} else {
		WaitForSingleObject(info.hProcess, INFINITE);
		GetExitCodeProcess(info.hProcess, &status);
		CloseHandle(info.hThread);
		CloseHandle(info.hProcess);
		*exit_status = status;
	}
	free(line);
	free(folder);
	free(program);
	return rc;
}
