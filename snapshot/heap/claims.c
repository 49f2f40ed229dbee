/* Ranges of addresses in a growing list, and walkers' claims on such ranges. After sorting, a list
 * has no overlaps, so a binary search can be used. A claim that exceeds the target's memory is
 * refused. So even damaged heaps cannot make a walker find more bytes than the target has. */
#include "snapshot/heap/claims.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"

int extents_add(struct extents *extents, const struct extent *extent)
{
	if (array_try_grow((void **)&extents->list, &extents->cap, extents->count, sizeof(*extent)))
		return -ERR_NOMEM;
	extents->list[extents->count++] = *extent;
	return 0;
}

void extents_release(struct extents *extents)
{
	free(extents->list);
	*extents = (struct extents){0};
}

static int by_addr(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

size_t extents_sort(struct extents *extents, uint64_t *addr)
{
	size_t overlaps = 0, count = 0;
	uint64_t end = 0;

	if (extents->count)
		qsort(extents->list, extents->count, sizeof(*extents->list), by_addr);
	for (size_t i = 0; i < extents->count; i++) {
		struct extent extent = extents->list[i];

		if (extent.addr < end && !overlaps++ && addr)
			*addr = extent.addr;
		extent.addr = extent.addr < end ? end : extent.addr;
		if (extent.addr >= extent.end)
			continue;
		end = extent.end;
		extents->list[count++] = extent;
	}
	extents->count = count;
	return overlaps;
}

const struct extent *extents_above(const struct extents *extents, uint64_t addr)
{
	size_t at = sorted_up_to(extents->list, extents->count, sizeof(*extents->list),
		offsetof(struct extent, end), addr);

	return at < extents->count ? &extents->list[at] : NULL;
}

const struct extent *extents_at(const struct extents *extents, uint64_t addr)
{
	const struct extent *extent = extents_above(extents, addr);

	return extent && extent->addr <= addr ? extent : NULL;
}

void claims_init(struct claims *claims, uint64_t limit_bytes)
{
	*claims = (struct claims){.left_bytes = limit_bytes};
}

void claims_release(struct claims *claims)
{
	extents_release(&claims->extents);
}

int claims_add(struct claims *claims, uint64_t addr, uint64_t bytes)
{
	if (!bytes || addr + bytes < addr || bytes > claims->left_bytes)
		return -ERR_TARGET;
	claims->left_bytes -= bytes;
	return extents_add(&claims->extents, &(struct extent){.addr = addr, .end = addr + bytes});
}
