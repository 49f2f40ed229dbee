/*
 * Blocks that are reachable or lost in known ways. Each block has a unique size. The program prints
 * the expected result for each block, one per line:
 *
 *   block SIZE held|interior|lost
 *   block SIZE lost-with SIZE
 *   circle SIZE SIZE        one of the two is lost, and the other is lost with it
 *
 * The thread that allocated the blocks has ended, so no stack contains old copies of their
 * addresses. Then the program prints "ready PID", and ends when it reads a line. In a 64-bit
 * process the blocks lie above 4 GiB, because below 4 GiB numbers in the modules' data could be
 * mistaken for pointers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#define NOINLINE __attribute__((noinline))
#define DEEP 60000 /* bytes of stack that are no longer in use */
#define MASK ((uintptr_t)0x5555aaaa5555aaaa)

static void *volatile kept, *volatile tree, *volatile other_heap, *volatile stacked,
									  *volatile for_tls,
										  *volatile for_fls;
static char *volatile middle;
static volatile uintptr_t hidden;
static volatile LONG is_running, is_over;
static HANDLE blocks_heap;

/* Allocates a block with room for three pointers. `expected`: the result expected for the block. */
static NOINLINE void **make(size_t bytes, const char *expected)
{
	void **block = HeapAlloc(blocks_heap, HEAP_ZERO_MEMORY, bytes);

	if (!block)
		ExitProcess(3);
	printf("%s %u%s\n", strcmp(expected, "circle") ? "block" : "half", (unsigned)bytes,
		expected);
	return block;
}

static NOINLINE void make_lost(void)
{
	void **first = make(1001, " lost"), **second = make(1002, " lost-with 1001");
	void **block;

	first[0] = second;
	second[1] = make(1003, " lost-with 1001");
	first = make(1011, "circle");
	second = make(1012, "circle");
	first[0] = second;
	second[2] = first;
	printf("circle 1011 1012\n");
	hidden = (uintptr_t)make(1071, " lost") ^ MASK;
	block = make(1500, " freed");
	block[5] = make(1111, " lost");
	HeapFree(blocks_heap, 0, block);
	block = make(1121, " lost");
	block[0] = block;
	block = make(1131, " lost");
	block[0] = (char *)make(1132, " lost-with 1131") + 100;
}

static NOINLINE void make_held(void)
{
	HANDLE heap = HeapCreate(0, 0, 0);
	void **block;

	kept = make(1101, " held");
	tree = block = make(1021, " held");
	block[0] = make(1022, " held");
	block[1] = make(1023, " held");
	middle = (char *)make(1031, " interior") + 16;
	block = other_heap = HeapAlloc(heap, HEAP_ZERO_MEMORY, 1041);
	if (!block)
		ExitProcess(3);
	printf("block 1041 held\n");
	block[1] = make(1042, " held");
	/* Makes a block held by data of a DLL, the C library's pointer to the command line. */
	*(void **)(void *)GetProcAddress(GetModuleHandleA("msvcrt.dll"), "_acmdln") =
		make(1151, " held");
	for_tls = make(1051, " held");
	for_fls = make(1061, " held");
	stacked = make(1091, " held");
}

/* Writes the address of a block to a file, and maps the file read-only. */
static NOINLINE void map_file_of(void *block)
{
	char folder[MAX_PATH], path[MAX_PATH];
	HANDLE file = INVALID_HANDLE_VALUE, section;
	DWORD written;

	if (GetTempPathA(sizeof(folder), folder) && GetTempFileNameA(folder, "hs", 0, path))
		file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
			FILE_FLAG_DELETE_ON_CLOSE, NULL);
	if (!WriteFile(file, &block, sizeof(block), &written, NULL))
		ExitProcess(4);
	section = CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL);
	if (!MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0))
		ExitProcess(5);
}

/* Maps a section twice, one of the times writable. */
static NOINLINE void make_mapped(void)
{
	HANDLE section =
		CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 4096, NULL);
	void **view = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0);

	if (!view || !MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0))
		ExitProcess(6);
	view[0] = make(1161, " held");
	map_file_of(make(1171, " lost"));
}

static DWORD WINAPI make_all(void *unused)
{
	(void)unused;
	make_lost();
	make_held();
	make_mapped();
	return 0;
}

static DWORD WINAPI do_nothing(void *unused)
{
	(void)unused;
	return 0;
}

static DWORD WINAPI hold_in_register(void *unused)
{
	void *block = make(1081, " held");

	(void)unused;
	is_running = 1;
	__asm__ volatile("1: pause\n\tcmpl $0, %1\n\tje 1b"
			 :
			 : "r"(block), "m"(is_over)
			 : "memory");
	return 0;
}

/* Leaves a block's address far below later values of the stack pointer. */
static NOINLINE void leave_below(void)
{
	void *volatile words[DEEP / sizeof(void *)];

	words[0] = make(1141, " lost");
	words[1] = words[0];
	(void)words[1];
}

static void run(LPTHREAD_START_ROUTINE routine)
{
	HANDLE thread = CreateThread(NULL, 0, routine, NULL, 0, NULL);

	WaitForSingleObject(thread, INFINITE);
	CloseHandle(thread);
}

/* A waiting thread, whose stack pointer is far above the address that the thread left on its
 * stack. */
static DWORD WINAPI wait_above(void *unused)
{
	(void)unused;
	leave_below();
	InterlockedIncrement(&is_running);
	while (!is_over)
		Sleep(100);
	return 0;
}

#define RESERVED_MAX 1000

/* Returns a heap above 4 GiB, by first reserving all free memory below. In a 32-bit process,
 * returns the process heap. */
static HANDLE high_heap(void)
{
	static void *reserved[RESERVED_MAX];
	size_t count = 0;
	HANDLE heap;

	if (sizeof(void *) == 4)
		return GetProcessHeap();
	for (size_t bytes = (size_t)1 << 30; bytes >= 0x10000; bytes /= 2) {
		while (count < RESERVED_MAX) {
			void *addr = VirtualAlloc(NULL, bytes, MEM_RESERVE, PAGE_NOACCESS);

			if ((uint64_t)(uintptr_t)addr - 1 >= UINT32_MAX) {
				VirtualFree(addr, 0, MEM_RELEASE);
				break;
			}
			reserved[count++] = addr;
		}
	}
	heap = HeapCreate(0, 0, 0);
	while (count)
		VirtualFree(reserved[--count], 0, MEM_RELEASE);
	return heap;
}

int main(void)
{
	HANDLE threads[2];
	void *volatile on_stack;
	DWORD fls = FlsAlloc(NULL), tls = TlsAlloc();

	setvbuf(stdout, NULL, _IONBF, 0);
	blocks_heap = high_heap();
	run(make_all);
	threads[0] = CreateThread(NULL, 0, hold_in_register, NULL, 0, NULL);
	while (!is_running)
		Sleep(1);
	threads[1] = CreateThread(NULL, 0, wait_above, NULL, 0, NULL);
	while (is_running < 2)
		Sleep(1);
	for (int i = 0; i < 3; i++) /* Wine frees a thread's stack when another thread has ended */
		run(do_nothing);
	TlsSetValue(tls, for_tls);
	FlsSetValue(fls, for_fls);
	on_stack = stacked;
	for_tls = for_fls = stacked = NULL;
	printf("ready %lu\n", GetCurrentProcessId());
	getchar();
	is_over = 1;
	WaitForMultipleObjects(2, threads, TRUE, INFINITE);
	for (int i = 0; i < 3; i++)
		run(do_nothing);
	return on_stack == NULL;
}
