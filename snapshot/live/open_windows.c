#include "snapshot/live/open_windows.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/utf_windows.h"
#include "snapshot/live/privilege_windows.h"

static int refused(const char *place, DWORD code, struct err *err)
{
	char text[300];

	if (code == ERROR_ACCESS_DENIED)
		return err_set(err, ERR_RIGHTS, place, NULL);
	return err_set(err, ERR_NO_PROCESS, place, code == ERROR_INVALID_PARAMETER ? NULL : "%s",
		windows_error(code, text, sizeof(text)));
}

/* The system pays no attention to the two lowest bits: it may have opened a process that was not
 * asked for. */
static int check(HANDLE process, uint32_t pid, const char *place, struct err *err)
{
	if (GetProcessId(process) != pid)
		return err_set(err, ERR_NO_PROCESS, place, NULL);
	if (pid == GetCurrentProcessId())
		return err_set(err, ERR_USAGE, place, "that is hsnap itself");
	return 0;
}

int process_open(uint32_t pid, DWORD rights, DWORD more, HANDLE *process, struct err *err)
{
	HANDLE opened;
	char place[40];
	int rc;

	snprintf(place, sizeof(place), "pid %" PRIu32, pid);
	privilege_debug();
	opened = OpenProcess(rights | more, FALSE, pid);
	if (!opened && more)
		opened = OpenProcess(rights, FALSE, pid);
	if (!opened)
		return refused(place, GetLastError(), err);
	rc = check(opened, pid, place, err);
	if (rc)
		CloseHandle(opened);
	else
		*process = opened;
	return rc;
}
