/*
 * odd WHAT [ARG...]: does one unusual thing that hsnap run must handle.
 *
 *   threads    prints whether the loader initialises the program in main's own thread
 *   early      ends with status 33 before main, during the loader's work
 *   arguments  prints each argument in brackets
 *   raise      a failing reallocation raises an exception, which is caught; then 100 times
 *              leak_after() keeps 777 bytes; the block of 1000 bytes stays live
 *   adjacent   two heaps get 200 blocks of 200000 bytes each, alternately: their parts are adjacent
 *   broken N   has a damaged heap that no walk can read, waits like samples, and ends with status N
 *   closed     denies all access to its process, then waits like samples
 *   slow       waits for step 1 before main, during the loader's work; keep_block() has 1000 bytes
 *              before step 2
 *   pseudo     ends with status 21, with 3 blocks of 1000 bytes, by TerminateProcess() with the
 *              pseudo handle of its own process
 *   handle     like pseudo, with a handle that has no other right
 *   detach     like pseudo, by ExitProcess() under the loader's lock, while a thread is detached
 *   other      like pseudo, after it ended another process: that must not be mistaken for its end
 *   race       four threads and main end the process at the same moment, with status 17
 *   crowd      while it is traced, a thread from before main holds the loader's lock and starts
 *              other threads, which wait for the lock; when main runs, the process ends with
 *              status 18
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/step.h"

#define CROWD 100 /* number of threads started after main */
#define CROWD_MAX 2000 /* limit for all threads: main may be waiting for the lock and never run */

static DWORD attach_thread;
static jmp_buf raise_to;
static volatile LONG main_is_here;
static volatile bool ends_at_detach;

static DWORD WINAPI do_nothing(void *unused)
{
	(void)unused;
	return 0;
}

static void lock_loader(void)
{
	typedef LONG(WINAPI * lock_fn)(ULONG flags, ULONG * result, ULONG_PTR * cookie);
	lock_fn lock = (lock_fn)(void *)GetProcAddress(
		GetModuleHandleW(L"ntdll.dll"), "LdrLockLoaderLock");
	ULONG_PTR cookie;

	lock(0, NULL, &cookie);
}

static DWORD WINAPI begin_crowd(void *unused)
{
	const void *hooked =
		(const void *)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "NtTerminateProcess");
	unsigned char code[16];

	(void)unused;
	memcpy(code, hooked, sizeof(code));
	while (!memcmp(code, hooked, sizeof(code)) && !main_is_here)
		SwitchToThread();
	lock_loader();
	for (int left = CROWD, all = 0; left > 0 && all < CROWD_MAX;
		left -= (int)main_is_here, all++)
		CloseHandle(CreateThread(NULL, 0, do_nothing, NULL, 0, NULL));
	ExitProcess(18);
}

static void WINAPI on_loader(PVOID image, DWORD reason, PVOID reserved)
{
	(void)image;
	(void)reserved;
	if (reason == DLL_THREAD_DETACH && ends_at_detach)
		ExitProcess(21);
	if (reason != DLL_PROCESS_ATTACH)
		return;
	attach_thread = GetCurrentThreadId();
	if (strstr(GetCommandLineA(), " early"))
		ExitProcess(33);
	if (strstr(GetCommandLineA(), " slow"))
		step_done(1);
	if (strstr(GetCommandLineA(), " crowd"))
		CloseHandle(CreateThread(NULL, 0, begin_crowd, NULL, 0, NULL));
}

/* In this section the linker collects the callbacks that run before main. */
__attribute__((section(".CRT$XLD"), used)) static PIMAGE_TLS_CALLBACK callback = on_loader;

static LONG WINAPI on_exception(EXCEPTION_POINTERS *exception)
{
	if (exception->ExceptionRecord->ExceptionCode == STATUS_NO_MEMORY)
		longjmp(raise_to, 1);
	return EXCEPTION_CONTINUE_SEARCH;
}

static NOINLINE void leak_after(void)
{
	step_leak(malloc(777));
}

static NOINLINE void *keep_block(void)
{
	return step_leak(HeapAlloc(GetProcessHeap(), 0, 1000));
}

static int raise_and_go_on(void)
{
	void *block = keep_block();

	AddVectoredExceptionHandler(1, on_exception);
	if (!setjmp(raise_to)) {
		HeapReAlloc(GetProcessHeap(), HEAP_GENERATE_EXCEPTIONS, block, 0x7ffffffffff0);
		return 4; /* no exception was raised */
	}
	for (int i = 0; i < 100; i++)
		leak_after();
	return 0;
}

