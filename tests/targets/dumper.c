/*
 * dumper PID FILE: writes a minidump of a process with the system's own MiniDumpWriteDump, with full
 * memory and the list of its regions, for hsnap -z to read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#include <dbghelp.h>

typedef BOOL(WINAPI *write_dump)(HANDLE process, DWORD pid, HANDLE file, MINIDUMP_TYPE type,
	PMINIDUMP_EXCEPTION_INFORMATION exception, PMINIDUMP_USER_STREAM_INFORMATION streams,
	PMINIDUMP_CALLBACK_INFORMATION callback);

static int fail(const char *what)
{
	fprintf(stderr, "dumper: %s: error %lu\n", what, GetLastError());
	return 2;
}

int main(int argc, char **argv)
{
	HMODULE dbghelp = LoadLibraryW(L"dbghelp.dll");
	write_dump write =
		dbghelp ? (write_dump)(void *)GetProcAddress(dbghelp, "MiniDumpWriteDump") : NULL;
	DWORD pid = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	HANDLE process = pid ? OpenProcess(PROCESS_ALL_ACCESS, FALSE, pid) : NULL;
	HANDLE file;

	if (!write || !process)
		return fail(write ? "the process" : "dbghelp.dll");
	file = CreateFileA(argv[2], GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
		FILE_ATTRIBUTE_NORMAL, NULL);
	if (file == INVALID_HANDLE_VALUE)
		return fail(argv[2]);
	if (!write(process, pid, file, MiniDumpWithFullMemory | MiniDumpWithFullMemoryInfo, NULL,
		    NULL, NULL))
		return fail("MiniDumpWriteDump");
	CloseHandle(file);
	return 0;
}
