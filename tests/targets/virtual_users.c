/*
 * virtual_users: views of sections, and what takes memory from the system by itself: modules, heaps,
 * fibers, threads. What it says is explained in virtual_said.h.
 */
#include <stdlib.h>
#include <windows.h>

#include "tests/targets/virtual_said.h"

typedef HANDLE(NTAPI *create_heap_fn)(
	ULONG flags, PVOID base, SIZE_T bytes, SIZE_T commit, PVOID lock, PVOID parameters);

static create_heap_fn create_heap;

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
	begin("views");
	state("mapped", made[0], 0x4a000, "map_view");
	state("mapped", made[1], 0x9000, "map_behind");
	state("mapped", made[2], 0x10000, "map_there");
	state("mapped", made[3], file_pages(path), "map_view");
	state("mapped", made[5], 0x20000, "map_view");
	if (VirtualFree(made[0], 0, MEM_RELEASE) || UnmapViewOfFile(both() + 0x100000000000))
		wrong("something was not refused");
	state("committed", step_leaked, 0x19000, "both");
	done();
	release(step_leaked);
	begin("views unmapped");
	for (int i = 0; i < 6; i++) {
		if (!UnmapViewOfFile(made[i] + (i == 1 ? 0x5000 : 0)))
			wrong("unmap");
	}
	for (int i = 0; i < 4; i++)
		CloseHandle(sections[i]);
	done();
}

/* ---------------------------------------------------------------- what is not the program's own */

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

/* In memory of the program's own, which is the heap's from then on. */
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
	begin("heap in own memory");
	state("committed", base + 0x40000, 0x2000, "commit_low");
	state("reserved", base + 0x42000, 0x3e000, "only_reserve");
	done();
	begin("heap in own memory, gone");
	HeapDestroy(heap);
	VirtualFree(base, 0, MEM_RELEASE); /* if that has not */
	done();
}

static void heaps_and_modules(void)
{
	HMODULE module = load_library();
	void *block = big_block();
	HANDLE growable = new_heap(0), fixed = new_heap(0x400000);

	blocks_in(growable);
	HeapFree(fixed, 0, blocks_in(fixed));
	begin("heaps and modules");
	done();
	begin("heaps and modules gone");
	FreeLibrary(module);
	free(block);
	HeapDestroy(growable);
	HeapDestroy(fixed);
	done();
}

/* ---------------------------------------------------------------- fibers */

static void *main_fiber;
static char *volatile in_fiber; /* an address on its stack */

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

/* ntdll takes a fiber's stack from the system as a program does; a thread's is the system's doing. */
static void fibers(void)
{
	MEMORY_BASIC_INFORMATION stack, info;
	void *fiber;

	main_fiber = ConvertThreadToFiber(NULL);
	fiber = new_fiber();
	SwitchToFiber(fiber);
	begin("fiber");
	VirtualQuery(in_fiber, &stack, sizeof(stack));
	for (char *at = stack.AllocationBase; VirtualQuery(at, &info, sizeof(info)) &&
					      info.AllocationBase == stack.AllocationBase;
		at += info.RegionSize) {
		if (info.State == MEM_COMMIT)
			state("committed", at, info.RegionSize, "new_fiber");
	}
	done();
	begin("fiber gone");
	DeleteFiber(fiber);
	ConvertFiberToThread();
	done();
}

/* ---------------------------------------------------------------- threads */

#define THREADS 4
#define KEPT 20
#define ROUNDS 2000

struct crew {
	uint32_t seed;
	char *kept[KEPT]; /* of 16 pages; the first half of them is committed */
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
	begin("threads");
	for (unsigned i = 0; i < THREADS * KEPT; i++) {
		char *kept = crews[i / KEPT].kept[i % KEPT];

		state("committed", kept, 8 * PAGE, "crew_commit");
		state("reserved", kept + 8 * PAGE, 8 * PAGE, "crew_reserve");
	}
	done();
	begin("threads, released");
	for (unsigned i = 0; i < THREADS * KEPT; i++)
		release(crews[i / KEPT].kept[i % KEPT]);
	done();
}

/* ---------------------------------------------------------------- */

static NOINLINE void no_more(void)
{
}

int main(void)
{
	static const struct said_function functions[] = {SAID_FUNCTION(both),
		SAID_FUNCTION(only_reserve), SAID_FUNCTION(commit_low), SAID_FUNCTION(map_view),
		SAID_FUNCTION(map_behind), SAID_FUNCTION(map_there), SAID_FUNCTION(commit_in_view),
		SAID_FUNCTION(section_of), SAID_FUNCTION(views), SAID_FUNCTION(load_library),
		SAID_FUNCTION(big_block), SAID_FUNCTION(new_heap), SAID_FUNCTION(blocks_in),
		SAID_FUNCTION(blocks_in_part), SAID_FUNCTION(heap_there),
		SAID_FUNCTION(heap_in_own_memory), SAID_FUNCTION(new_fiber), SAID_FUNCTION(fibers),
		SAID_FUNCTION(heaps_and_modules), SAID_FUNCTION(crew_reserve),
		SAID_FUNCTION(crew_commit), SAID_FUNCTION(work), SAID_FUNCTION(threads),
		SAID_FUNCTION(commit_for_heap), SAID_FUNCTION(no_more)};

	create_heap = (create_heap_fn)(void *)GetProcAddress(
		GetModuleHandleA("ntdll.dll"), "RtlCreateHeap");
	say_functions(functions, sizeof(functions) / sizeof(*functions));
	views();
	heaps_and_modules();
	heap_in_own_memory();
	fibers();
	threads();
	return 0;
}