static NOINLINE void fill_heap(HANDLE heap)
{
	step_leak(HeapAlloc(heap, 0, 200000));
}

static int fill_two_heaps(void)
{
	HANDLE one = HeapCreate(0, 0, 0), other = HeapCreate(0, 0, 0);

	for (int i = 0; i < 200; i++) {
		fill_heap(one);
		fill_heap(other);
	}
	return 0;
}

static DWORD WINAPI end_it(void *start)
{
	WaitForSingleObject(start, INFINITE);
	TerminateProcess(GetCurrentProcess(), 17);
	return 0;
}

static int race_to_the_end(void)
{
	HANDLE start = CreateEventW(NULL, TRUE, FALSE, NULL);

	for (int i = 0; i < 4; i++)
		CloseHandle(CreateThread(NULL, 0, end_it, start, 0, NULL));
	SetEvent(start);
	exit(17);
}

/* Sets an empty access list, which denies all access. */
static int close_doors(void)
{
	SECURITY_DESCRIPTOR nobody;
	ACL empty;

	InitializeAcl(&empty, sizeof(empty), ACL_REVISION);
	InitializeSecurityDescriptor(&nobody, SECURITY_DESCRIPTOR_REVISION);
	SetSecurityDescriptorDacl(&nobody, TRUE, &empty, FALSE);
	if (!SetKernelObjectSecurity(GetCurrentProcess(), DACL_SECURITY_INFORMATION, &nobody))
		return 5;
	step_done(1);
	return 0;
}

static int come_slowly(void)
{
	keep_block();
	step_done(2);
	return 0;
}

static int break_heap(int status)
{
	HANDLE heap = HeapCreate(0, 0, 0);
	char *first = HeapAlloc(heap, 0, 64), *second = HeapAlloc(heap, 0, 64);
	char *last = first < second ? second : first;

	memset(last - 16, 0xee, 16); /* the block's header */
	step_done(1);
	return status;
}

/* Starts this program again and ends it; returns false on failure. */
static bool end_other(const char *program)
{
	STARTUPINFOA startup = {.cb = sizeof(startup)};
	PROCESS_INFORMATION info;
	DWORD status = 0;

	if (!CreateProcessA(program, NULL, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL,
		    &startup, &info))
		return false;
	if (!TerminateProcess(info.hProcess, 22))
		return false;
	WaitForSingleObject(info.hProcess, INFINITE);
	GetExitCodeProcess(info.hProcess, &status);
	return status == 22;
}

/* Ends the process in this way. Returns 21 if that failed, or -1 if the way is unknown. */
static int end_by(const char *how, const char *program)
{
	static const char *const ways[] = {"pseudo", "handle", "detach", "other"};
	int way = 0;

	while (way < 4 && strcmp(how, ways[way]) != 0)
		way++;
	if (way == 4)
		return -1;
	if (way == 3 && !end_other(program))
		return 5;
	for (volatile int i = 0; i < 3; i++)
		keep_block();
	if (way == 0)
		TerminateProcess(GetCurrentProcess(), 21);
	if (way == 1)
		TerminateProcess(OpenProcess(PROCESS_TERMINATE, FALSE, GetCurrentProcessId()), 21);
	if (way == 2) {
		ends_at_detach = true;
		WaitForSingleObject(CreateThread(NULL, 0, do_nothing, NULL, 0, NULL), INFINITE);
		Sleep(INFINITE);
	}
	return 21;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int status = end_by(what, argv[0]);

	if (status >= 0)
		return status;
	if (!strcmp(what, "threads"))
		puts(attach_thread == GetCurrentThreadId() ? "same" : "another");
	for (int i = 2; i < argc && !strcmp(what, "arguments"); i++)
		printf("[%s]\n", argv[i]);
	if (!strcmp(what, "raise"))
		return raise_and_go_on();
	if (!strcmp(what, "adjacent"))
		return fill_two_heaps();
	if (!strcmp(what, "closed"))
		return close_doors();
	if (!strcmp(what, "slow"))
		return come_slowly();
	if (!strcmp(what, "broken"))
		return break_heap(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0);
	if (!strcmp(what, "race"))
		return race_to_the_end();
	main_is_here = 1;
	if (!strcmp(what, "crowd"))
		Sleep(INFINITE);
	return 0;
}
