/*
 * Leaks through heaps other than the C library's: a private heap, LocalAlloc, GlobalAlloc, a block
 * that HeapReAlloc grows, a block too large for a heap's segments. Each step also creates, fills
 * and destroys a heap, which frees all its blocks at once: none of them may remain.
 *
 * truth: step 1->2 stack leak_private<-one_step<-main bytes +6000 allocs +20
 * truth: step 1->2 stack leak_local<-one_step<-main bytes +1105 allocs +5
 * truth: step 1->2 stack leak_global<-one_step<-main bytes +993 allocs +3
 * truth: step 1->2 stack grow_table<-one_step<-main bytes +2048 allocs +0
 * truth: step 1->2 stack leak_large<-one_step<-main bytes +3145851 allocs +1
 */
#include "samples/step.h"

static HANDLE private_heap;
static char *table;
static size_t table_bytes = 512;

static NOINLINE void leak_private(void)
{
	step_leak(HeapAlloc(private_heap, 0, 300));
}

static NOINLINE void leak_local(void)
{
	step_leak(LocalAlloc(LMEM_FIXED, 221));
}

static NOINLINE void leak_global(void)
{
	step_leak(GlobalAlloc(GPTR, 331));
}

static NOINLINE void open_table(void)
{
	table = step_leak(HeapAlloc(GetProcessHeap(), 0, table_bytes));
}

static NOINLINE void grow_table(void)
{
	table_bytes += 2048;
	table = step_leak(HeapReAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, table, table_bytes));
}

static NOINLINE void leak_large(void)
{
	char *large = step_leak(HeapAlloc(GetProcessHeap(), 0, (3 << 20) + 123));

	large[3 << 20] = 'x';
}

static NOINLINE void use_scratch_heap(void)
{
	HANDLE scratch = HeapCreate(0, 0, 0);

	for (volatile int i = 0; i < 40; i++)
		step_leak(HeapAlloc(scratch, 0, 100));
	HeapDestroy(scratch);
}

static NOINLINE void one_step(void)
{
	for (volatile int i = 0; i < 20; i++)
		leak_private();
	for (volatile int i = 0; i < 5; i++)
		leak_local();
	for (volatile int i = 0; i < 3; i++)
		leak_global();
	grow_table();
	leak_large();
	use_scratch_heap();
}

int main(void)
{
	unsigned long step = 0;

	private_heap = HeapCreate(0, 0, 0);
	open_table();
	for (;;) {
		step++;
		one_step();
		if (!step_done(step))
			return 0;
	}
}
