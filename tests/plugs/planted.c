/* A DLL in a place to which a stranger can write. It prints a line when a process loads it. */
#include <windows.h>

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved);

static char said[MAX_PATH + 20] = "PLANTED ";

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): Microsoft's names differ */
BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	DWORD len = 8, done;

	(void)reserved;
	if (reason != DLL_PROCESS_ATTACH)
		return TRUE;
	len += GetModuleFileNameA(self, said + len, MAX_PATH);
	said[len++] = '\n';
	WriteFile(GetStdHandle(STD_ERROR_HANDLE), said, len, &done, NULL);
	return TRUE;
}
