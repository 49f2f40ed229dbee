/*
 * virtual_cases: allocates memory by VirtualAlloc in all ways, and frees it in all ways. Views of
 * sections follow, and then modules, heaps, fibers and threads, which allocate memory from the
 * system themselves.
 *
 * First it prints the addresses of its functions:
 *
 *   function NAME ADDR
 *
 * Then for each case it prints the expected ranges, waits like samples ("step K pid P"), and frees
 * everything:
 *
 *   case NAME
 *   pages KIND ADDR BYTES FUNCTION
 *   cannot WHAT
 *
 * KIND is committed, reserved or mapped; FUNCTION is the function that made the pages so. No other
 * range may belong to a function of the program. The expectations have been compared with
 * VirtualQuery; a difference prints a line "wrong ...". "cannot" marks operations that this system
 * refuses; the expectations omit them. Numbers are hexadecimal.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

#define THIS_PROCESS ((HANDLE)(LONG_PTR)-1)

typedef NTSTATUS(NTAPI *nt_allocate_fn)(
	HANDLE process, PVOID *base, ULONG_PTR zero_bits, PSIZE_T bytes, ULONG type, ULONG protect);
typedef NTSTATUS(NTAPI *nt_free_fn)(HANDLE process, PVOID *base, PSIZE_T bytes, ULONG type);
typedef PVOID(WINAPI *allocate2_fn)(HANDLE process, PVOID base, SIZE_T bytes, ULONG type,
	ULONG protect, PVOID parameters, ULONG count);
typedef HANDLE(NTAPI *create_heap_fn)(
	ULONG flags, PVOID base, SIZE_T bytes, SIZE_T commit, PVOID lock, PVOID parameters);

static create_heap_fn create_heap;
static nt_allocate_fn nt_allocate;
static nt_free_fn nt_free;
static allocate2_fn allocate2; /* NULL on an older system */

/* ---------------------------------------------------------------- expectations */

#define PAGE 0x1000u

static char said[1 << 18], *said_end = said;

static char *write_hex(char *to, uint64_t value)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = "0123456789ABCDEF"[value % 16];
	while (value /= 16);
	while (count)
		*to++ = digits[--count];
	return to;
}

static void messages(const char *words)
{
	said_end = step_text(said_end, words);
}

static void print_hex(uint64_t value)
{
	*said_end++ = ' ';
	said_end = write_hex(said_end, value);
}

/* Returns true if this is what the system reports about all pages. */
static bool is_so(const char *kind, const char *addr, SIZE_T bytes)
{
	DWORD state = strcmp(kind, "committed") ? MEM_RESERVE : MEM_COMMIT;
	bool is_view = !strcmp(kind, "mapped");
	MEMORY_BASIC_INFORMATION info;

	for (const char *at = addr; at < addr + bytes; at += info.RegionSize) {
		if (!VirtualQuery(at, &info, sizeof(info)))
			return false;
		if (is_view ? info.Type != MEM_MAPPED :
			      info.State != state || info.Type != MEM_PRIVATE)
			return false;
	}
	return true;
}

static void state(const char *kind, const void *addr, SIZE_T bytes, const char *function)
{
	if (!is_so(kind, addr, bytes))
		messages("wrong ");
	messages("pages ");
	messages(kind);
	print_hex((uintptr_t)addr);
	print_hex(bytes);
	messages(" ");
	messages(function);
	messages("\n");
}

/* Prints a mismatch, or an operation that the system refused. */
static void tell(const char *which, const char *what)
{
	messages(which);
	messages(" ");
	messages(what);
	messages("\n");
}

static void done(const char *name)
{
	char head[100], *head_end = step_text(step_text(step_text(head, "case "), name), "\n");
	static unsigned long step;
	DWORD put;

	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), head, (DWORD)(head_end - head), &put, NULL);
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), said, (DWORD)(said_end - said), &put, NULL);
	said_end = said;
	if (!step_done(++step))
		ExitProcess(0);
}

/* Addresses of the functions that allocate memory, and of their callers. The last entry is only an
 * end mark. */
struct said_function {
	const char *name;
	uintptr_t addr;
};
#define SAID_FUNCTION(name)                                                                        \
	{                                                                                          \
#name, (uintptr_t)(name)                                                           \
	}

