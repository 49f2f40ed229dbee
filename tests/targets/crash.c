/* Leaks 33 blocks of 77 bytes, and crashes. */
#include "tests/targets/stated.h"

static NOINLINE void make(void)
{
	step_leak(HeapAlloc(GetProcessHeap(), 0, 77));
}

int main(void)
{
	for (volatile int i = 0; i < 33; i++)
		make();
	state("sum make %d 33\n", 33 * 77);
	state_flush();
	*(volatile int *)(ULONG_PTR)16 = 1;
	return 0;
}
