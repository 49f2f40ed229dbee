/*
 * peek PID: prints a tracer's changes to another process, as observed from outside:
 *
 *   ntdll N        bytes of ntdll's code that differ from this process
 *   space N        bytes of address space in use
 *   state N sum M  of the tracer's area, if its DLL is loaded, and a checksum of the whole area
 *   suspended N    number of suspended threads
 *   handle N       lowest free number for its next handle: it rises if handles leak
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <psapi.h>
#include <tlhelp32.h>

#include "snapshot/tracer/shared.h"

static unsigned char *read_all(HANDLE process, const void *addr, size_t len)
{
	unsigned char *bytes = malloc(len);

	if (!bytes || !ReadProcessMemory(process, addr, bytes, len, NULL)) {
		printf("unreadable %p\n", addr);
		exit(1);
	}
	return bytes;
}

/* Wine and Windows load system DLLs at the same address in every process. */
static void print_ntdll(HANDLE process)
{
	const unsigned char *ours = (const unsigned char *)GetModuleHandleW(L"ntdll.dll");
	const IMAGE_NT_HEADERS *headers =
		(const IMAGE_NT_HEADERS *)(ours + ((const IMAGE_DOS_HEADER *)ours)->e_lfanew);
	const IMAGE_SECTION_HEADER *section = IMAGE_FIRST_SECTION(headers);
	unsigned long differ = 0;

	for (int i = 0; i < headers->FileHeader.NumberOfSections; i++, section++) {
		const unsigned char *at = ours + section->VirtualAddress;
		unsigned char *theirs;

		if (!(section->Characteristics & IMAGE_SCN_CNT_CODE))
			continue;
		theirs = read_all(process, at, section->Misc.VirtualSize);
		for (DWORD k = 0; k < section->Misc.VirtualSize; k++)
			differ += theirs[k] != at[k];
		free(theirs);
	}
	printf("ntdll %lu\n", differ);
}

static void print_space(HANDLE process)
{
	MEMORY_BASIC_INFORMATION info;
	unsigned long long used = 0;
	char *at = NULL;

	while (VirtualQueryEx(process, at, &info, sizeof(info)) == sizeof(info)) {
		if (info.State != MEM_FREE)
			used += info.RegionSize;
		at = (char *)info.BaseAddress + info.RegionSize;
	}
	printf("space %llu\n", used);
}

/* Loads a copy of the DLL to find its export's offset. */
static size_t area_offset(HANDLE process, HMODULE module)
{
	wchar_t path[1024];
	HMODULE copy;

	if (!GetModuleFileNameExW(process, module, path, 1024))
		return 0;
	copy = LoadLibraryExW(path, NULL, DONT_RESOLVE_DLL_REFERENCES);
	return copy ? (size_t)((char *)GetProcAddress(copy, TRACER_EXPORT) - (char *)copy) : 0;
}

static void print_area(HANDLE process)
{
	HMODULE modules[200];
	wchar_t name[100];
	DWORD bytes = 0;

	EnumProcessModules(process, modules, sizeof(modules), &bytes);
	for (DWORD i = 0; i < bytes / sizeof(*modules) && i < 200; i++) {
		struct tracer_area *area;
		unsigned long sum = 0;

		if (!GetModuleBaseNameW(process, modules[i], name, 100) ||
			_wcsicmp(name, L"" TRACER_DLL_64) != 0)
			continue;
		area = (struct tracer_area *)read_all(process,
			(char *)modules[i] + area_offset(process, modules[i]), sizeof(*area));
		for (size_t k = 0; k < sizeof(*area); k++)
			sum = sum * 31 + ((unsigned char *)area)[k];
		printf("state %u sum %lu\n", area->state, sum);
		free(area);
	}
}

static void print_suspended(DWORD pid)
{
	HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
	THREADENTRY32 entry = {.dwSize = sizeof(entry)};
	unsigned suspended = 0;

	for (BOOL more = Thread32First(all, &entry); more; more = Thread32Next(all, &entry)) {
		HANDLE thread;

		if (entry.th32OwnerProcessID != pid)
			continue;
		thread = OpenThread(THREAD_SUSPEND_RESUME, FALSE, entry.th32ThreadID);
		if (!thread)
			continue;
		suspended += SuspendThread(thread) != 0;
		ResumeThread(thread);
		CloseHandle(thread);
	}
	printf("suspended %u\n", suspended);
}

/* Wine 8 cannot count the handles of another process, so this function duplicates one handle and
 * closes it again. */
static void print_handle(HANDLE process)
{
	HANDLE self = GetCurrentProcess(), theirs = NULL;

	DuplicateHandle(self, self, process, &theirs, SYNCHRONIZE, FALSE, 0);
	DuplicateHandle(process, theirs, NULL, NULL, 0, FALSE, DUPLICATE_CLOSE_SOURCE);
	printf("handle %llu\n", (unsigned long long)(uintptr_t)theirs);
}

int main(int argc, char **argv)
{
	DWORD pid = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	HANDLE process = OpenProcess(
		PROCESS_VM_READ | PROCESS_QUERY_INFORMATION | PROCESS_DUP_HANDLE, FALSE, pid);

	if (!process)
		return 2;
	print_ntdll(process);
	print_space(process);
	print_area(process);
	print_suspended(pid);
	print_handle(process);
	return 0;
}
