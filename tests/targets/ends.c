/*
 * ends HOW: keeps 3 blocks of 1500 bytes, got by keep_block(), and ends with status 21.
 *
 *   pseudo   TerminateProcess() with the handle that every process has of itself
 *   handle   with a handle that is good for nothing else
 *   detach   ExitProcess() under the loader's lock, where a thread is being taken leave of
 *   other    ends a process that is not its own before, which must not be taken for its end
 */
#include <stdlib.h>

#include "samples/step.h"

static volatile bool end_here;

static NOINLINE void keep_block(void)
{
	step_leak(malloc(1500));
}

static void WINAPI on_loader(PVOID image, DWORD reason, PVOID reserved)
{
	(void)image;
	(void)reserved;
	if (reason == DLL_THREAD_DETACH && end_here)
		ExitProcess(21);
}

/* Where the linker collects the callbacks of the loader. */
__attribute__((section(".CRT$XLD"), used)) static PIMAGE_TLS_CALLBACK callback = on_loader;

static DWORD WINAPI do_nothing(LPVOID unused)
{
	(void)unused;
	return 0;
}

/* Ends itself once more, this time another one; false when it could not. */
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

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	HANDLE self;
	volatile int i;

	if (!strcmp(how, "other") && !end_other(argv[0]))
		return 5;
	for (i = 0; i < 3; i++)
		keep_block();
	if (!strcmp(how, "pseudo"))
		TerminateProcess(GetCurrentProcess(), 21);
	if (!strcmp(how, "handle")) {
		self = OpenProcess(PROCESS_TERMINATE, FALSE, GetCurrentProcessId());
		TerminateProcess(self, 21);
	}
	if (!strcmp(how, "detach")) {
		end_here = true;
		WaitForSingleObject(CreateThread(NULL, 0, do_nothing, NULL, 0, NULL), INFINITE);
		Sleep(INFINITE);
	}
	return 21;
}
