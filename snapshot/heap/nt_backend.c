#include "snapshot/heap/nt_heap.h"

int nt_backend_walk(struct nt_walk *nt, uint64_t addr)
{
	struct heap heap = {
		.addr = addr, .bits = nt->process->bits, .kind = "nt", .unwalked = true};

	return walk_add_heap(nt->walk, &heap);
}

bool nt_heap_is_busy(struct memory *memory, const struct nt_process *process, uint64_t addr)
{
	(void)memory;
	(void)process;
	(void)addr;
	return false;
}
