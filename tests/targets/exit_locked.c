/* exit_locked: ends while it holds the lock of its process heap, as every Windows process does:
 * RtlExitUserProcess takes the lock before it ends the other threads. 50 blocks of 100 bytes are
 * live. */
#include <windows.h>

__attribute__((noinline)) static void *locked_leak(void)
{
	void *block = HeapAlloc(GetProcessHeap(), 0, 100);

	*(volatile char *)block = 1;
	return block;
}

int main(void)
{
	static void *kept[50];

	for (int i = 0; i < 50; i++)
		kept[i] = locked_leak();
	HeapLock(GetProcessHeap());
	return !TerminateProcess(GetCurrentProcess(), kept[0] ? 7 : 8);
}
