/*
 * Runs a program with an empty environment, and returns its exit status:
 *
 *   no_environment PROG [ARG...]   PROG by its full path
 *   no_environment                 prints the names of its own variables
 */
#include <stdio.h>
#include <wchar.h>
#include <windows.h>

static void print_names(void)
{
	wchar_t *all = GetEnvironmentStringsW();

	for (wchar_t *at = all; at && *at; at += wcslen(at) + 1)
		printf("%.*ls\n", (int)wcscspn(at + 1, L"=") + 1, at);
	FreeEnvironmentStringsW(all);
}

/* Returns the rest of this program's command line after its first word. None of the tests' paths
 * contains a quote. */
static wchar_t *rest(wchar_t *line)
{
	wchar_t *end = *line == L'"' ? wcschr(line + 1, L'"') + 1 : line + wcscspn(line, L" ");

	return end + wcsspn(end, L" ");
}

int main(void)
{
	static wchar_t nothing[2];
	wchar_t *line = rest(GetCommandLineW());
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	PROCESS_INFORMATION info;
	DWORD status = 1;

	if (!*line) {
		print_names();
		return 0;
	}
	if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_UNICODE_ENVIRONMENT, nothing, NULL,
		    &startup, &info)) {
		fprintf(stderr, "no_environment: error %lu\n", GetLastError());
		return 1;
	}
	WaitForSingleObject(info.hProcess, INFINITE);
	GetExitCodeProcess(info.hProcess, &status);
	return (int)status;
}
