#include <string.h>

#include "snapshot/heap/segment/segment_heap.h"

#define DESCRIPTORS_BYTES_MAX (SEGMENT_DESCRIPTORS * 0x20)

struct context_walk {
	struct segment_heap *heap;
	const struct segment_visit *visit;
	uint64_t addr; /* of the _HEAP_SEG_CONTEXT */
	unsigned unit_shift, first;
};

bool segment_page_key(struct segment_heap *heap, uint64_t addr, uint64_t seg_context, uint64_t *key)
{
	uint64_t signature;

	if (addr % CLAIM_PAGE_BYTES || memory_ptr(heap->nt->memory, heap->parts->bits,
					       addr + heap->parts->segment_signature, &signature))
		return false;
	*key = signature ^ addr ^ seg_context;
	return true;
}

/* Takes a descriptor apart. Returns whether it begins a range in use. */
static bool range_parse(const struct segment_layout *layout, const unsigned char *descriptor,
	unsigned *units, struct segment_range *range)
{
	const struct segment_parts *parts = layout->parts;

	*units = descriptor[layout->range_units];
	range->flags = descriptor[parts->range_flags] & SEGMENT_RANGE_FLAGS;
	range->unused_bytes = layout->range_unused_bytes == 4 ?
				      bytes_u32(descriptor + layout->range_unused) :
				      bytes_u16(descriptor + layout->range_unused);
	range->has_extra = descriptor[layout->range_extra] & 1;
	return range->flags & SEGMENT_RANGE_FIRST;
}

/* What is wrong with a range in use, or NULL. */
static const char *range_fault(const struct segment_parts *parts, const unsigned char *descriptor,
	unsigned i, unsigned units)
{
	if (bytes_u32(descriptor + parts->range_signature) != SEGMENT_RANGE_SIGNATURE)
		return "page range without its signature";
	if (!units)
		return "page range of no size";
	return units > SEGMENT_DESCRIPTORS - i ? "page range past its segment" : NULL;
}

static int segment_walk(const struct context_walk *walk, uint64_t addr, const unsigned char *all)
{
	struct nt_walk *nt = walk->heap->nt;
	const struct segment_parts *parts = walk->heap->parts;
	int rc = 0;

	for (unsigned i = walk->first, units; !rc && i < SEGMENT_DESCRIPTORS;
		i += units ? units : 1) {
		const unsigned char *descriptor = all + (size_t)i * parts->range_bytes;
		struct segment_range range;
		const char *fault;

		if (!range_parse(walk->heap->layout, descriptor, &units, &range))
			continue;
		fault = range_fault(parts, descriptor, i, units);
		range.addr = addr + ((uint64_t)i << walk->unit_shift);
		range.bytes = (uint64_t)units << walk->unit_shift;
		if (fault)
			walk_broken(nt->walk, range.addr, fault);
		else
			rc = walk->visit->range(walk->visit->ctx, &range);
	}
	return rc;
}

static int each_link(void *ctx, uint64_t link)
{
	const struct context_walk *walk = ctx;
	struct nt_walk *nt = walk->heap->nt;
	const struct segment_visit *visit = walk->visit;
	unsigned char all[DESCRIPTORS_BYTES_MAX];
	size_t len = (size_t)SEGMENT_DESCRIPTORS * walk->heap->parts->range_bytes;
	int answer = visit->segment ? visit->segment(visit->ctx, link, walk->addr) : SEGMENT_TAKE;

	if (answer != SEGMENT_TAKE)
		return answer;
	if (link + ((uint64_t)SEGMENT_DESCRIPTORS << walk->unit_shift) < link ||
		memory_copy(nt->memory, link, all, len))
		return walk_broken(nt->walk, link, "unreadable page segment");
	return segment_walk(walk, link, all);
}

static int context_walk(struct segment_heap *heap, const struct segment_visit *visit, uint64_t addr)
{
	const struct segment_layout *layout = heap->layout;
	struct context_walk walk = {.heap = heap, .visit = visit, .addr = addr};
	const struct nt_list list = {
		.head = addr + layout->segment_list, .each = each_link, .ctx = &walk};
	uint8_t shift = SEGMENT_ONLY_SHIFT, first = SEGMENT_ONLY_FIRST;

	/* segment_heap_open() has seen that they are there and what they are. */
	if (layout->context_bytes &&
		(memory_u8(heap->nt->memory, addr + layout->unit_shift, &shift) ||
			memory_u8(heap->nt->memory, addr + layout->first_descriptor, &first)))
		return walk_broken(heap->nt->walk, addr, "unreadable segment context");
	walk.unit_shift = shift % 32;
	walk.first = first;
	return nt_list_walk(heap->nt, &list);
}

int segment_ranges_walk(struct segment_heap *heap, const struct segment_visit *visit)
{
	uint64_t addr = heap->addr + heap->layout->contexts;
	int rc = context_walk(heap, visit, addr);

	if (!rc && heap->layout->context_bytes)
		rc = context_walk(heap, visit, addr + heap->layout->context_bytes);
	return rc;
}
