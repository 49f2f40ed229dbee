/* overrun: damages its own heap. The heap has 100 blocks of 1016 bytes. Before step 2 the program
 * writes 16 bytes past the end of block 51. All 100 blocks stay allocated. With its head a block
 * has 1024 bytes, which no heap of Wine rounds up, so the write damages the next block's head. */
#include "tests/targets/stated.h"

#define BLOCKS 100
#define BYTES 1016
#define PAST_END 16

static HANDLE heap;
static char *blocks[BLOCKS];

static NOINLINE void overrun_leak(int i)
{
	blocks[i] = step_leak(HeapAlloc(heap, 0, BYTES));
}

static void state_all(void)
{
	for (int i = 0; i < BLOCKS; i++)
		state("block %llX %d overrun\n", (unsigned long long)(uintptr_t)blocks[i], BYTES);
	state("sum overrun_leak %d %d\n", BLOCKS * BYTES, BLOCKS);
}

int main(void)
{
	heap = HeapCreate(0, 0, 0);
	for (volatile int i = 0; i < BLOCKS; i++)
		overrun_leak(i);
	state_all();
	if (!state_step(1))
		return 0;
	for (volatile int i = 0; i < BYTES + PAST_END; i++)
		((volatile char *)blocks[50])[i] = 'A';
	state_all();
	state_step(2);
	ExitProcess(0); /* the damaged heap is not used again */
}
