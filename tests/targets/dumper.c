/* dumper PID FILE: writes a minidump of a process with the system's own MiniDumpWriteDump, with
 * full memory and the list of its regions, for hsnap -z to read. Wine's MiniDumpWriteDump reads 1
 * KiB or 8 bytes at a time, each time through Wine's server. A small program takes 42,000 reads,
 * which need minutes on a busy machine. Therefore read_ahead() replaces the function that DbgHelp
 * calls to read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <dbghelp.h>

#define AHEAD 0x10000u
#define PAGE 0x1000u

typedef BOOL(WINAPI *write_dump)(HANDLE process, DWORD pid, HANDLE file, MINIDUMP_TYPE type,
	PMINIDUMP_EXCEPTION_INFORMATION exception, PMINIDUMP_USER_STREAM_INFORMATION streams,
	PMINIDUMP_CALLBACK_INFORMATION callback);

static int fail(const char *what)
{
	fprintf(stderr, "dumper: %s: error %lu\n", what, GetLastError());
	return 2;
}

/* Reads up to the end of 64 KiB, or of a page. Answers the next calls from the buffer. */
static BOOL WINAPI read_ahead(
	HANDLE process, LPCVOID addr, LPVOID bytes, SIZE_T len, SIZE_T *read_len)
{
	static char held[AHEAD];
	static uintptr_t held_addr, held_end;
	const uintptr_t from = (uintptr_t)addr;

	for (uintptr_t unit = AHEAD; unit >= PAGE && (from < held_addr || from + len > held_end);
		unit /= AHEAD / PAGE) {
		const uintptr_t end = (from | (unit - 1)) + 1;

		if (from + len <= end && ReadProcessMemory(process, addr, held, end - from, NULL)) {
			held_addr = from;
			held_end = end;
		}
	}
	if (from < held_addr || from + len > held_end)
		return ReadProcessMemory(process, addr, bytes, len, read_len);
	memcpy(bytes, held + (from - held_addr), len);
	if (read_len)
		*read_len = len;
	return TRUE;
}

/* Replaces a DLL's import with read_ahead() ("PE Format", import address table). If the import is
 * not found, the DLL reads normally. */
static void hurry(HMODULE dll)
{
	char *base = (char *)dll;
	const IMAGE_NT_HEADERS *nt =
		(void *)(base + ((const IMAGE_DOS_HEADER *)(void *)base)->e_lfanew);
	const IMAGE_DATA_DIRECTORY *imports =
		&nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
	const IMAGE_IMPORT_DESCRIPTOR *import = (void *)(base + imports->VirtualAddress);

	for (; imports->VirtualAddress && import->Name; import++) {
		const ULONG_PTR *name = (void *)(base + import->OriginalFirstThunk);
		ULONG_PTR *function = (void *)(base + import->FirstThunk);

		for (; import->OriginalFirstThunk && *name; name++, function++) {
			DWORD old;

			if (IMAGE_SNAP_BY_ORDINAL(*name) ||
				strcmp((char *)((IMAGE_IMPORT_BY_NAME *)(void *)(base + *name))
						->Name,
					"ReadProcessMemory") != 0)
				continue;
			if (VirtualProtect(function, sizeof(*function), PAGE_READWRITE, &old))
				*function = (ULONG_PTR)read_ahead;
		}
	}
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
	hurry(dbghelp);
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
