/* own_flags [N]: prints the global flags of its own environment block as 8 hexadecimal digits,
 * makes N heaps, and prints the number of heaps that the system counts. Then it waits like the
 * samples. */
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

#define PEB_GLOBAL_FLAG 0xbc /* offset in a 64-bit process */

int main(int argc, char **argv)
{
	const unsigned char *peb = (const unsigned char *)__readgsqword(0x60);
	HANDLE heaps[64];

	printf("flags %08lX\n", *(const unsigned long *)(peb + PEB_GLOBAL_FLAG));
	for (int i = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0; i > 0; i--)
		step_leak(HeapCreate(0, 0, 0));
	printf("heaps %lu\n", GetProcessHeaps(64, heaps));
	fflush(stdout);
	step_done(1);
	return 0;
}
