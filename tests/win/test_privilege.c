/* The right to debug is enabled if this process has it, and else nothing changes; processes are found
 * by their own numbers alone. Speaks TAP. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "snapshot/live/live_windows.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

struct privileges {
	DWORD count, enabled;
	bool has_debug, debugs;
};

/* What the token says, and of the right to debug whether it is there and enabled. */
static struct privileges look(void)
{
	struct privileges seen = {0};
	unsigned char bytes[4096];
	TOKEN_PRIVILEGES *all = (void *)bytes;
	DWORD len = 0;
	HANDLE token;
	LUID debug;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
		return seen;
	if (LookupPrivilegeValueW(NULL, L"SeDebugPrivilege", &debug) &&
		GetTokenInformation(token, TokenPrivileges, all, sizeof(bytes), &len))
		seen.count = all->PrivilegeCount;
	for (DWORD i = 0; i < seen.count; i++) {
		const LUID_AND_ATTRIBUTES *one = &all->Privileges[i];
		bool is_enabled = one->Attributes & SE_PRIVILEGE_ENABLED;

		seen.enabled += is_enabled;
		if (!memcmp(&one->Luid, &debug, sizeof(debug))) {
			seen.has_debug = true;
			seen.debugs = is_enabled;
		}
	}
	CloseHandle(token);
	return seen;
}

static void check_privilege(void)
{
	struct privileges before = look(), after;
	bool result = process_enable_debug(), again = process_enable_debug();

	after = look();
	printf("# %lu privileges, %lu enabled, to debug: %d\n", before.count, before.enabled,
		before.has_debug);
	ok(before.count, "this process has rights");
	ok(result == before.has_debug && result == again, "it says whether it has this one");
	ok(after.debugs == before.has_debug, "and has it enabled then");
	ok(after.count == before.count &&
			after.enabled == before.enabled + (after.debugs && !before.debugs),
		"no other one changes");
}

static void check_numbers(void)
{
	PROCESS_INFORMATION info = {0};
	struct err err = {0};
	HANDLE process = NULL;

	ok(start_again(L"wait", &info), "a program runs");
	ok(!process_open(info.dwProcessId, PROCESS_QUERY_INFORMATION, 0, &process, &err) &&
			GetProcessId(process) == info.dwProcessId,
		"it is found by its number");
	CloseHandle(process);
	process = NULL;
	for (DWORD bits = 1; bits < 4; bits++)
		ok(process_open(info.dwProcessId + bits, PROCESS_QUERY_INFORMATION, 0, &process,
			   &err) == -ERR_NO_PROCESS &&
				!process,
			"not by one beside it");
	ok(process_open(GetCurrentProcessId(), PROCESS_QUERY_INFORMATION, 0, &process, &err) ==
			-ERR_USAGE,
		"this one is refused");
	ok(process_open(GetCurrentProcessId() + 1, PROCESS_QUERY_INFORMATION, 0, &process, &err) ==
			-ERR_NO_PROCESS,
		"and the one beside it is none");
	TerminateProcess(info.hProcess, 0);
	CloseHandle(info.hThread);
	CloseHandle(info.hProcess);
}

int main(int argc, char **argv)
{
	if (is_to_wait(argc, argv))
		return 0;
	check_privilege();
	check_numbers();
	return ok_end();
}
