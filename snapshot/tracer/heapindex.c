#include "snapshot/tracer/heapindex.h"

#include <stdbool.h>

#define COUNT (1u << TRACER_HEAPS_LOG2)
#define FILL_MAX (COUNT / 4 * 3) /* so many places are looked at */

uint32_t heapindex_of(struct tracer_area *area, uint64_t heap)
{
	uint32_t at = (uint32_t)((heap >> 12) * 0x9e3779b1u) >> (32 - TRACER_HEAPS_LOG2);

	for (unsigned tries = 0; tries < FILL_MAX; tries++, at = (at + 1) & (COUNT - 1)) {
		uint64_t found = __atomic_load_n(&area->heaps[at], __ATOMIC_RELAXED);

		if (!at) /* stands for: not known */
			continue;
		if (!found && __atomic_compare_exchange_n(&area->heaps[at], &found, heap, false,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return at;
		if (found == heap)
			return at;
	}
	return 0;
}
