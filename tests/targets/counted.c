/* counted: states how many blocks its heaps have, and their bytes, as HeapWalk() lists them. Before
 * step 1 main has 100 blocks of 1,111 bytes from keep_old(). Before step 2 it frees 3 of them and
 * calls leak_new() 20 times for 2,222 bytes. Then it prints "walked BLOCKS BYTES". */
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

#define OLD_BLOCKS 100
#define HEAPS_MAX 64

static void *old_blocks[OLD_BLOCKS];
static void *volatile new_block;

static NOINLINE void keep_old(unsigned i)
{
	old_blocks[i] = malloc(1111);
}

static NOINLINE void leak_new(void)
{
	new_block = malloc(2222);
}

static void count_blocks(void)
{
	static HANDLE heaps[HEAPS_MAX];
	DWORD heap_count = GetProcessHeaps(HEAPS_MAX, heaps);
	unsigned long long count = 0, bytes = 0;
	char line[64];
	DWORD put;
	int len;

	for (DWORD i = 0; i < heap_count && i < HEAPS_MAX; i++) {
		PROCESS_HEAP_ENTRY entry = {0};

		while (HeapWalk(heaps[i], &entry)) {
			if (!(entry.wFlags & PROCESS_HEAP_ENTRY_BUSY))
				continue;
			count++;
			bytes += HeapSize(heaps[i], 0, entry.lpData);
		}
	}
	len = snprintf(line, sizeof(line), "walked %llu %llu\n", count, bytes);
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)len, &put, NULL);
}

int main(void)
{
	for (unsigned i = 0; i < OLD_BLOCKS; i++)
		keep_old(i);
	if (!step_done(1))
		return 0;
	for (unsigned i = 0; i < 3; i++)
		free(old_blocks[i]);
	for (unsigned i = 0; i < 20; i++)
		leak_new();
	count_blocks();
	step_done(2);
	return 0;
}
