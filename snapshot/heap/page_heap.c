#include "snapshot/heap/nt_heap.h"

bool page_heap_knows(const struct nt_walk *nt, uint64_t addr)
{
	(void)nt;
	(void)addr;
	return false;
}
int page_heaps_walk(struct nt_walk *nt)
{
	(void)nt;
	return 0;
}

bool page_block_parse(
	struct memory *memory, unsigned bits, uint64_t user_addr, struct page_block *block)
{
	(void)memory;
	(void)bits;
	(void)user_addr;
	(void)block;
	return false;
}
