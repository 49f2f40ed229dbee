#include "snapshot/live/privilege_windows.h"

#include <windows.h>

/* AdjustTokenPrivileges() succeeds when it enabled nothing; the last error tells. */
static bool enable(HANDLE token, const wchar_t *name)
{
	TOKEN_PRIVILEGES wanted = {
		.PrivilegeCount = 1, .Privileges = {{.Attributes = SE_PRIVILEGE_ENABLED}}};

	return LookupPrivilegeValueW(NULL, name, &wanted.Privileges[0].Luid) &&
	       AdjustTokenPrivileges(token, FALSE, &wanted, 0, NULL, NULL) &&
	       GetLastError() == ERROR_SUCCESS;
}

bool privilege_debug(void)
{
	static bool is_tried, is_enabled;
	HANDLE token;

	if (is_tried)
		return is_enabled;
	is_tried = true;
	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token))
		return false;
	is_enabled = enable(token, L"SeDebugPrivilege");
	CloseHandle(token);
	return is_enabled;
}
