/* Other processes. A suspended process continues if hsnap is terminated. A process that hsnap
 * starts suspended ends with it until it is released. Processes are found by their exact numbers.
 * The right to debug is enabled if this process has it; otherwise nothing changes. Prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "snapshot/live/live_windows.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/live/spawn_windows.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

#define WAIT_MS 20000

/* ---------------------------------------------------------------- suspended processes */

/* The held process, which ends when it is allowed to continue. */
static int be_held(HANDLE ready, HANDLE go)
{
	SetEvent(ready);
	WaitForSingleObject(go, WAIT_MS);
	return 0;
}

static bool enter_job(DWORD limits)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION info = {.BasicLimitInformation.LimitFlags = limits};
	HANDLE job = CreateJobObjectW(NULL, NULL);

	return SetInformationJobObject(
		       job, JobObjectExtendedLimitInformation, &info, sizeof(info)) &&
	       AssignProcessToJobObject(job, GetCurrentProcess());
}

/* Plays hsnap: suspends the process, and is terminated. */
static int hold_and_die(HANDLE process, DWORD limits)
{
	struct resume_guard *guard;

	if (!enter_job(limits))
		return 3;
	guard = guard_start(process);
	if (!guard)
		return 4;
	guard_arm(guard);
	if (NtSuspendProcess(process) < 0)
		return 5;
	TerminateProcess(GetCurrentProcess(), 77);
	return 0;
}

/* Returns true if a process continues after its holder was terminated in a job with these
 * limits. */
static bool goes_on(DWORD limits)
{
	HANDLE ready = shared_event(), go = shared_event(), process = NULL;
	PROCESS_INFORMATION held = {0}, holder = {0};
	wchar_t arguments[80];
	DWORD status = 0;
	bool ended;

	_snwprintf(arguments, 80, L"held %llx %llx", (unsigned long long)ready,
		(unsigned long long)go);
	ok(start_again(arguments, &held) && WaitForSingleObject(ready, WAIT_MS) == WAIT_OBJECT_0,
		"a process runs");
	DuplicateHandle(GetCurrentProcess(), held.hProcess, GetCurrentProcess(), &process, 0, TRUE,
		DUPLICATE_SAME_ACCESS);
	_snwprintf(arguments, 80, L"holder %llx %lx", (unsigned long long)process, limits);
	if (start_again(arguments, &holder)) {
		WaitForSingleObject(holder.hProcess, WAIT_MS);
		GetExitCodeProcess(holder.hProcess, &status);
	}
	ok(status == 77, "another one holds it and is ended");
	SetEvent(go);
	ended = WaitForSingleObject(held.hProcess, WAIT_MS) == WAIT_OBJECT_0;
	TerminateProcess(held.hProcess, 0);
	return ended;
}

/* ---------------------------------------------------------------- processes started suspended */

/* The process in the middle starts a process, reports it, and is terminated. is_after: ties the new
 * process to itself only after the start, as on systems before Windows 10. */
static int start_and_die(bool is_after, bool lets_go)
{
	wchar_t image[MAX_PATH], command[] = L"test wait";
	struct spawn_request request = {.image = image,
		.command = command,
		.flags = CREATE_SUSPENDED,
		.startup.cb = sizeof(STARTUPINFOW)};
	struct spawn spawn = {0};

	if (!GetModuleFileNameW(NULL, image, MAX_PATH))
		return 0;
	if (is_after ? !start_again(L"wait", &spawn.info) || !spawn_tie(&spawn) :
		       !spawn_start(&spawn, &request))
		return 0;
	if (lets_go)
		spawn_let_go(&spawn);
	TerminateProcess(GetCurrentProcess(), spawn.info.dwProcessId);
	return 0;
}

static void check_orphan(const wchar_t *how, bool survives, const char *what)
{
	PROCESS_INFORMATION middle;
	DWORD pid = 0, status;
	HANDLE process;

	if (!ok(start_again(how, &middle), "a process in the middle"))
		return;
	WaitForSingleObject(middle.hProcess, WAIT_MS);
	GetExitCodeProcess(middle.hProcess, &pid);
	ok(pid && pid != STILL_ACTIVE, "one starts another one and dies");
	process = OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, FALSE, pid);
	status = process ? WaitForSingleObject(process, survives ? 200 : WAIT_MS) : WAIT_OBJECT_0;
	ok((status == WAIT_TIMEOUT) == survives, what);
	TerminateProcess(process, 0);
	CloseHandle(process);
}

/* ---------------------------------------------------------------- rights and process ids */

struct privileges {
	DWORD count, enabled;
	bool has_debug, debugs;
};

/* Reads the token's privileges. Sets has_debug if the token has the right to debug, and debugs if
 * that right is enabled. */
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
	if (argc > 1 && !strcmp(argv[1], GUARD_COMMAND))
		return guard_main(argc, argv);
	if (argc == 4 && !strcmp(argv[1], "held"))
		return be_held(handle_of(argv[2]), handle_of(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "holder"))
		return hold_and_die(handle_of(argv[2]), (DWORD)strtoul(argv[3], NULL, 16));
	if (argc == 3)
		return start_and_die(!strcmp(argv[1], "after"), !strcmp(argv[2], "free"));
	ok(goes_on(0), "in a job that lets nobody go the helper does its work");
	ok(goes_on(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_BREAKAWAY_OK),
		"it leaves one that would end it");
	check_orphan(L"with tied", false, "which ends too");
	check_orphan(L"with free", true, "which stays when it was let go");
	check_orphan(L"after tied", false, "tied afterwards it ends too");
	check_orphan(L"after free", true, "and stays when it was let go");
	check_privilege();
	check_numbers();
	return ok_end();
}
