/*
 * Memory and objects of each kind, in known amounts. Step 1 holds none of them. Step 2 adds what
 * the lines below state; step 3 adds nothing.
 *
 * balance: threads +40
 * balance: handles +541
 * balance: thread-stacks-reserved +41943040
 * balance: virtual +5242880
 * balance: mapped +3145728
 * balance: heap-blocks +20480000
 *
 * The 541 handles are 40 threads, 500 events and 1 section. Each thread reserves 1 MiB for its
 * stack. The system allocates more blocks, and more virtual memory, for the threads.
 *
 * Before each step's line, the program states its committed memory by type, as VirtualQueryEx()
 * reports it: "space private N mapped N images N". With the argument PID, it only states this of that
 * process. A 64-bit program sees more of a 32-bit process than the process itself.
 */
#include <stdlib.h>

#include "samples/step.h"

#define THREADS 40
#define EVENTS 500
#define STACK_BYTES (1u << 20)
#define VIEW_BYTES (3u << 20)
#define VIRTUAL_BYTES (5u << 20)
#define BLOCKS 40
#define BLOCK_BYTES 512000

static HANDLE never;

static DWORD WINAPI wait_forever(void *arg)
{
	(void)arg;
	WaitForSingleObject(never, INFINITE);
	return 0;
}

static void add_threads(void)
{
	for (int i = 0; i < THREADS; i++)
		step_leak(CreateThread(NULL, STACK_BYTES, wait_forever, NULL,
			STACK_SIZE_PARAM_IS_A_RESERVATION, NULL));
}

static void add_memory(void)
{
	HANDLE section =
		CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, VIEW_BYTES, NULL);
	HANDLE heap = GetProcessHeap();

	step_leak(MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0));
	step_leak(VirtualAlloc(NULL, VIRTUAL_BYTES, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE));
	for (int i = 0; i < BLOCKS; i++)
		step_leak(HeapAlloc(heap, 0, BLOCK_BYTES));
}

static SIZE_T committed_of(HANDLE process, DWORD type)
{
	MEMORY_BASIC_INFORMATION info;
	SIZE_T sum = 0;

	for (char *at = NULL; VirtualQueryEx(process, at, &info, sizeof(info));
		at += info.RegionSize) {
		if (info.State == MEM_COMMIT && info.Type == type)
			sum += info.RegionSize;
	}
	return sum;
}

static void state_space(HANDLE process)
{
	char line[200], *end = step_text(line, "space private ");
	DWORD put;

	end = step_decimal(end, (unsigned long)committed_of(process, MEM_PRIVATE));
	end = step_text(end, " mapped ");
	end = step_decimal(end, (unsigned long)committed_of(process, MEM_MAPPED));
	end = step_text(end, " images ");
	end = step_decimal(end, (unsigned long)committed_of(process, MEM_IMAGE));
	*end++ = '\n';
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)(end - line), &put, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		state_space(
			OpenProcess(PROCESS_QUERY_INFORMATION, FALSE, strtoul(argv[1], NULL, 10)));
		return 0;
	}
	never = CreateEventW(NULL, TRUE, FALSE, NULL);
	for (unsigned long step = 1;; step++) {
		if (step == 2) {
			for (int i = 0; i < EVENTS; i++)
				step_leak(CreateEventW(NULL, TRUE, FALSE, NULL));
			add_threads();
			add_memory();
			Sleep(200); /* lets all threads begin */
		}
		state_space(GetCurrentProcess());
		if (!step_done(step))
			return 0;
	}
}
