/* The helper continues a suspended process when hsnap is ended by force; in a job, too, that ends all
 * its processes, if it lets any go. Speaks TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

#define WAIT_MS 20000

/* The process that is held: goes on to its end when it may. */
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

/* In hsnap's place: suspends the process, and is ended. */
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

/* Whether a process goes on after its holder was ended in a job with such limits. */
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

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], GUARD_COMMAND))
		return guard_main(argc, argv);
	if (argc == 4 && !strcmp(argv[1], "held"))
		return be_held(handle_of(argv[2]), handle_of(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "holder"))
		return hold_and_die(handle_of(argv[2]), (DWORD)strtoul(argv[3], NULL, 16));
	ok(goes_on(0), "in a job that lets nobody go the helper does its work");
	ok(goes_on(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_BREAKAWAY_OK),
		"it leaves one that would end it");
	return ok_end();
}
