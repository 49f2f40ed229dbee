/* Checks of a segment heap's structures, used wherever they are read. */
#include "snapshot/heap/segment/segment.h"

bool segment_points_to(struct nt_walk *nt, uint64_t addr, uint64_t to)
{
	uint64_t value;

	return !memory_ptr(nt->memory, nt->process->bits, addr, &value) && value == to;
}

bool segment_list_fits(struct nt_walk *nt, uint64_t head, bool is_coded)
{
	unsigned bits = nt->process->bits;
	uint64_t next, previous, key = is_coded ? head : 0;

	if (memory_ptr(nt->memory, bits, head, &next) ||
		memory_ptr(nt->memory, bits, head + bits / 8, &previous))
		return false;
	if (!next || !previous)
		return false; /* zeros prove nothing, encoded or not */
	next ^= key;
	previous ^= key;
	return segment_points_to(nt, next + bits / 8, is_coded ? head ^ next : head) ||
	       segment_points_to(nt, previous, is_coded ? head ^ previous : head);
}

int segment_fault(const struct segment_heap *heap, uint64_t addr, const char *what)
{
	uint8_t byte;

	return memory_u8(heap->nt->memory, addr, &byte) ?
		       walk_missing(heap->nt->walk, addr, "unreadable memory of a segment heap") :
		       walk_broken(heap->nt->walk, addr, what);
}
