/* crash [STATUS]: leaks 33 blocks of 77 bytes. Then it crashes, or exits with the status. */
#include "tests/targets/stated.h"

static NOINLINE void make(void)
{
	step_leak(HeapAlloc(GetProcessHeap(), 0, 77));
}

int main(int argc, char **argv)
{
	for (volatile int i = 0; i < 33; i++)
		make();
	state("sum make %d 33\n", 33 * 77);
	state_flush();
	if (argc > 1)
		return atoi(argv[1]);
	*(volatile int *)(ULONG_PTR)16 = 1;
	return 0;
}
