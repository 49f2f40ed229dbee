/* A DLL that allocates, for programs that load and unload it. Copies of it under other names have
 * the same preferred address. */
#include <windows.h>

__declspec(dllexport) void *plug_keep(unsigned bytes);
BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved);

__declspec(dllexport) __attribute__((noinline)) void *plug_keep(unsigned bytes)
{
	void *block = HeapAlloc(GetProcessHeap(), 0, bytes);

	*(volatile char *)block = 1; /* prevents a tail call */
	return block;
}

/* Replaces the C library's start-up code, which would allocate too. */
BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self;
	(void)reason;
	(void)reserved;
	return TRUE;
}
