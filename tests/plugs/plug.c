/*
 * A DLL that allocates, for programs that load and unload it. It wants an address of its own, which a
 * copy of it under another name wants too.
 */
#include <windows.h>

__declspec(dllexport) void *plug_keep(unsigned bytes);
BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved);

__declspec(dllexport) __attribute__((noinline)) void *plug_keep(unsigned bytes)
{
	void *block = HeapAlloc(GetProcessHeap(), 0, bytes);

	*(volatile char *)block = 1; /* the call is not the last thing */
	return block;
}

/* Instead of the C library's start-up code, which would allocate too. */
BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self;
	(void)reason;
	(void)reserved;
	return TRUE;
}
