/* mixed THREADS OPS [own]: measures the cost of the tracer. Each thread does OPS operations on its
 * own blocks of mixed sizes: malloc, realloc and free in about equal numbers, the first two at the
 * end of 8 calls. Prints ns per operation of every thread. With "own" each thread has its own heap.
 * Without it the threads mostly wait for the heap's lock, so the result depends on how the system
 * wakes them. */
#include <stdint.h>
#include <stdlib.h>
#include <windows.h>

#include "samples/step.h"

#define SLOTS 512
#define DEPTH 8
#define THREADS_MAX 16

static unsigned long ops;
static bool has_own;

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Most sizes are 16 to 143 bytes; one in eight is up to 2 KiB and one in 64 up to 16 KiB. */
static size_t some_bytes(uint32_t random)
{
	unsigned shift = random % 64 == 0 ? 7 : random % 8 == 0 ? 4 : 0;

	return 16 + ((size_t)(random >> 8 & 127) << shift);
}

static NOINLINE void *get(unsigned depth, HANDLE heap, void *old, size_t bytes)
{
	char *block = depth ? get(depth - 1, heap, old, bytes) :
		      !heap ? realloc(old, bytes) :
		      old   ? HeapReAlloc(heap, 0, old, bytes) :
			      HeapAlloc(heap, 0, bytes);

	if (!block)
		ExitProcess(3);
	block[0] = 'x'; /* prevents a tail call */
	return block;
}

static void drop(HANDLE heap, void *block)
{
	if (!block)
		return;
	if (heap)
		HeapFree(heap, 0, block);
	else
		free(block);
}

static DWORD WINAPI work(LPVOID seed)
{
	HANDLE heap = has_own ? HeapCreate(0, 0, 0) : NULL;
	uint64_t state = (uintptr_t)seed;
	void *slots[SLOTS] = {0};

	for (unsigned long i = 0; i < ops; i++) {
		uint32_t random = next_random(&state);
		void **slot = &slots[random % SLOTS];

		if (*slot && random & 1 << 20) {
			drop(heap, *slot);
			*slot = NULL;
		} else {
			*slot = get(DEPTH, heap, *slot, some_bytes(next_random(&state)));
		}
	}
	for (unsigned i = 0; i < SLOTS; i++)
		drop(heap, slots[i]);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
	LARGE_INTEGER from, to, per_second;
	HANDLE handles[THREADS_MAX];
	char text[40], *end;
	DWORD put;

	ops = argc > 2 ? strtoul(argv[2], NULL, 10) : 300000;
	has_own = argc > 3;
	if (!threads || threads > THREADS_MAX)
		return 2;
	QueryPerformanceFrequency(&per_second);
	QueryPerformanceCounter(&from);
	for (unsigned i = 0; i < threads; i++)
		handles[i] = CreateThread(NULL, 0, work, (LPVOID)(uintptr_t)(i + 1), 0, NULL);
	WaitForMultipleObjects(threads, handles, TRUE, INFINITE);
	QueryPerformanceCounter(&to);
	end = step_decimal(text, (unsigned long)((to.QuadPart - from.QuadPart) * 1000000000.0 /
						 per_second.QuadPart / ops));
	*end++ = '\n';
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), text, (DWORD)(end - text), &put, NULL);
	return 0;
}
