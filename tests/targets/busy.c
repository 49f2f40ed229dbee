/*
 * busy [THREADS [WHAT]]: several threads continuously call the functions that a tracer hooks, and
 * check the results. Between two steps main calls leak_new(). For tracers that attach and detach
 * while the program runs.
 *
 * Before step 1 main has called keep_old() 100 times for 1111 bytes each. Before every later step
 * it calls leak_new() 20 times for 2222 bytes, moves one block of keep_old() to 3333 bytes in
 * move_old(), and frees another block of keep_old(). So step K (up to 51) has 102 - 2 K blocks of
 * keep_old(), K - 1 of move_old() and 20 K - 20 of leak_new(). The status is 0 if every thread
 * found every block unchanged and the tracer changed nothing that the program can observe.
 *
 * WHAT is "heap" or "virtual" for threads that use only that memory; by default they use both.
 * "resting": each thread sometimes sleeps briefly and frees its processor. "locked": main holds the
 * loader's lock during step 1, so that no DLL can be loaded.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/step.h"

#define THREADS_MAX 16
#define OLD_BLOCKS 100
#define SLOTS 64

struct worker {
	HANDLE thread;
	unsigned random;
	unsigned long rounds, failures;
	unsigned char *blocks[SLOTS];
	size_t bytes[SLOTS];
};

static volatile LONG over;
static bool with_heap = true, with_virtual = true, is_resting;
static void *old_blocks[OLD_BLOCKS];

static unsigned next(struct worker *worker)
{
	worker->random = worker->random * 1664525 + 1013904223;
	return worker->random >> 8;
}

/* Returns the byte that fills a block. It depends on the block's slot and size. */
static unsigned char mark(unsigned slot, size_t bytes)
{
	return (unsigned char)(slot * 7 + bytes);
}

static bool is_intact(const struct worker *worker, unsigned slot, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (worker->blocks[slot][i] != mark(slot, worker->bytes[slot]))
			return false;
	}
	return true;
}

static void heap_round(struct worker *worker)
{
	unsigned slot = next(worker) % SLOTS;
	size_t bytes = next(worker) % 300 + 1, old = worker->bytes[slot];
	HANDLE heap = GetProcessHeap();

	if (!worker->blocks[slot]) {
		worker->blocks[slot] = HeapAlloc(heap, 0, bytes);
	} else if (next(worker) % 3) {
		worker->failures += !is_intact(worker, slot, old);
		worker->failures += !HeapFree(heap, 0, worker->blocks[slot]);
		worker->blocks[slot] = NULL;
		return;
	} else {
		worker->blocks[slot] = HeapReAlloc(heap, 0, worker->blocks[slot], bytes);
		if (worker->blocks[slot])
			worker->failures += !is_intact(worker, slot, old < bytes ? old : bytes);
	}
	if (!worker->blocks[slot]) {
		worker->failures++;
		return;
	}
	worker->bytes[slot] = bytes;
	memset(worker->blocks[slot], mark(slot, bytes), bytes);
}

static void virtual_round(struct worker *worker)
{
	SIZE_T bytes = (next(worker) % 4 + 1) * 4096;
	unsigned char *pages = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);

	if (!pages) {
		worker->failures++;
		return;
	}
	worker->failures += pages[0] != 0 || pages[bytes - 1] != 0;
	pages[bytes - 1] = 1;
	worker->failures += !VirtualFree(pages, 0, MEM_RELEASE);
}

static DWORD WINAPI work(void *argument)
{
	struct worker *worker = argument;

	while (!over) {
		if (with_heap)
			heap_round(worker);
		if (with_virtual && (!with_heap || worker->rounds % 16 == 0))
			virtual_round(worker);
		worker->rounds++;
		if (is_resting && worker->rounds % 32 == 0)
			Sleep(20);
	}
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		if (!worker->blocks[slot])
			continue;
		worker->failures += !is_intact(worker, slot, worker->bytes[slot]);
		worker->failures += !HeapFree(GetProcessHeap(), 0, worker->blocks[slot]);
	}
	return 0;
}

static NOINLINE void *keep_old(void)
{
	return step_leak(malloc(1111));
}

static NOINLINE void leak_new(void)
{
	step_leak(malloc(2222));
}

static NOINLINE void *move_old(void *block)
{
	return step_leak(realloc(block, 3333));
}

/* The work between two steps. It begins and ends with the same stack. */
static void go_on(unsigned step)
{
	for (volatile int i = 0; i < 20; i++) {
		if (i == 10 && 2 * step <= OLD_BLOCKS) {
			old_blocks[2 * step - 2] = move_old(old_blocks[2 * step - 2]);
			free(old_blocks[2 * step - 1]);
		}
		leak_new();
	}
}

/* LdrLockLoaderLock() and LdrUnlockLoaderLock() are exports of ntdll; phnt, ntldr.h. */
typedef LONG(WINAPI *lock_fn)(ULONG flags, ULONG *disposition, ULONG_PTR *cookie);
typedef LONG(WINAPI *unlock_fn)(ULONG flags, ULONG_PTR cookie);

static void lock_loader(ULONG_PTR *cookie, bool lock)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");

	if (lock)
		((lock_fn)(void *)GetProcAddress(ntdll, "LdrLockLoaderLock"))(0, NULL, cookie);
	else
		((unlock_fn)(void *)GetProcAddress(ntdll, "LdrUnlockLoaderLock"))(0, *cookie);
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 4;
	bool is_locked = argc > 2 && !strcmp(argv[2], "locked");
	unsigned long failures = 0;
	ULONG_PTR cookie = 0;

	if (count < 0 || count > THREADS_MAX)
		return 3;
	with_heap = argc < 3 || strcmp(argv[2], "virtual") != 0;
	with_virtual = argc < 3 || strcmp(argv[2], "heap") != 0;
	is_resting = argc > 2 && !strcmp(argv[2], "resting");
	for (int i = 0; i < OLD_BLOCKS; i++)
		old_blocks[i] = keep_old();
	for (int i = 0; i < count; i++) {
		workers[i].random = (unsigned)i + 1;
		workers[i].thread = CreateThread(NULL, 0, work, &workers[i], 0, NULL);
	}
	if (is_locked)
		lock_loader(&cookie, true);
	for (unsigned step = 1; step_done(step); step++) {
		if (is_locked && step == 1)
			lock_loader(&cookie, false);
		go_on(step);
	}
	over = 1;
	for (int i = 0; i < count; i++) {
		WaitForSingleObject(workers[i].thread, INFINITE);
		failures += workers[i].failures + (workers[i].rounds == 0);
	}
	return failures ? 5 : 0;
}
