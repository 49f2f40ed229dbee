#include "snapshot/control/delegate_windows.h"

#include <stdlib.h>
#include <windows.h>

#include "snapshot/control/command_line.h"
#include "snapshot/control/program_windows.h"
#include "snapshot/control/spawn_windows.h"
#include "snapshot/control/start_fail_windows.h"

static BOOL WINAPI leave_to_child(DWORD type)
{
	return type == CTRL_C_EVENT || type == CTRL_BREAK_EVENT;
}

void leave_interrupts_to_child(void)
{
	SetConsoleCtrlHandler(leave_to_child, TRUE);
}

/* The arguments of this process as they are, behind another program. */
static wchar_t *same_arguments(void)
{
	static const wchar_t program[] = L"" HSNAP_32;
	const wchar_t *rest = command_line_rest(GetCommandLineW());
	wchar_t *line = malloc(sizeof(program) + wcslen(rest) * sizeof(*line));

	if (!line)
		return NULL;
	wcscpy(line, program);
	wcscat(line, rest);
	return line;
}

static int start(const char *name, const wchar_t *image, struct spawn *spawn, struct err *err)
{
	struct spawn_request request = {
		.image = image, .command = same_arguments(), .flags = CREATE_SUSPENDED};
	int rc = 0;

	if (!request.command)
		return err_set(err, ERR_NOMEM, name, NULL);
	spawn_pass_streams(&request.startup);
	if (!spawn_start(spawn, &request))
		rc = start_fail(GetLastError(), HSNAP_32, err);
	free(request.command);
	return rc;
}

/* It stays tied to this process: what it does is for whoever waits for this one. */
static uint32_t finish(struct spawn *spawn)
{
	DWORD status = 2;

	ResumeThread(spawn->info.hThread);
	WaitForSingleObject(spawn->info.hProcess, INFINITE);
	GetExitCodeProcess(spawn->info.hProcess, &status);
	CloseHandle(spawn->info.hThread);
	CloseHandle(spawn->info.hProcess);
	spawn_let_go(spawn);
	return status;
}

/* NULL with err set when there is no such file, or when it is this very program. */
static wchar_t *find_other(const char *name, struct err *err)
{
	wchar_t *image = program_beside(L"" HSNAP_32);

	if (!image) {
		err_set(err, ERR_BITS, name, HSNAP_32 " does not lie beside this hsnap");
	} else if (program_is_this(image)) {
		err_set(err, ERR_BITS, name, "and this " HSNAP_32 " is not");
		free(image);
		image = NULL;
	}
	return image;
}

int delegate(const char *name, uint32_t *exit_status, struct err *err)
{
	wchar_t *image;
	struct spawn spawn = {0};
	int rc;

	if (OUR_BITS == 32)
		return err_set(err, ERR_64_BITS, name, NULL);
	image = find_other(name, err);
	if (!image)
		return -ERR_BITS;
	leave_interrupts_to_child();
	rc = start(name, image, &spawn, err);
	if (!rc)
		*exit_status = finish(&spawn);
	free(image);
	return rc;
}
