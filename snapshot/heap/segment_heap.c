#include "snapshot/heap/nt_heap.h"

int segment_heap_walk(struct nt_walk *nt, uint64_t addr)
{
	struct heap heap = {
		.addr = addr, .bits = nt->process->bits, .kind = "segment", .unwalked = true};

	return walk_add_heap(nt->walk, &heap);
}
