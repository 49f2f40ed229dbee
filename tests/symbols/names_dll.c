/* A DLL with known return addresses and names. After stripping, only its exports have names. */
#define MODULE "names_dll.dll"

#include "tests/symbols/names_note.h"

__declspec(dllexport) int dll_run(int value);
__declspec(dllexport) int dll_second(int value);
#ifdef OWN_ENTRY
int DllMainCRTStartup(void *self, unsigned reason, void *reserved);

/* Replaces the C library's start-up code. */
int DllMainCRTStartup(void *self, unsigned reason, void *reserved)
{
	(void)self;
	(void)reason;
	(void)reserved;
	return 1;
}
#endif

/* This function is not exported and lies between two exported functions. */
static NOINLINE int dll_hidden(int value)
{
	note("dll-hidden"); /* frame dll-hidden 1 dll_hidden */
	return value + 19;
}

NOINLINE int dll_second(int value)
{
	note("dll-second"); /* frame dll-second 1 dll_second */
	return dll_hidden(value) + 23;
}

NOINLINE int dll_run(int value)
{
	int sum = dll_second(value);

	note("dll-run"); /* frame dll-run 1 dll_run */
	return sum + 29;
}
