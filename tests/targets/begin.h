/*
 * Starting a process, as the targets do.
 *
 * Where setup/wine may not switch random addresses off, one start in some thousands fails under Wine 8:
 * the new process is gone before it has come to its first instruction, which CreateProcessW() calls an
 * internal error. Nothing of it was there for hsnap to see; so it is started once more.
 */
#ifndef TESTS_TARGETS_BEGIN_H
#define TESTS_TARGETS_BEGIN_H

#include <stdbool.h>
#include <windows.h>

#define BEGIN_TRIES 5

/* In a copy of the command, for the system may write to it; at most 299 characters long. */
static inline bool begin_process(const wchar_t *image, const wchar_t *command, DWORD flags,
	SECURITY_ATTRIBUTES *security, PROCESS_INFORMATION *info)
{
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	wchar_t line[300];
	bool ok = false;

	for (int i = 0; i < BEGIN_TRIES && !ok; i++) {
		wcsncpy(line, command, 299);
		line[299] = L'\0';
		ok = CreateProcessW(
			image, line, security, NULL, TRUE, flags, NULL, NULL, &startup, info);
		if (!ok && GetLastError() != ERROR_INTERNAL_ERROR)
			break;
	}
	return ok;
}

#endif
