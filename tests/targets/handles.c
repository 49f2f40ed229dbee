/*
 * Handles of each type, opened and closed in known functions. Step 1 opens some before the tracer
 * may be attached. Step 2 opens what the lines below state, and closes others; step 3 closes all of
 * step 2.
 *
 * handles: open_events event 30
 * handles: open_files file 3
 * handles: open_keys key 6
 * handles: open_mutexes mutant 5
 * handles: open_processes process 8
 * handles: open_sections section 2
 * handles: open_semaphores semaphore 4
 * handles: open_threads thread 7
 * handles: open_timers timer 3
 * handles: open_tokens token 9
 * handles: open_ports other 1
 * handles: copy_events event 12
 * handles: copy_early_events event 2
 * handles: copy_early_keys key 3
 * handles: move_events event 2
 */
#include "samples/step.h"

#define NOINLINE __attribute__((noinline))

static HANDLE list[200]; /* all open handles */
static int count;

static void keep(HANDLE handle)
{
	if (!handle || handle == INVALID_HANDLE_VALUE)
		ExitProcess(3); /* the stated truth would be wrong */
	list[count++] = handle;
}

static HKEY open_key(void)
{
	HKEY key = NULL;

	RegOpenKeyExW(HKEY_LOCAL_MACHINE, L"Software", 0, KEY_READ, &key);
	return key;
}

static DWORD WINAPI end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

/* Opens 40 events and closes 10 of them. */
static NOINLINE void open_events(void)
{
	for (int i = 0; i < 40; i++) {
		HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);

		if (i % 4)
			keep(event);
		else
			CloseHandle(event);
	}
}

static NOINLINE void open_files(void)
{
	WCHAR path[MAX_PATH];

	GetModuleFileNameW(NULL, path, MAX_PATH);
	for (int i = 0; i < 3; i++)
		keep(CreateFileW(
			path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL));
}

static NOINLINE void open_keys(void)
{
	for (int i = 0; i < 6; i++)
		keep((HANDLE)open_key());
}

static NOINLINE void open_mutexes(void)
{
	for (int i = 0; i < 5; i++)
		keep(CreateMutexW(NULL, FALSE, NULL));
}

static NOINLINE void open_processes(void)
{
	for (int i = 0; i < 8; i++)
		keep(OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, GetCurrentProcessId()));
}

static NOINLINE void open_sections(void)
{
	for (int i = 0; i < 2; i++)
		keep(CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 4096, NULL));
}

static NOINLINE void open_semaphores(void)
{
	for (int i = 0; i < 4; i++)
		keep(CreateSemaphoreW(NULL, 0, 1, NULL));
}

static NOINLINE void open_threads(void)
{
	for (int i = 0; i < 7; i++) {
		HANDLE thread = CreateThread(NULL, 0, end_at_once, NULL, 0, NULL);

		keep(thread);
		WaitForSingleObject(thread, INFINITE);
	}
}

static NOINLINE void open_timers(void)
{
	for (int i = 0; i < 3; i++)
		keep(CreateWaitableTimerW(NULL, TRUE, NULL));
}

static NOINLINE void open_tokens(void)
{
	for (int i = 0; i < 9; i++) {
		HANDLE token = NULL;

		OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token);
		keep(token);
	}
}

static NOINLINE void open_ports(void)
{
	keep(CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0));
}

static void copy(HANDLE handle)
{
	HANDLE made = NULL;

	DuplicateHandle(GetCurrentProcess(), handle, GetCurrentProcess(), &made, 0, FALSE,
		DUPLICATE_SAME_ACCESS);
	keep(made);
}

/* Copies an event that open_events() opened. */
static NOINLINE void copy_events(void)
{
	for (int i = 0; i < 12; i++)
		copy(list[2]);
}

/* These and the next copies are of handles that step 1 opened. */
static NOINLINE void copy_early_keys(void)
{
	for (int i = 0; i < 3; i++)
		copy(list[0]);
}

static NOINLINE void copy_early_events(void)
{
	for (int i = 0; i < 2; i++)
		copy(list[1]);
}

/* Closing the sources is a part of the call. */
static NOINLINE void move_events(void)
{
	for (int i = 0; i < 2; i++) {
		HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL), moved = NULL;

		DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &moved, 0, FALSE,
			DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE);
		keep(moved);
	}
}

int main(void)
{
	keep((HANDLE)open_key()); /* the library caches its own handles in the first call */
	keep(CreateEventW(NULL, TRUE, FALSE, NULL));
	for (unsigned long step = 1;; step++) {
		if (step == 2) {
			open_events();
			open_files();
			open_keys();
			open_mutexes();
			open_processes();
			open_sections();
			open_semaphores();
			open_threads();
			open_timers();
			open_tokens();
			open_ports();
			copy_events();
			copy_early_events();
			copy_early_keys();
			move_events();
		}
		if (step == 3) {
			CloseHandle((HANDLE)(ULONG_PTR)0xabcdef00); /* fails */
			while (count > 2)
				CloseHandle(list[--count]);
		}
		if (!step_done(step))
			return 0;
	}
}
