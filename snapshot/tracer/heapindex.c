#include "snapshot/tracer/heapindex.h"

#include <stdbool.h>

#include "snapshot/tracer/blocktable.h"

#define COUNT (1u << TRACER_HEAPS_LOG2)
#define PROBES 128

static uint64_t *heap_at(struct tracer_area *area, uint32_t at)
{
	return &area->heaps[at & (COUNT - 1)];
}

static uint32_t heap_home(uint64_t heap)
{
	return (uint32_t)(heap >> 12) * 0x9e3779b1u >> (32 - TRACER_HEAPS_LOG2);
}

static uint32_t tag(uint32_t at, uint64_t heap)
{
	return (at & (COUNT - 1)) | (uint32_t)(heap % TRACER_HEAP_GENERATIONS) << TRACER_HEAPS_LOG2;
}

static bool is_dead(uint64_t entry)
{
	return (entry & TRACER_HEAP_LEAVING) == TRACER_HEAP_DEAD;
}

/* The next generation of an entry, for this heap, unless others did something with it. */
static void begin(struct tracer_area *area, uint64_t *entry, uint64_t found, uint64_t heap)
{
	uint64_t next = (found + 1) % TRACER_HEAP_GENERATIONS;
	bool is_buried = is_dead(found);

	if (!__atomic_compare_exchange_n(entry, &found, heap | (next ? next : TRACER_HEAP_CLEANING),
		    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	if (!is_buried)
		__atomic_fetch_add(&area->heaps_destroyed, 1, __ATOMIC_RELEASE);
	if (next)
		return;
	/* All generations were used: what is left of the first ones would come to life again. */
	blocktable_clean(area);
	__atomic_store_n(entry, heap, __ATOMIC_RELEASE);
}

/* Where the heap is, live or not, or else the entry it may have; NULL: there is none. */
static uint64_t *find_heap(struct tracer_area *area, uint64_t heap, uint32_t *at)
{
	uint32_t first = heap_home(heap), dead = 0;

	for (uint32_t i = first; i < first + PROBES; i++) {
		uint64_t found = __atomic_load_n(heap_at(area, i), __ATOMIC_RELAXED);

		if (!(i & (COUNT - 1))) /* stands for: not known */
			continue;
		*at = i;
		if (!found || (found & ~(uint64_t)TRACER_HEAP_STATE) == heap)
			return heap_at(area, i);
		if (!dead && is_dead(found))
			dead = i;
	}
	*at = dead;
	return dead ? heap_at(area, dead) : NULL;
}

static uint32_t index_slowly(struct tracer_area *area, uint64_t heap, bool is_new)
{
	for (unsigned tries = 0; tries < PROBES; tries++) {
		uint32_t at;
		uint64_t *entry = find_heap(area, heap, &at);
		uint64_t found = entry ? __atomic_load_n(entry, __ATOMIC_RELAXED) : 0;
		uint64_t nothing = 0, state = found & TRACER_HEAP_LEAVING;
		bool is_ours = (found & ~(uint64_t)TRACER_HEAP_STATE) == heap;

		if (!entry || state == TRACER_HEAP_CLEANING)
			return 0;
		if (!found)
			__atomic_compare_exchange_n(
				entry, &nothing, heap, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		else if (is_dead(found) || (is_ours && is_new && state == TRACER_HEAP_LEAVING))
			begin(area, entry, found, heap);
		else if (is_ours) /* or else another thread took the entry */
			return tag(at, found);
	}
	return 0;
}

static bool can_be_heap(uint64_t heap)
{
	return heap && !(heap & TRACER_HEAP_STATE);
}

uint32_t heapindex_of(struct tracer_area *area, uint64_t heap)
{
	uint32_t at = heap_home(heap);
	uint64_t found = __atomic_load_n(&area->heaps[at], __ATOMIC_RELAXED);

	if (found - heap < TRACER_HEAP_GENERATIONS && at)
		return tag(at, found);
	return can_be_heap(heap) ? index_slowly(area, heap, false) : 0;
}

uint32_t heapindex_new(struct tracer_area *area, uint64_t heap)
{
	return can_be_heap(heap) ? index_slowly(area, heap, true) : 0;
}