/* ---------------------------------------------------------------- shared allocators */

static void release(void *addr)
{
	if (!VirtualFree(addr, 0, MEM_RELEASE))
		tell("wrong", "release");
}

static NOINLINE char *both(void)
{
	return step_leak(VirtualAlloc(NULL, 100001, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

static NOINLINE char *only_reserve(SIZE_T bytes)
{
	return step_leak(VirtualAlloc(NULL, bytes, MEM_RESERVE, PAGE_READWRITE));
}

/* Must be inlined, so that its caller is the function that commits. */
static inline __attribute__((always_inline)) void commit(char *at, SIZE_T bytes)
{
	step_leak(VirtualAlloc(at, bytes, MEM_COMMIT, PAGE_READWRITE));
}

static NOINLINE void commit_low(char *base)
{
	commit(base + 0x3000, 0x2000);
}

/* ---------------------------------------------------------------- whole ranges */

static NOINLINE char *commit_nowhere(void)
{
	return step_leak(VirtualAlloc(NULL, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE));
}

static NOINLINE char *top_down(void)
{
	return step_leak(VirtualAlloc(
		NULL, 3 * PAGE, MEM_RESERVE | MEM_COMMIT | MEM_TOP_DOWN, PAGE_EXECUTE_READWRITE));
}

static NOINLINE char *watched(void)
{
	return step_leak(VirtualAlloc(
		NULL, 4 * PAGE, MEM_RESERVE | MEM_COMMIT | MEM_WRITE_WATCH, PAGE_READWRITE));
}

static NOINLINE char *in_this_process(HANDLE process)
{
	return step_leak(
		VirtualAllocEx(process, NULL, 5 * PAGE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

static NOINLINE char *newer(void)
{
	return allocate2(GetCurrentProcess(), NULL, 6 * PAGE, MEM_RESERVE | MEM_COMMIT,
		PAGE_READWRITE, NULL, 0);
}

static void plainly(void)
{
	HANDLE process = OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId());
	char *made[] = {both(), only_reserve(0x100000), commit_nowhere(), top_down(), watched(),
		in_this_process(process), in_this_process(GetCurrentProcess()),
		allocate2 ? newer() : NULL};

	state("committed", made[0], 0x19000, "both");
	state("reserved", made[1], 0x100000, "only_reserve");
	state("committed", made[2], 2 * PAGE, "commit_nowhere");
	state("committed", made[3], 3 * PAGE, "top_down");
	state("committed", made[4], 4 * PAGE, "watched");
	state("committed", made[5], 5 * PAGE, "in_this_process");
	state("committed", made[6], 5 * PAGE, "in_this_process");
	if (made[7])
		state("committed", made[7], 6 * PAGE, "newer");
	else
		tell("cannot", "VirtualAlloc2");
	VirtualAlloc(made[0], 3 * PAGE, MEM_RESET, PAGE_READWRITE);
	done("plainly");
	if (!VirtualFreeEx(process, made[6], 0, MEM_RELEASE))
		tell("wrong", "release by a handle");
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		if (made[i] && i != 6)
			release(made[i]);
	}
	CloseHandle(process);
	done("plainly freed");
}

/* ---------------------------------------------------------------- in parts */

static NOINLINE void commit_high(char *base)
{
	commit(base + 0x8000, 0x2000);
}

static NOINLINE void commit_over_both(char *base)
{
	commit(base + 0x2000, 0xa000);
}

static NOINLINE void commit_few_bytes(char *base)
{
	commit(base + 0x20010, 1);
	commit(base + 0x30fff, 2);
}

static void in_parts(void)
{
	char *base = only_reserve(0x40000);

	commit_low(base);
	commit_high(base);
	commit_over_both(base);
	commit_low(base);
	commit_few_bytes(base);
	state("reserved", base, 0x2000, "only_reserve");
	state("committed", base + 0x2000, 0x1000, "commit_over_both");
	state("committed", base + 0x3000, 0x2000, "commit_low");
	state("committed", base + 0x5000, 0x3000, "commit_over_both");
	state("committed", base + 0x8000, 0x2000, "commit_high");
	state("committed", base + 0xa000, 0x2000, "commit_over_both");
	state("reserved", base + 0xc000, 0x14000, "only_reserve");
	state("committed", base + 0x20000, 0x1000, "commit_few_bytes");
	state("reserved", base + 0x21000, 0xf000, "only_reserve");
	state("committed", base + 0x30000, 0x2000, "commit_few_bytes");
	state("reserved", base + 0x32000, 0xe000, "only_reserve");
	done("commits");
	VirtualFree(base + 0x4abc, 0x4000, MEM_DECOMMIT); /* 5 pages */
	VirtualFree(base + 0x31000, 0x1000, MEM_DECOMMIT);
	state("reserved", base, 0x2000, "only_reserve");
	state("committed", base + 0x2000, 0x1000, "commit_over_both");
	state("committed", base + 0x3000, 0x1000, "commit_low");
	state("reserved", base + 0x4000, 0x5000, "only_reserve");
	state("committed", base + 0x9000, 0x1000, "commit_high");
	state("committed", base + 0xa000, 0x2000, "commit_over_both");
	state("reserved", base + 0xc000, 0x14000, "only_reserve");
	state("committed", base + 0x20000, 0x1000, "commit_few_bytes");
	state("reserved", base + 0x21000, 0xf000, "only_reserve");
	state("committed", base + 0x30000, 0x1000, "commit_few_bytes");
	state("reserved", base + 0x31000, 0xf000, "only_reserve");
	done("decommit a part");
	if (!VirtualFree(base, 0, MEM_DECOMMIT))
		tell("wrong", "decommit");
	state("reserved", base, 0x40000, "only_reserve");
	done("decommit all");
	commit_low(base);
	release(base);
	done("commit again, release all");
}

/* If one call reserved and committed pages, they belong to the reserving function after they are
 * decommitted. */
static void both_then_decommit(void)
{
	char *base = both();

	VirtualFree(base + 0x8000, 0x4000, MEM_DECOMMIT);
	state("committed", base, 0x8000, "both");
	state("reserved", base + 0x8000, 0x4000, "both");
	state("committed", base + 0xc000, 0xd000, "both");
	done("decommit of both");
	release(base);
}

static void release_a_part(void)
{
	char *base = only_reserve(0x40000);
	PVOID at = base + 0x10000, behind = base + 0x20000;
	SIZE_T bytes = 0x10000;
	bool is_split;

	commit_low(base);
	commit_few_bytes(base);
	is_split = nt_free(THIS_PROCESS, &at, &bytes, MEM_RELEASE) >= 0;
	if (!is_split) {
		tell("cannot", "release a part");
		state("reserved", base + 0x10000, 0x10000, "only_reserve");
	}
	state("reserved", base, 0x3000, "only_reserve");
	state("committed", base + 0x3000, 0x2000, "commit_low");
	state("reserved", base + 0x5000, 0xb000, "only_reserve");
	state("committed", base + 0x20000, 0x1000, "commit_few_bytes");
	state("reserved", base + 0x21000, 0xf000, "only_reserve");
	state("committed", base + 0x30000, 0x2000, "commit_few_bytes");
	state("reserved", base + 0x32000, 0xe000, "only_reserve");
	done("release a part");
	release(base);
	if (is_split)
		release(behind);
	done("release what is left");
}

/* ---------------------------------------------------------------- refused */

static bool is_refused_everywhere(char *base, char *page)
{
	PVOID at = base;
	SIZE_T bytes = 0;
	bool is_refused = !VirtualFree(base + PAGE, 0, MEM_RELEASE);

	is_refused &= !VirtualFree(base, 5, MEM_RELEASE);
	is_refused &= !VirtualFree(base + PAGE, 0, MEM_DECOMMIT);
	is_refused &= !VirtualFree(base, 0, MEM_RELEASE | MEM_DECOMMIT);
	is_refused &= nt_free(THIS_PROCESS, (PVOID *)(uintptr_t)8, &bytes, MEM_RELEASE) < 0;
	is_refused &= nt_free(THIS_PROCESS, &at, (PSIZE_T)(uintptr_t)16, MEM_RELEASE) < 0;
	is_refused &= nt_free(THIS_PROCESS, (PVOID *)page, &bytes, MEM_RELEASE) < 0;
	is_refused &= nt_free(THIS_PROCESS, (PVOID *)(page - 4), &bytes, MEM_RELEASE) < 0;
	is_refused &= nt_free((HANDLE)(uintptr_t)0xabcc, &at, &bytes, MEM_RELEASE) < 0;
	is_refused &=
		nt_allocate(THIS_PROCESS, (PVOID *)page, 0, &bytes, MEM_COMMIT, PAGE_READWRITE) < 0;
	is_refused &= nt_allocate(THIS_PROCESS, (PVOID *)(uintptr_t)8, 0, &bytes, MEM_COMMIT,
			      PAGE_READWRITE) < 0;
	return is_refused;
}

static void refused(void)
{
	char *base = both(), *page = only_reserve(0x20000) + 0x10000;

	VirtualFree(base + 0x2000, 0x1000, MEM_DECOMMIT);
	/* The page is not readable, and a pointer may lie across its start. */
	VirtualAlloc(page - PAGE, PAGE, MEM_COMMIT, PAGE_READWRITE);
	VirtualFree(page - PAGE, PAGE, MEM_DECOMMIT);
	if (!is_refused_everywhere(base, page))
		tell("wrong", "something was not refused");
	state("committed", base, 0x2000, "both");
	state("reserved", base + 0x2000, 0x1000, "both");
	state("committed", base + 0x3000, 0x16000, "both");
	state("reserved", page - 0x10000, 0x20000, "only_reserve");
	done("refused");
	release(base);
	release(page - 0x10000);
}

/* ---------------------------------------------------------------- other processes */

static bool start_again(const char *arguments, PROCESS_INFORMATION *info)
{
	STARTUPINFOA startup = {.cb = sizeof(startup)};
	char path[MAX_PATH], line[MAX_PATH + 100];

	GetModuleFileNameA(NULL, path, sizeof(path));
	snprintf(line, sizeof(line), "virtual_cases %s", arguments);
	return CreateProcessA(
		path, line, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup, info);
}

static NOINLINE char *in_other_process(HANDLE process)
{
	return step_leak(
		VirtualAllocEx(process, NULL, 0x10000, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

static void other_process(void)
{
	PROCESS_INFORMATION child;

	if (start_again("", &child)) {
		in_other_process(child.hProcess);
		TerminateProcess(child.hProcess, 0);
		WaitForSingleObject(child.hProcess, INFINITE);
		CloseHandle(child.hThread);
		CloseHandle(child.hProcess);
	} else {
		tell("wrong", "no other process");
	}
	done("another process");
}

/* Another process reserved memory in this process, so the tracer saw no call. */
static char *volatile from_outside;

static void reserve_for(const char *pid, const char *where)
{
	HANDLE process = OpenProcess(PROCESS_ALL_ACCESS, FALSE, strtoul(pid, NULL, 10));
	char *base = VirtualAllocEx(process, NULL, 0x40000, MEM_RESERVE, PAGE_READWRITE);

	WriteProcessMemory(
		process, (void *)(uintptr_t)strtoull(where, NULL, 16), &base, sizeof(base), NULL);
}

static NOINLINE void commit_found(char *base)
{
	commit(base + 0x1000, 0x3000);
	commit(base, 0x8000);
}

static void reserved_before(void)
{
	PROCESS_INFORMATION child;
	char arguments[64];
	char *base;

	snprintf(arguments, sizeof(arguments), "reserve %lu %llx", GetCurrentProcessId(),
		(unsigned long long)(uintptr_t)&from_outside);
	if (start_again(arguments, &child)) {
		ResumeThread(child.hThread);
		WaitForSingleObject(child.hProcess, INFINITE);
		CloseHandle(child.hThread);
		CloseHandle(child.hProcess);
	}
	base = step_leak(from_outside);
	commit_found(base);
	VirtualFree(base + 0x2000, 0x1000, MEM_DECOMMIT);
	state("committed", base, 0x2000, "commit_found");
	state("committed", base + 0x3000, 0x5000, "commit_found");
	done("reserved before");
	release(base);
	done("reserved before, released");
}

/* ---------------------------------------------------------------- views */

static NOINLINE char *map_view(HANDLE section, DWORD access, SIZE_T bytes)
{
	return step_leak(MapViewOfFile(section, access, 0, 0, bytes));
}

static NOINLINE char *map_behind(HANDLE section)
{
	return step_leak(MapViewOfFile(section, FILE_MAP_READ, 0, 0x20000, 0x8001));
}

static NOINLINE char *map_there(HANDLE section, char *at)
{
	return step_leak(MapViewOfFileEx(section, FILE_MAP_READ, 0, 0, 0x10000, at));
}

static NOINLINE void commit_in_view(char *view)
{
	commit(view + 0x2000, 0x3000);
}

static HANDLE section_of(const char *path, DWORD protect, DWORD bytes)
{
	HANDLE file = path ? CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING,
				     0, NULL) :
			     INVALID_HANDLE_VALUE;
	HANDLE section = CreateFileMappingA(file, NULL, protect, 0, bytes, NULL);

	if (path)
		CloseHandle(file);
	return step_leak(section);
}

static SIZE_T file_pages(const char *path)
{
	WIN32_FILE_ATTRIBUTE_DATA data;

	GetFileAttributesExA(path, GetFileExInfoStandard, &data);
	return (data.nFileSizeLow + PAGE - 1) & ~(SIZE_T)(PAGE - 1);
}

/* All views must be unmapped by the same call: gcc 14 would split a loop in two. */
static NOINLINE void unmap(char *view)
{
	if (!UnmapViewOfFile(view))
		tell("wrong", "unmap");
}

static void views(void)
{
	char path[MAX_PATH];
	char *at = only_reserve(0x40000), *made[6];
	HANDLE sections[4];

	GetModuleFileNameA(NULL, path, sizeof(path));
	sections[0] = section_of(NULL, PAGE_READWRITE, 300000);
	sections[1] = section_of(path, PAGE_READONLY, 0);
	sections[2] = section_of(path, PAGE_READONLY | SEC_IMAGE, 0);
	sections[3] = section_of(NULL, PAGE_READWRITE | SEC_RESERVE, 0x20000);
	made[0] = map_view(sections[0], FILE_MAP_WRITE, 0);
	made[1] = map_behind(sections[0]);
	release(at);
	made[2] = map_there(sections[0], at);
	made[3] = map_view(sections[1], FILE_MAP_READ, 0);
	made[4] = map_view(sections[2], FILE_MAP_READ, 0);
	made[5] = map_view(sections[3], FILE_MAP_WRITE, 0);
	commit_in_view(made[5]);
	state("mapped", made[0], 0x4a000, "map_view");
	state("mapped", made[1], 0x9000, "map_behind");
	state("mapped", made[2], 0x10000, "map_there");
	state("mapped", made[3], file_pages(path), "map_view");
	state("mapped", made[5], 0x20000, "map_view");
	if (VirtualFree(made[0], 0, MEM_RELEASE) || UnmapViewOfFile(both() + 0x100000000000))
		tell("wrong", "something was not refused");
	state("committed", step_leaked, 0x19000, "both");
	done("views");
	release(step_leaked);
	for (volatile int i = 0; i < 6; i++)
		unmap(made[i] + (i == 1 ? 0x5000 : 0));
	for (int i = 0; i < 4; i++)
		CloseHandle(sections[i]);
	done("views unmapped");
}

/* ---------------------------------------------------------------- memory of the system */

static NOINLINE HMODULE load_library(void)
{
	return step_leak(LoadLibraryA("version.dll"));
}

static NOINLINE void *big_block(void)
{
	return step_leak(malloc(3000000));
}

static NOINLINE HANDLE new_heap(SIZE_T bytes)
{
	return step_leak(HeapCreate(0, 0, bytes));
}

static NOINLINE void blocks_in_part(HANDLE heap)
{
	for (volatile int i = 0; i < 20; i++)
		step_leak(HeapAlloc(heap, 0, 5000));
}

static NOINLINE void *blocks_in(HANDLE heap)
{
	void *block = NULL;

	for (volatile int i = 0; i < 100; i++)
		block = step_leak(HeapAlloc(heap, 0, 20000));
	return block;
}

static NOINLINE void commit_for_heap(char *base)
{
	commit(base, 0x40000);
}

static NOINLINE HANDLE heap_there(char *base, SIZE_T bytes)
{
	return step_leak(create_heap(0, base, bytes, PAGE, NULL, NULL));
}

static void heap_in_own_memory(void)
{
	char *base = only_reserve(0x80000);
	HANDLE heap;

	commit_for_heap(base);
	commit_low(base + 0x3d000);
	heap = heap_there(base, 0x40000);
	blocks_in_part(heap);
	state("committed", base + 0x40000, 0x2000, "commit_low");
	state("reserved", base + 0x42000, 0x3e000, "only_reserve");
	done("heap in own memory");
	HeapDestroy(heap);
	VirtualFree(base, 0, MEM_RELEASE); /* if the heap has not freed it */
	done("heap in own memory, gone");
}

static void heaps_and_modules(void)
{
	HMODULE module = load_library();
	void *block = big_block();
	HANDLE growable = new_heap(0), fixed = new_heap(0x400000);

	blocks_in(growable);
	HeapFree(fixed, 0, blocks_in(fixed));
	done("heaps and modules");
	FreeLibrary(module);
	free(block);
	HeapDestroy(growable);
	HeapDestroy(fixed);
	done("heaps and modules gone");
}

/* ---------------------------------------------------------------- fibers */

static void *main_fiber;
static char *volatile in_fiber; /* an address on the fiber's stack */

static void WINAPI run_fiber(void *unused)
{
	(void)unused;
	in_fiber = __builtin_frame_address(0);
	SwitchToFiber(main_fiber);
}

static NOINLINE void *new_fiber(void)
{
	return step_leak(CreateFiber(0x20000, run_fiber, NULL));
}

/* ntdll allocates a fiber's stack as a program would. The system allocates a thread's stack. */
static void fibers(void)
{
	MEMORY_BASIC_INFORMATION stack, info;
	void *fiber;

	main_fiber = ConvertThreadToFiber(NULL);
	fiber = new_fiber();
	SwitchToFiber(fiber);
	VirtualQuery(in_fiber, &stack, sizeof(stack));
	for (char *at = stack.AllocationBase; VirtualQuery(at, &info, sizeof(info)) &&
					      info.AllocationBase == stack.AllocationBase;
		at += info.RegionSize) {
		if (info.State == MEM_COMMIT)
			state("committed", at, info.RegionSize, "new_fiber");
	}
	done("fiber");
	DeleteFiber(fiber);
	ConvertFiberToThread();
	done("fiber gone");
}

/* ---------------------------------------------------------------- threads */

#define THREADS 4
#define KEPT 20
#define ROUNDS 2000

struct crew {
	uint32_t seed;
	char *kept[KEPT]; /* each has 16 pages, of which the first half is committed */
};

static NOINLINE char *crew_reserve(void)
{
	return step_leak(VirtualAlloc(NULL, 16 * PAGE, MEM_RESERVE, PAGE_READWRITE));
}

static NOINLINE void crew_commit(char *base, unsigned page)
{
	step_leak(VirtualAlloc(base + page * PAGE, PAGE, MEM_COMMIT, PAGE_READWRITE));
}

static unsigned dice(struct crew *crew)
{
	crew->seed = crew->seed * 1103515245 + 12345;
	return crew->seed >> 16;
}

static DWORD WINAPI work(void *context)
{
	struct crew *crew = context;

	for (volatile int i = 0; i < ROUNDS; i++) {
		char **kept = &crew->kept[dice(crew) % KEPT];

		if (*kept && dice(crew) % 2) {
			VirtualFree(*kept, 0, MEM_RELEASE);
			*kept = NULL;
		}
		if (!*kept)
			*kept = crew_reserve();
		crew_commit(*kept, dice(crew) % 16);
		VirtualFree(*kept + dice(crew) % 16 * PAGE, PAGE, MEM_DECOMMIT);
	}
	for (int k = 0; k < KEPT; k++) {
		if (!crew->kept[k])
			crew->kept[k] = crew_reserve();
		VirtualFree(crew->kept[k], 0, MEM_DECOMMIT);
		for (volatile unsigned page = 0; page < 8; page++)
			crew_commit(crew->kept[k], page);
	}
	return 0;
}

static void threads(void)
{
	static struct crew crews[THREADS];
	HANDLE made[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		crews[i].seed = 100 + i;
		made[i] = CreateThread(NULL, 0, work, &crews[i], 0, NULL);
	}
	WaitForMultipleObjects(THREADS, made, TRUE, INFINITE);
	for (unsigned i = 0; i < THREADS * KEPT; i++) {
		char *kept = crews[i / KEPT].kept[i % KEPT];

		state("committed", kept, 8 * PAGE, "crew_commit");
		state("reserved", kept + 8 * PAGE, 8 * PAGE, "crew_reserve");
	}
	done("threads");
	for (unsigned i = 0; i < THREADS * KEPT; i++)
		release(crews[i / KEPT].kept[i % KEPT]);
	done("threads, released");
}

/* ---------------------------------------------------------------- */

static NOINLINE void no_more(void)
{
}

int main(int argc, char **argv)
{
	static const struct said_function functions[] = {SAID_FUNCTION(both),
		SAID_FUNCTION(only_reserve), SAID_FUNCTION(commit_nowhere), SAID_FUNCTION(top_down),
		SAID_FUNCTION(watched), SAID_FUNCTION(in_this_process), SAID_FUNCTION(newer),
		SAID_FUNCTION(plainly), SAID_FUNCTION(commit_low), SAID_FUNCTION(commit_high),
		SAID_FUNCTION(commit_over_both), SAID_FUNCTION(commit_few_bytes),
		SAID_FUNCTION(in_parts), SAID_FUNCTION(both_then_decommit),
		SAID_FUNCTION(release_a_part), SAID_FUNCTION(is_refused_everywhere),
		SAID_FUNCTION(refused), SAID_FUNCTION(start_again), SAID_FUNCTION(in_other_process),
		SAID_FUNCTION(other_process), SAID_FUNCTION(commit_found),
		SAID_FUNCTION(reserved_before), SAID_FUNCTION(map_view), SAID_FUNCTION(map_behind),
		SAID_FUNCTION(map_there), SAID_FUNCTION(commit_in_view), SAID_FUNCTION(section_of),
		SAID_FUNCTION(views), SAID_FUNCTION(load_library), SAID_FUNCTION(big_block),
		SAID_FUNCTION(new_heap), SAID_FUNCTION(blocks_in), SAID_FUNCTION(blocks_in_part),
		SAID_FUNCTION(heap_there), SAID_FUNCTION(heap_in_own_memory),
		SAID_FUNCTION(new_fiber), SAID_FUNCTION(fibers), SAID_FUNCTION(heaps_and_modules),
		SAID_FUNCTION(crew_reserve), SAID_FUNCTION(crew_commit), SAID_FUNCTION(work),
		SAID_FUNCTION(threads), SAID_FUNCTION(commit_for_heap), SAID_FUNCTION(no_more)};
	static void (*const cases[])(void) = {plainly, in_parts, both_then_decommit, release_a_part,
		refused, other_process, reserved_before, views, heaps_and_modules,
		heap_in_own_memory, fibers, threads};
	HMODULE ntdll = GetModuleHandleA("ntdll.dll");

	if (argc == 4 && !strcmp(argv[1], "reserve")) {
		reserve_for(argv[2], argv[3]);
		return 0;
	}
	nt_allocate = (nt_allocate_fn)(void *)GetProcAddress(ntdll, "NtAllocateVirtualMemory");
	nt_free = (nt_free_fn)(void *)GetProcAddress(ntdll, "NtFreeVirtualMemory");
	create_heap = (create_heap_fn)(void *)GetProcAddress(ntdll, "RtlCreateHeap");
	allocate2 = (allocate2_fn)(void *)GetProcAddress(
		GetModuleHandleA("kernelbase.dll"), "VirtualAlloc2");
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		messages("function ");
		messages(functions[i].name);
		print_hex(functions[i].addr);
		messages("\n");
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cases[i]();
	return 0;
}
