/* A process that was started suspended ends with the one that started it, until it is let go. In each
 * way that systems have to tie it. Speaks TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "snapshot/live/spawn_windows.h"
#include "tests/win/tap.h"

#define WAIT_MS 20000

/* Starts this program again; tied afterwards: as on systems before Windows 10. */
static bool start(struct spawn *spawn, wchar_t *command, DWORD flags, bool is_after)
{
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	wchar_t image[MAX_PATH];
	struct spawn_request request = {
		.image = image, .command = command, .flags = flags, .startup = startup};

	*spawn = (struct spawn){0};
	if (!GetModuleFileNameW(NULL, image, MAX_PATH))
		return false;
	if (!is_after)
		return spawn_start(spawn, &request);
	return CreateProcessW(image, command, NULL, NULL, TRUE, flags, NULL, NULL, &startup,
		       &spawn->info) &&
	       spawn_tie(spawn);
}

/* The process in the middle: starts one, says which, and is ended. */
static int start_and_die(bool is_after, bool lets_go)
{
	wchar_t command[] = L"test wait";
	struct spawn spawn;

	if (!start(&spawn, command, CREATE_SUSPENDED, is_after))
		return 0;
	if (lets_go)
		spawn_let_go(&spawn);
	TerminateProcess(GetCurrentProcess(), spawn.info.dwProcessId);
	return 0;
}

/* A handle of the process that one in the middle started before it was ended; NULL: it is gone. */
static HANDLE orphan(const wchar_t *how)
{
	struct spawn middle;
	wchar_t command[40];
	DWORD pid = 0;

	_snwprintf(command, 40, L"test %ls", how);
	if (!start(&middle, command, 0, false))
		return NULL;
	WaitForSingleObject(middle.info.hProcess, WAIT_MS);
	GetExitCodeProcess(middle.info.hProcess, &pid);
	spawn_let_go(&middle);
	ok(pid && pid != STILL_ACTIVE, "one starts another one and dies");
	return OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, FALSE, pid);
}

static void check(const wchar_t *how, bool survives, const char *what)
{
	HANDLE process = orphan(how);
	DWORD status =
		process ? WaitForSingleObject(process, survives ? 200 : WAIT_MS) : WAIT_OBJECT_0;

	ok((status == WAIT_TIMEOUT) == survives, what);
	if (!process)
		return;
	TerminateProcess(process, 0);
	CloseHandle(process);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "wait")) {
		Sleep(WAIT_MS);
		return 0;
	}
	if (argc > 2)
		return start_and_die(!strcmp(argv[1], "after"), !strcmp(argv[2], "free"));
	check(L"with tied", false, "which ends too");
	check(L"with free", true, "which stays when it was let go");
	check(L"after tied", false, "tied afterwards it ends too");
	check(L"after free", true, "and stays when it was let go");
	return ok_end();
}
