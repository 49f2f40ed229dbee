/* Sorted list of the ranges of a target that may contain code, with a cache for lookups. */
#include "snapshot/stacks/code_ranges.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"

#define RECENT 4096

void code_ranges_init(struct code_ranges *ranges)
{
	*ranges = (struct code_ranges){0};
}

void code_ranges_release(struct code_ranges *ranges)
{
	free(ranges->list);
	free(ranges->recent);
	code_ranges_init(ranges);
}

static int add(struct code_ranges *ranges, uint64_t addr, uint64_t end)
{
	if (end <= addr)
		return 0;
	if (array_try_grow(
		    (void **)&ranges->list, &ranges->cap, ranges->count, sizeof(*ranges->list)))
		return -ERR_NOMEM;
	ranges->list[ranges->count++] = (struct code_range){addr, end};
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void merge(struct code_ranges *ranges)
{
	size_t kept = 0;

	if (!ranges->count)
		return;
	qsort(ranges->list, ranges->count, sizeof(*ranges->list), by_addr);
	for (size_t i = 1; i < ranges->count; i++) {
		struct code_range *last = &ranges->list[kept], *next = &ranges->list[i];

		if (next->addr > last->end)
			ranges->list[++kept] = *next;
		else if (next->end > last->end)
			last->end = next->end;
	}
	ranges->count = kept + 1;
}

static int add_executable(struct code_ranges *ranges, struct target *target)
{
	struct target_region region;
	uint64_t from = 0;
	int rc = 0;

	if (!target->ops->region)
		return 0;
	while (!rc && !target->ops->region(target, from, &region) && region.end > from) {
		if (region.access & TARGET_EXECUTE)
			rc = add(ranges, region.addr, region.end);
		from = region.end;
	}
	return rc;
}

int code_ranges_capture(struct code_ranges *ranges, struct target *target,
	const struct module *modules, size_t module_count)
{
	int rc = 0;

	free(ranges->recent);
	ranges->recent = calloc(RECENT, sizeof(*ranges->recent));
	if (!ranges->recent)
		return -ERR_NOMEM;
	ranges->count = 0;
	for (size_t i = 0; !rc && i < module_count; i++)
		rc = add(ranges, modules[i].base, modules[i].base + modules[i].size_bytes);
	if (!rc)
		rc = add_executable(ranges, target);
	merge(ranges);
	return rc;
}

bool code_ranges_have_return(struct code_ranges *ranges, uint64_t addr)
{
	uint32_t *recent = &ranges->recent[(addr >> 16 ^ addr >> 28) % RECENT];
	size_t before;

	if (*recent < ranges->count && ranges->list[*recent].addr < addr &&
		addr <= ranges->list[*recent].end)
		return true;
	before = sorted_below(ranges->list, ranges->count, sizeof(*ranges->list),
		offsetof(struct code_range, addr), addr);
	if (!before || addr > ranges->list[before - 1].end)
		return false;
	*recent = (uint32_t)(before - 1);
	return true;
}
