/*
 * Memory that a few blocks keep allocated. Allocates blocks of 100 bytes, and frees all except every
 * 64th. Then make_heap() creates a heap, and allocates a block in it. Before the step's line, states
 * the numbers: "allocated N kept N bytes N heap ADDR", where ADDR is hexadecimal.
 */
#include "samples/step.h"
#include "tests/targets/stated.h"

#define BYTES 100
#define BLOCKS ((3u << 20) / BYTES)
#define KEPT_OF 64

static void *blocks[BLOCKS];

NOINLINE static void fill_memory(HANDLE heap)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[i] = HeapAlloc(heap, 0, BYTES);
}

NOINLINE static HANDLE make_heap(void)
{
	HANDLE heap = HeapCreate(0, 0, 0);

	step_leak(HeapAlloc(heap, 0, BYTES));
	return heap;
}

int main(void)
{
	HANDLE heap = GetProcessHeap();
	unsigned kept = 0;

	fill_memory(heap);
	for (unsigned i = 0; i < BLOCKS; i++) {
		if (i % KEPT_OF)
			HeapFree(heap, 0, blocks[i]);
		else
			kept++;
	}
	state("allocated %u kept %u bytes %u heap %llX\n", BLOCKS, kept, BYTES,
		(unsigned long long)(ULONG_PTR)make_heap());
	state_step(1);
	return 0;
}
