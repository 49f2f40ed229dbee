/* no_slots: while the loader starts the program, takes every TLS slot of a thread's own block (64
 * of them), so that the tracer finds no free slot. Then each step starts 8 threads at the same
 * time, 5 times. The threads end within the step. Each thread leaks 10 blocks of 300 bytes, moves a
 * block to 5000 bytes, and leaks a block of 1 MiB, for which a heap allocates from the system. It
 * also frees 200 other blocks, and destroys a heap with 200 blocks. */
#include "tests/targets/stated.h"

#define THREADS 8
#define ROUNDS 5
#define LEAKED 10
#define LEAKED_BYTES 300
#define MOVED_BYTES 5000
#define LARGE_BYTES (1 << 20)
#define SLOTS 64 /* number of slots in a thread's own block: TLS_MINIMUM_AVAILABLE */

static DWORD last_slot;

static NTAPI void on_load(PVOID image, DWORD reason, PVOID reserved)
{
	(void)image;
	(void)reserved;
	while (reason == DLL_PROCESS_ATTACH && last_slot < SLOTS)
		last_slot = TlsAlloc();
}

/* A TLS callback: "PE Format", Microsoft Learn. */
__attribute__((section(".CRT$XLD"), used)) static const PIMAGE_TLS_CALLBACK callback = on_load;

static NOINLINE void leak_block(void)
{
	step_leak(HeapAlloc(GetProcessHeap(), 0, LEAKED_BYTES));
}

static NOINLINE void leak_large(void)
{
	step_leak(HeapAlloc(GetProcessHeap(), 0, LARGE_BYTES));
}

static NOINLINE void move_block(void)
{
	void *block = step_leak(HeapAlloc(GetProcessHeap(), 0, 40));

	step_leak(HeapReAlloc(GetProcessHeap(), 0, block, MOVED_BYTES));
}

static NOINLINE void come_and_go(void)
{
	HANDLE heap = HeapCreate(0, 0, 0);

	for (int i = 0; i < 200; i++) {
		void *block = malloc(16 + 37 * (size_t)i);

		HeapAlloc(heap, 0, 100);
		free(step_leak(block));
	}
	HeapDestroy(heap);
}

static DWORD WINAPI work(void *unused)
{
	(void)unused;
	for (volatile int i = 0; i < LEAKED; i++)
		leak_block();
	come_and_go();
	move_block();
	leak_large();
	return 0;
}

static bool start_and_end_threads(void)
{
	HANDLE threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		threads[i] = CreateThread(NULL, 0, work, NULL, 0, NULL);
		if (!threads[i])
			return false;
	}
	WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
	for (int i = 0; i < THREADS; i++)
		CloseHandle(threads[i]);
	return true;
}

int main(void)
{
	size_t count = 0;

	if (last_slot < SLOTS || last_slot == TLS_OUT_OF_INDEXES)
		return 3;
	for (unsigned long step = 1;; step++) {
		for (int round = 0; round < ROUNDS; round++, count += THREADS) {
			if (!start_and_end_threads())
				return 4;
		}
		state("sum leak_block %zu %zu\n", count * LEAKED * LEAKED_BYTES, count * LEAKED);
		state("sum move_block %zu %zu\n", count * MOVED_BYTES, count);
		state("sum leak_large %zu %zu\n", count * LARGE_BYTES, count);
		if (!state_step(step))
			return 0;
	}
}
