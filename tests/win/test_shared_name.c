/* Names that two hsnaps on one machine share. Other sessions and users are simulated: their objects
 * deny all access, and a function that fails stands for a process that may not create global
 * objects. */
#include <stdio.h>
#include <string.h>

#include <windows.h>
#include <sddl.h>

#include "snapshot/control/threads_windows.h"
#include "snapshot/live/live_windows.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

#define PID 4242u /* no process in this test has this pid */

/* Returns the rights of a stranger's object: no user has any. */
static SECURITY_ATTRIBUTES *closed(void)
{
	static SECURITY_ATTRIBUTES attributes = {.nLength = sizeof(attributes)};

	if (!attributes.lpSecurityDescriptor)
		ConvertStringSecurityDescriptorToSecurityDescriptorW(
			L"D:P", SDDL_REVISION_1, &attributes.lpSecurityDescriptor, NULL);
	return attributes.lpSecurityDescriptor ? &attributes : NULL;
}

static HANDLE make_event(const wchar_t *full, void *ctx)
{
	(void)ctx;
	return CreateEventW(NULL, TRUE, FALSE, full);
}

static HANDLE find_event(const wchar_t *full, void *ctx)
{
	(void)ctx;
	return OpenEventW(SYNCHRONIZE, FALSE, full);
}

static HANDLE make_here_only(const wchar_t *full, void *ctx)
{
	(void)ctx;
	if (wcsncmp(full, L"Global\\", 7) != 0)
		return CreateEventW(NULL, TRUE, FALSE, full);
	SetLastError(ERROR_ACCESS_DENIED);
	return NULL;
}

static void test_spaces(void)
{
	const wchar_t *space;
	HANDLE made = shared_name_make(L"hsnap-test-a", make_event, NULL, &space), found;

	ok(made && GetLastError() != ERROR_ALREADY_EXISTS && !wcscmp(space, L"Global\\"),
		"an object is for all sessions");
	found = shared_name_make(L"hsnap-test-a", make_event, NULL, &space);
	ok(found && GetLastError() == ERROR_ALREADY_EXISTS, "a second one finds the first");
	CloseHandle(found);
	found = shared_name_find(L"hsnap-test-a", find_event, NULL, &space);
	ok(found && !wcscmp(space, L"Global\\"), "and so does who looks for it");
	CloseHandle(found);
	CloseHandle(made);
	made = shared_name_make(L"hsnap-test-b", make_here_only, NULL, &space);
	ok(made && !wcscmp(space, L"Local\\"), "where that is denied it is for this session");
	found = shared_name_find(L"hsnap-test-b", find_event, NULL, &space);
	ok(found && !wcscmp(space, L"Local\\"), "where it is found");
	CloseHandle(found);
	CloseHandle(made);
	ok(!shared_name_find(L"hsnap-test-b", find_event, NULL, &space) &&
			GetLastError() == ERROR_FILE_NOT_FOUND,
		"what is not there is not found");
}

static void test_closed(void)
{
	HANDLE stranger = CreateEventW(closed(), TRUE, FALSE, L"Global\\hsnap-test-c");
	const wchar_t *space;

	ok(stranger && !make_event(L"Global\\hsnap-test-c", NULL) &&
			GetLastError() == ERROR_ACCESS_DENIED,
		"an object that nobody may open");
	ok(!shared_name_make(L"hsnap-test-c", make_event, NULL, &space) &&
			GetLastError() == ERROR_ACCESS_DENIED,
		"has the name: none is made beside it");
	CloseHandle(stranger);
}

static void test_process_lock(void)
{
	HANDLE stranger = CreateMutexW(closed(), FALSE, L"Global\\hsnap-control-4242");
	struct process_lock lock;

	ok(stranger && !process_lock_acquire(&lock, PID, 0), "another user's lock is a lock");
	ok(process_is_changing(PID), "whose process is being changed");
	ok(!process_lock_acquire(&lock, PID, 50), "and is waited for in vain");
	CloseHandle(stranger);
	ok(process_lock_acquire(&lock, PID, 0), "until it is gone");
	process_lock_release(&lock);
	stranger = CreateEventW(NULL, TRUE, FALSE, L"Global\\hsnap-control-4242");
	ok(process_lock_acquire(&lock, PID, 0), "something else of that name is no lock");
	process_lock_release(&lock);
	CloseHandle(stranger);
}

/* While threads are held, every session can see the hold. */
static void test_hold(void)
{
	PROCESS_INFORMATION info;
	struct threads threads;
	struct err err = {0};
	wchar_t name[60];
	HANDLE seen;

	if (!ok(start_again(L"wait", &info), "a process runs"))
		return;
	_snwprintf(name, 60, L"Global\\hsnap-hold-%lu", info.dwProcessId);
	threads_init(&threads, info.hProcess, "it");
	ok(!threads_hold(&threads, &err), "its threads are held");
	seen = OpenEventW(SYNCHRONIZE, FALSE, name);
	ok(seen != NULL, "which is seen in all sessions");
	if (seen)
		CloseHandle(seen);
	threads_release(&threads);
	TerminateProcess(info.hProcess, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], GUARD_COMMAND))
		return guard_main(argc, argv);
	if (is_to_wait(argc, argv))
		return 0;
	test_spaces();
	test_closed();
	test_process_lock();
	test_hold();
	return ok_end();
}
