#include "snapshot/minidump/spans.h"

#include <stdlib.h>

#include "core/buf.h"

void spans_release(struct spans *spans)
{
	free(spans->list);
	*spans = (struct spans){0};
}

int spans_add(struct spans *spans, const struct span *span)
{
	if (span->addr >= span->end)
		return 0;
	if (array_grow((void **)&spans->list, &spans->cap, spans->count, sizeof(*span)))
		return -ERR_NOMEM;
	spans->list[spans->count++] = *span;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->access > y->access) - (x->access < y->access);
}

size_t spans_settle(struct spans *spans)
{
	size_t kept = 0, overlaps = 0;
	uint64_t end = 0; /* so far addresses are taken */

	if (spans->count)
		qsort(spans->list, spans->count, sizeof(*spans->list), compare);
	for (size_t i = 0; i < spans->count; i++) {
		struct span span = spans->list[i];

		if (span.addr < end) {
			overlaps++;
			if (span.end <= end)
				continue;
			span.offset += end - span.addr;
			span.addr = end;
		}
		end = span.end;
		spans->list[kept++] = span;
	}
	spans->count = kept;
	return overlaps;
}

void spans_join(struct spans *spans, bool by_offset)
{
	size_t kept = 0;

	for (size_t i = 0; i < spans->count; i++) {
		const struct span *span = &spans->list[i];
		struct span *last = kept ? &spans->list[kept - 1] : NULL;

		if (last && last->end == span->addr &&
			(!by_offset || last->offset + (last->end - last->addr) == span->offset))
			last->end = span->end;
		else
			spans->list[kept++] = *span;
	}
	spans->count = kept;
}

size_t spans_find(const struct spans *spans, uint64_t addr)
{
	size_t low = 0, high = spans->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans->list[middle].end > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void narrow(struct target_region *region, uint64_t addr, uint64_t end)
{
	region->addr = addr > region->addr ? addr : region->addr;
	region->end = end < region->end ? end : region->end;
}

const struct span *spans_narrow(
	const struct spans *spans, uint64_t addr, struct target_region *region)
{
	size_t i = spans_find(spans, addr);
	const struct span *span = i < spans->count ? &spans->list[i] : NULL;

	if (span && span->addr <= addr) {
		narrow(region, span->addr, span->end);
		return span;
	}
	narrow(region, i && spans->list ? spans->list[i - 1].end : 0,
		span ? span->addr : UINT64_MAX);
	return NULL;
}
