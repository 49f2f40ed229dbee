/* If a part of a mapped file cannot be read, the process ends with a line and status 2. Exceptions
 * at other addresses do not have this effect. The test raises the system's exception. Prints
 * TAP. */
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include "core/base/os.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

#define LINE "the file is gone\n"

static void on_lost(void)
{
	DWORD put;

	WriteFile(GetStdHandle(STD_ERROR_HANDLE), "handled: ", 9, &put, NULL);
}

/* The child maps its own image and raises the exception of a failed read. */
static int lose(const char *self, const char *how)
{
	const bool is_inside = !strcmp(how, "inside");
	ULONG_PTR arguments[3] = {0, 0, 0xc000009c};
	struct os_map map;
	struct err err;

	if (os_map(&map, self, &err))
		return 78;
	os_guard_map(&map, LINE, on_lost);
	arguments[1] = (ULONG_PTR)map.bytes + map.len - is_inside;
	if (!strcmp(how, "closed")) {
		arguments[1] = (ULONG_PTR)map.bytes;
		os_unmap(&map);
	}
	RaiseException((DWORD)EXCEPTION_IN_PAGE_ERROR, 0, 3, arguments);
	return 79;
}

/* Runs a child and captures its output; returns its exit status. */
static DWORD run_child(const char *how, char *text, DWORD size)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	PROCESS_INFORMATION info;
	wchar_t arguments[60];
	DWORD status = 77, len = 0, got = 0;
	HANDLE from, to;

	*text = '\0';
	if (!CreatePipe(&from, &to, &inherit, 0))
		return status;
	_snwprintf(arguments, 60, L"%hs %llx", how, (unsigned long long)to);
	if (start_again(arguments, &info)) {
		WaitForSingleObject(info.hProcess, 30000);
		GetExitCodeProcess(info.hProcess, &status);
	}
	CloseHandle(to);
	while (len < size - 1 && ReadFile(from, text + len, size - 1 - len, &got, NULL) && got)
		len += got;
	text[len] = '\0';
	CloseHandle(from);
	return status;
}

static LONG WINAPI end_quietly(EXCEPTION_POINTERS *exception)
{
	(void)exception;
	ExitProcess(80);
}

int main(int argc, char **argv)
{
	char text[200], self[3 * MAX_PATH];

	if (argc == 3) {
		SetStdHandle(STD_ERROR_HANDLE, handle_of(argv[2]));
		SetUnhandledExceptionFilter(end_quietly);
		own_path(self, sizeof(self));
		return lose(self, argv[1]);
	}
	ok(run_child("inside", text, sizeof(text)) == 2, "a failure inside the map: status 2");
	ok(!strcmp(text, "handled: " LINE), "the handler and the line");
	ok(run_child("outside", text, sizeof(text)) == 80, "one byte behind it: as without");
	ok(!*text, "and nothing is said");
	ok(run_child("closed", text, sizeof(text)) == 80, "so when it is no longer mapped");
	ok(!*text, "and nothing is said");
	return ok_end();
}
