/* steady [STATUS]: keeps its blocks unchanged, and prints its state at each step. It has 40 blocks
 * of 500 bytes from keep_small() and 3 of 70000 from keep_large(), in a list, and a range of
 * virtual memory. Before each step every thread allocates and frees in a heap. "changed N" is the
 * number of bytes of ntdll's code that changed since the program's start. "step K pid P" follows
 * when all threads are done. The program ends with STATUS. */
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

#define THREADS 2

struct worker {
	HANDLE go, done;
};

static void **volatile list;

static void keep(void **block)
{
	*block = (void *)list;
	list = block;
}

static NOINLINE void keep_small(void)
{
	keep(step_leak(malloc(500)));
}

static NOINLINE void keep_large(void)
{
	keep(step_leak(malloc(70000)));
}

static void use_heap(void)
{
	for (size_t bytes = 1; bytes < 5000; bytes *= 3)
		HeapFree(GetProcessHeap(), 0, step_leak(HeapAlloc(GetProcessHeap(), 0, bytes)));
}

static DWORD WINAPI work(void *argument)
{
	struct worker *worker = argument;

	while (WaitForSingleObject(worker->go, INFINITE) == WAIT_OBJECT_0) {
		use_heap();
		SetEvent(worker->done);
	}
	return 0;
}

/* Returns the readable part of ntdll's code. */
static const unsigned char *code(SIZE_T *bytes)
{
	const unsigned char *base = (const unsigned char *)GetModuleHandleW(L"ntdll.dll");
	const IMAGE_NT_HEADERS *headers =
		(const IMAGE_NT_HEADERS *)(base + ((const IMAGE_DOS_HEADER *)base)->e_lfanew);

	*bytes = IMAGE_FIRST_SECTION(headers)->Misc.VirtualSize;
	return base + IMAGE_FIRST_SECTION(headers)->VirtualAddress;
}

static void print_changed(const unsigned char *before)
{
	SIZE_T bytes, changed = 0;
	const unsigned char *now = code(&bytes);
	char line[64], *end = step_text(line, "changed ");
	DWORD put;

	for (SIZE_T i = 0; i < bytes; i++)
		changed += now[i] != before[i];
	end = step_decimal(end, (unsigned long)changed);
	*end++ = '\n';
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)(end - line), &put, NULL);
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	SIZE_T bytes;
	const unsigned char *now = code(&bytes);
	unsigned char *before = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);

	memcpy(step_leak(before), now, bytes);
	for (volatile int i = 0; i < 40; i++)
		keep_small();
	for (volatile int i = 0; i < 3; i++)
		keep_large();
	for (int i = 0; i < THREADS; i++) {
		workers[i].go = CreateEventW(NULL, FALSE, FALSE, NULL);
		workers[i].done = CreateEventW(NULL, FALSE, FALSE, NULL);
		CreateThread(NULL, 0, work, &workers[i], 0, NULL);
	}
	for (unsigned long step = 1;; step++) {
		use_heap();
		for (int i = 0; i < THREADS; i++) {
			SetEvent(workers[i].go);
			WaitForSingleObject(workers[i].done, INFINITE);
		}
		print_changed(before);
		if (!step_done(step))
			return argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
	}
}
