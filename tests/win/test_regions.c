/* Calls region_query() for memory that this program lays out, and checks the result if another
 * process serves as its clone. Prints TAP. */
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "snapshot/live/live_windows.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

#define PAGE ((uint64_t)0x1000)
#define SPAN ((size_t)0x200000)
#define SHARED ((size_t)0x30000)
/* Unused addresses. Wine reserves most other memory, and reads it as zeros. */
#define FAR_SHARED ((ULONG_PTR)0x100000000000)
#define FAR_PRIVATE ((ULONG_PTR)0x100001000000)

static bool is(uint64_t at, uint64_t addr, uint64_t end, unsigned access)
{
	struct target_region region = {0};

	if (region_query(GetCurrentProcess(), at, &region))
		return false;
	if (region.addr == addr && region.end == end && region.access == access && !region.is_image)
		return true;
	printf("# %llx: %llx..%llx %x\n", (unsigned long long)at, (unsigned long long)region.addr,
		(unsigned long long)region.end, region.access);
	return false;
}

static void commit(uint64_t addr, uint64_t bytes, DWORD protect)
{
	if (!VirtualAlloc((void *)addr, bytes, MEM_COMMIT, protect))
		ok(false, "memory to look at");
}

/* reserved: [read-write 1] [hole 1] [read-only 2] [guard 1] [no access 1] [execute 1] ... [far] */
static void check_small(uint64_t base)
{
	uint64_t large = base + 0x100000, at = large + 0x71234, aligned = at & ~(uint64_t)0x3ffff;

	commit(base, PAGE, PAGE_READWRITE);
	commit(base + 2 * PAGE, 2 * PAGE, PAGE_READONLY);
	commit(base + 4 * PAGE, PAGE, PAGE_READWRITE | PAGE_GUARD);
	commit(base + 5 * PAGE, PAGE, PAGE_NOACCESS);
	commit(base + 6 * PAGE, PAGE, PAGE_EXECUTE_READ);
	commit(large, 0x80000, PAGE_READWRITE);
	ok(is(base, base, base + PAGE, TARGET_READ | TARGET_WRITE), "committed memory");
	ok(is(base + 0xfff, base, base + PAGE, TARGET_READ | TARGET_WRITE), "its last byte");
	ok(is(base + PAGE, base + 2 * PAGE, base + 4 * PAGE, TARGET_READ),
		"behind a hole the next one");
	ok(is(base + 3 * PAGE, base + 2 * PAGE, base + 4 * PAGE, TARGET_READ),
		"its start is found from its middle");
	ok(is(base + 4 * PAGE, base + 4 * PAGE, base + 5 * PAGE, 0), "a guard page has no access");
	ok(is(base + 5 * PAGE, base + 5 * PAGE, base + 6 * PAGE, 0), "a closed page neither");
	ok(is(base + 6 * PAGE, base + 6 * PAGE, base + 7 * PAGE, TARGET_READ | TARGET_EXECUTE),
		"code");
	ok(is(at, aligned > large ? aligned : large, large + 0x80000, TARGET_READ | TARGET_WRITE),
		"of a large one what lies from an aligned address on");
}

/* Lists all committed regions. They must be in order, each once, and end. */
static void check_all(void)
{
	struct target_region region = {0};
	bool ordered = true, image = false;
	unsigned long regions = 0;
	uint64_t end = 0, self = (uint64_t)GetModuleHandleW(NULL);

	while (regions < 1000000 && !region_query(GetCurrentProcess(), end, &region)) {
		ordered = ordered && region.addr >= end && region.end > region.addr;
		image = image || (region.is_image && self >= region.addr && self < region.end);
		end = region.end;
		regions++;
	}
	printf("# %lu regions\n", regions);
	ok(ordered, "regions are in order and do not overlap");
	ok(image, "the program's own image is one");
	ok(regions > 10 && regions < 1000000, "there is an end");
	ok(region_query(GetCurrentProcess(), UINT64_MAX, &region) == -ERR_READ,
		"nothing at the very end of all addresses");
	ok(region_query(GetCurrentProcess(), (uint64_t)1 << 63, &region) == -ERR_READ,
		"nothing in the system's half");
}

/* Returns true if the other process has no memory at the address that this process uses. Otherwise
 * the checks prove nothing. */
static bool is_ours_alone(HANDLE other, uint64_t addr)
{
	struct target_region region;

	return addr && (region_query(other, addr, &region) || region.addr >= addr + SHARED);
}

static void check_shared(HANDLE other, uint64_t shared, uint64_t private)
{
	struct target_region region = {0};
	HANDLE self = GetCurrentProcess();
	char text[8] = "";

	strcpy((char *)shared + 0x1230, "shared");
	strcpy((char *)private, "private");
	ok(!region_query_either(other, self, shared + 0x1230, &region) && region.addr == shared &&
			region.end == shared + SHARED && !region.is_image &&
			region.access == (TARGET_READ | TARGET_WRITE),
		"shared memory that the clone lacks is the process's");
	ok(!region_read_either(other, self, shared + 0x1230, text, 7) && !strcmp(text, "shared"),
		"and is read there");
	ok(region_read_either(other, self, shared + SHARED - 3, text, 7) == -ERR_READ,
		"as far as it goes");
	ok(region_query_either(other, self, private, &region) || region.addr > private,
		"other memory is the clone's alone");
	strcpy(text, "nothing");
	ok(region_read_either(other, self, private, text, 8) == -ERR_READ &&
			!strcmp(text, "nothing"),
		"and is not read from the process");
	ok(!region_read_either(self, self, private, text, 8) && !strcmp(text, "private"),
		"without a clone all is read there");
}

static void check_clone(uint64_t private)
{
	HANDLE section = CreateFileMappingW(
		INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, (DWORD)SHARED, NULL);
	uint64_t shared =
		(uint64_t)MapViewOfFileEx(section, FILE_MAP_WRITE, 0, 0, 0, (void *)FAR_SHARED);
	PROCESS_INFORMATION other = {0};

	ok(start_again(L"wait", &other) && is_ours_alone(other.hProcess, shared) &&
			is_ours_alone(other.hProcess, private),
		"another process without our memory");
	if (other.hProcess && shared)
		check_shared(other.hProcess, shared, private);
	TerminateProcess(other.hProcess, 0);
	CloseHandle(other.hThread);
	CloseHandle(other.hProcess);
	CloseHandle(section);
}

int main(int argc, char **argv)
{
	void *base;

	if (is_to_wait(argc, argv))
		return 0;
	base = VirtualAlloc(NULL, SPAN, MEM_RESERVE, PAGE_NOACCESS);
	if (ok(base, "memory to reserve"))
		check_small((uint64_t)base);
	check_all();
	base = VirtualAlloc((void *)FAR_PRIVATE, SHARED, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	if (ok(base, "memory of our own"))
		check_clone((uint64_t)base);
	return ok_end();
}
