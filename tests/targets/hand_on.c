/* hand_on THREADS ROUNDS: THREADS threads pass blocks to each other through a few places, as fast
 * as they can. All blocks have the same size, and there are only a few addresses, so another thread
 * soon reuses each address. All addresses are in one shard of the tracer's table. A round either
 * frees the block in a place or puts a block there. Step 1 comes before the rounds. At step 2 each
 * thread has done its rounds and all blocks are freed; "made N" is the number of blocks. */
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"
#include "snapshot/tracer/tables.h"

#define PLACES 16
#define ADDRS 16 /* number of addresses in each heap */
#define HEAPS 8
#define BYTES 32
#define THREADS_MAX 64

static PVOID volatile places[PLACES];
/* Places use the heaps in turn, so threads rarely wait for a heap's lock. */
static HANDLE heaps[HEAPS];
static unsigned long rounds;
static volatile LONG made;

static NOINLINE void *make(HANDLE heap)
{
	return step_leak(HeapAlloc(heap, 0, BYTES));
}

static DWORD WINAPI hand_on(LPVOID seed)
{
	unsigned random = (unsigned)(uintptr_t)seed;
	LONG count = 0;

	for (unsigned long i = 0; i < rounds; i++) {
		HANDLE heap;
		PVOID volatile *place;
		void *block;

		random = random * 1664525 + 1013904223;
		heap = heaps[(random >> 16) % HEAPS];
		place = &places[(random >> 16) % PLACES];
		block = InterlockedExchangePointer(place, NULL);
		if (!block) {
			count++;
			block = InterlockedExchangePointer(place, make(heap));
		}
		if (block) /* NULL if another thread was faster */
			HeapFree(heap, 0, block);
	}
	InterlockedExchangeAdd(&made, count);
	return 0;
}

/* Blocks that are not suitable stay allocated, so that the next blocks get the chosen addresses. */
static void choose_addresses(HANDLE heap)
{
	void *chosen[ADDRS];

	for (unsigned count = 0; count < ADDRS;) {
		void *block = step_leak(HeapAlloc(heap, 0, BYTES));

		if (blocktable_shard((uintptr_t)block) == 0)
			chosen[count++] = block;
	}
	for (unsigned i = 0; i < ADDRS; i++)
		HeapFree(heap, 0, chosen[i]);
}

int main(int argc, char **argv)
{
	HANDLE threads[THREADS_MAX];
	uintptr_t count;

	if (argc != 3)
		return 2;
	count = strtoul(argv[1], NULL, 10);
	rounds = strtoul(argv[2], NULL, 10);
	for (unsigned i = 0; i < HEAPS; i++) {
		heaps[i] = HeapCreate(0, 0, 0);
		choose_addresses(heaps[i]);
	}
	if (count > THREADS_MAX || !step_done(1))
		return 2;
	for (uintptr_t i = 0; i < count; i++)
		threads[i] = CreateThread(NULL, 0, hand_on, (LPVOID)(i + 1), 0, NULL);
	for (uintptr_t i = 0; i < count; i++)
		WaitForSingleObject(threads[i], INFINITE);
	for (unsigned i = 0; i < PLACES; i++) {
		if (places[i])
			HeapFree(heaps[i % HEAPS], 0, places[i]);
	}
	printf("made %ld\n", made);
	fflush(stdout);
	step_done(2);
	return 0;
}
