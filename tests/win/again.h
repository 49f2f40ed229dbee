/* Starts this test again with other arguments, for tests that need a second process. */
#ifndef TESTS_WIN_AGAIN_H
#define TESTS_WIN_AGAIN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

/* Starts the test again. The child inherits all inheritable handles. */
static inline bool start_again(const wchar_t *arguments, PROCESS_INFORMATION *info)
{
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	wchar_t image[MAX_PATH], command[2 * MAX_PATH];

	_snwprintf(command, 2 * MAX_PATH, L"test %ls", arguments);
	return GetModuleFileNameW(NULL, image, MAX_PATH) &&
	       CreateProcessW(image, command, NULL, NULL, TRUE, 0, NULL, NULL, &startup, info);
}

/* Gets this program's path in UTF-8, which hsnap uses for paths. The path is empty if it does not
 * fit. */
static inline void own_path(char *path, int size)
{
	wchar_t wide[MAX_PATH];

	if (!GetModuleFileNameW(NULL, wide, MAX_PATH) ||
		!WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, size, NULL, NULL))
		*path = '\0';
}

/* Makes an inheritable auto-reset event. */
static inline HANDLE shared_event(void)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};

	return CreateEventW(&inherit, FALSE, FALSE, NULL);
}

/* Parses an inherited handle from an argument in hexadecimal digits. */
static inline HANDLE handle_of(const char *text)
{
	return (HANDLE)(ULONG_PTR)strtoull(text, NULL, 16);
}

/* Waits to be terminated, if this process was started for that. */
static inline bool is_to_wait(int argc, char **argv)
{
	if (argc != 2 || strcmp(argv[1], "wait") != 0)
		return false;
	Sleep(60000);
	return true;
}

#endif
