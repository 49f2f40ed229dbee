/* Memory of the tracer's tables. Committed bytes are counted, and no table grows beyond the common
 * limit. Nothing here takes a lock. */
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

/* Counts bytes only if they fit. Adding the bytes first and subtracting them on failure would not
 * work: in between, another thread's request could be refused although it fits. */
static bool count_in(struct tracer_area *area, uint64_t bytes)
{
	uint64_t now = __atomic_load_n(&area->committed_bytes, __ATOMIC_RELAXED);

	do {
		if (now > area->limit_bytes || bytes > area->limit_bytes - now)
			return false;
	} while (!__atomic_compare_exchange_n(&area->committed_bytes, &now, now + bytes, false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

bool tables_commit(struct tracer_area *area, void *at, uint64_t bytes)
{
	if (!count_in(area, bytes))
		return false;
	if (memory_commit(at, bytes))
		return true;
	tables_share(area, bytes);
	return false;
}

void tables_decommit(struct tracer_area *area, void *at, uint64_t bytes)
{
	memory_decommit(at, bytes);
	tables_share(area, bytes);
}

void tables_share(struct tracer_area *area, uint64_t bytes)
{
	__atomic_sub_fetch(&area->committed_bytes, bytes, __ATOMIC_RELAXED);
}

/* Threads that read the same value of *committed commit the same pages, which is harmless. Only the
 * thread that sets the next value counts the pages. */
bool tables_extend(
	struct tracer_area *area, const struct tables_part *part, uint64_t *committed, uint64_t end)
{
	uint64_t now = __atomic_load_n(committed, __ATOMIC_ACQUIRE);

	while (now < end) {
		uint64_t before = now, more = part->limit_bytes - now;

		if (end > part->limit_bytes)
			return false;
		more = more < part->step_bytes ? more : part->step_bytes;
		if (!tables_commit(area, (void *)(uintptr_t)(part->start + now), more)) {
			now = __atomic_load_n(committed, __ATOMIC_ACQUIRE);
			if (now == before)
				return false;
			continue; /* another thread's attempt has used up the limit */
		}
		if (__atomic_compare_exchange_n(committed, &now, before + more, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			now = before + more;
		else
			tables_share(area, more);
	}
	return true;
}
