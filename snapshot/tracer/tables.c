#include "snapshot/tracer/tables.h"

#include "snapshot/tracer/memory.h"

bool tables_commit(struct tracer_area *area, void *at, uint64_t bytes)
{
	uint64_t committed = __atomic_add_fetch(&area->committed_bytes, bytes, __ATOMIC_RELAXED);

	if (committed <= area->limit_bytes && memory_commit(at, bytes))
		return true;
	__atomic_sub_fetch(&area->committed_bytes, bytes, __ATOMIC_RELAXED);
	return false;
}

void tables_decommit(struct tracer_area *area, void *at, uint64_t bytes)
{
	memory_decommit(at, bytes);
	__atomic_sub_fetch(&area->committed_bytes, bytes, __ATOMIC_RELAXED);
}
