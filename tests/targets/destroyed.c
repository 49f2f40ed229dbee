/* Creates and destroys heaps, each at its predecessor's address. Step 1 has a heap with blocks,
 * which is destroyed before step 2. Two more heaps are made and destroyed before step 3. */
#include "tests/targets/stated.h"

#define BLOCKS 10
#define BYTES 50

static NOINLINE void make(HANDLE heap)
{
	for (volatile int i = 0; i < BLOCKS; i++)
		step_leak(HeapAlloc(heap, 0, BYTES));
}

static HANDLE heap_with_blocks(void)
{
	HANDLE heap = HeapCreate(0, 0, 0);

	make(heap);
	return heap;
}

int main(void)
{
	HANDLE heap = heap_with_blocks();

	state("sum make %d %d\n", BLOCKS * BYTES, BLOCKS);
	if (!state_step(1))
		return 0;
	HeapDestroy(heap);
	if (!state_step(2))
		return 0;
	for (int i = 0; i < 2; i++)
		HeapDestroy(heap_with_blocks());
	state_step(3);
	return 0;
}
