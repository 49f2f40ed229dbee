/*
 * Memory that a few blocks keep allocated. Allocates blocks of 100 bytes, and frees all except every
 * 64th. Before the step's line, states the numbers: "allocated N kept N bytes N".
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
	state("allocated %u kept %u bytes %u\n", BLOCKS, kept, BYTES);
	state_step(1);
	return 0;
}
