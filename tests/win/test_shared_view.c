/* What is read of a process by a view of the section that it names: only what is there, whatever it names.
 * This program is that process. Speaks TAP. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/live/live_windows.h"
#include "tests/win/tap.h"

#define PAGE 0x1000u
#define BYTES 0x100000u

static struct shared_view view;

static bool reads(uint64_t addr, size_t len, const char *what)
{
	char text[2 * PAGE] = "nothing";

	if (!shared_view_read(&view, addr, text, len)) {
		ok(!strcmp(text, "nothing"), "what cannot be read changes nothing");
		return false;
	}
	return !strcmp(text, what);
}

static void set(HANDLE handle, const void *at, uint64_t len)
{
	shared_view_set(&view, GetCurrentProcess(), (ULONG_PTR)handle, (ULONG_PTR)at, len);
}

static void check_memory(HANDLE section, char *at)
{
	uint64_t addr = (ULONG_PTR)at;

	VirtualAlloc(at, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE);
	VirtualAlloc(at + 8 * PAGE, PAGE, MEM_COMMIT, PAGE_READWRITE);
	strcpy(at + PAGE - 3, "across");
	strcpy(at + 8 * PAGE, "apart");
	ok(!reads(addr, 8, ""), "without a section nothing is read");
	set(section, at, BYTES);
	ok(reads(addr + PAGE - 3, 7, "across"), "what is committed is read");
	ok(reads(addr + 8 * PAGE, 6, "apart"), "in each place");
	ok(reads(addr + 2 * PAGE - 1, 1, ""), "to the last byte");
	ok(!reads(addr + 2 * PAGE - 1, 2, ""), "and no further");
	ok(!reads(addr + 4 * PAGE, 8, ""), "nor what is only reserved");
	strcpy(at + 8 * PAGE, "changed");
	VirtualAlloc(at + 4 * PAGE, PAGE, MEM_COMMIT, PAGE_READWRITE);
	strcpy(at + 4 * PAGE, "later");
	ok(reads(addr + 4 * PAGE, 6, "later"), "before it is committed");
	ok(reads(addr + 8 * PAGE, 8, "changed"), "it is as it is now");
	ok(!reads(addr - 1, 1, ""), "nothing before it");
	ok(!reads(addr + BYTES, 1, ""), "nor behind it");
	ok(!reads(addr + BYTES - 1, 2, ""), "nor across its end");
	ok(!reads(UINT64_MAX, 8, ""), "nor beyond all addresses");
	ok(!reads(addr, SIZE_MAX, ""), "nor more than there can be");
}

static void check_lie(HANDLE handle, const void *at, uint64_t len, const char *what)
{
	set(handle, at, len);
	ok(!reads((ULONG_PTR)at, 8, ""), what);
}

static void check_lies(HANDLE section, const void *at)
{
	wchar_t folder[MAX_PATH], path[MAX_PATH];
	HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL), file, other;

	check_lie(section, at, (uint64_t)1 << 40, "one that is smaller than is said");
	check_lie(section, at, UINT64_MAX, "or than anything");
	check_lie(event, at, BYTES, "what is no section");
	check_lie((HANDLE)(ULONG_PTR)0x7ffffff4, at, BYTES, "what is no handle");
	GetTempPathW(MAX_PATH, folder);
	GetTempFileNameW(folder, L"hsn", 0, path);
	file = CreateFileW(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
		FILE_FLAG_DELETE_ON_CLOSE, NULL);
	other = CreateFileMappingW(file, NULL, PAGE_READWRITE, 0, BYTES, NULL);
	ok(other != NULL, "a section of a file");
	check_lie(other, at, BYTES, "which might be cut");
	CloseHandle(other);
	CloseHandle(file);
	CloseHandle(event);
}

int main(void)
{
	HANDLE section = CreateFileMappingW(
		INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE | SEC_RESERVE, 0, BYTES, NULL);
	char *at = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0);

	if (ok(at != NULL, "a section of reserved memory")) {
		check_memory(section, at);
		check_lies(section, at);
		set(section, at, BYTES);
		ok(reads((ULONG_PTR)at + 4 * PAGE, 6, "later"), "again the one that it is");
		shared_view_release(&view);
		ok(!reads((ULONG_PTR)at + 4 * PAGE, 6, ""), "released, it reads nothing");
	}
	return ok_end();
}
