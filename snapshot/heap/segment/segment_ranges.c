/* Page ranges of segment heaps. A heap has one or two contexts, a context has a list of page
 * segments, and a segment begins with the descriptors of its pages. A range in use is visited as a
 * whole. Descriptors that contradict each other are recorded as faults. */
#include "snapshot/heap/segment/segment.h"

#define UNIT_SHIFT_MIN 12
#define UNIT_SHIFT_MAX 16
#define DESCRIPTORS_BYTES_MAX (SEGMENT_DESCRIPTORS * 0x20)

struct context_walk {
	struct segment_heap *heap;
	const struct segment_visit *visit;
	uint64_t addr; /* address of the _HEAP_SEG_CONTEXT */
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

/* Parses a descriptor. Returns true if the descriptor begins a range in use. */
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
	return (range->flags & SEGMENT_RANGE_USED) == SEGMENT_RANGE_USED;
}

static const char *range_fault(const struct segment_parts *parts, const unsigned char *descriptor,
	unsigned i, unsigned units)
{
	if (bytes_u32(descriptor + parts->range_signature) != SEGMENT_RANGE_SIGNATURE)
		return "page range without its signature";
	if (!units)
		return "page range without a size";
	return units > SEGMENT_DESCRIPTORS - i ? "page range past its segment" : NULL;
}

/*
 * Searches the inside of a range for a descriptor that is flagged as the first of a range. Returns
 * its index, or 0. A first descriptor contains the length of its range. In other descriptors, the
 * same field contains the distance from the first descriptor, so only the flag distinguishes the
 * two kinds.
 */
static unsigned inner_first(
	const struct context_walk *walk, const unsigned char *all, unsigned i, unsigned units)
{
	const struct segment_layout *layout = walk->heap->layout;
	struct segment_range inner;
	unsigned ignored;

	for (unsigned k = i + 1; k < i + units; k++) {
		if (range_parse(
			    layout, all + (size_t)k * layout->parts->range_bytes, &ignored, &inner))
			return k;
	}
	return 0;
}

/* Checks a descriptor that begins a free range. Returns NULL, or the reason why the range may be in
 * use after all. */
static const char *free_fault(
	const struct context_walk *walk, const unsigned char *all, unsigned i, unsigned units)
{
	const struct segment_parts *parts = walk->heap->parts;
	unsigned inner;

	if (bytes_u32(all + (size_t)i * parts->range_bytes + parts->range_signature) ==
		SEGMENT_RANGE_SIGNATURE)
		return "free page range with the signature of one in use";
	if (units > SEGMENT_DESCRIPTORS - i)
		return "free page range past its segment";
	inner = inner_first(walk, all, i, units);
	if (inner && bytes_u32(all + (size_t)inner * parts->range_bytes + parts->range_signature) ==
			     SEGMENT_RANGE_SIGNATURE)
		return "page range in use within a free one";
	return NULL;
}

/* Visits a range in use. If another range begins inside it, visits only the part before that range.
 * Sets `*step` to the number of descriptors in the visited part. */
static int used_range(const struct context_walk *walk, const unsigned char *all, unsigned i,
	unsigned units, struct segment_range *range, unsigned *step)
{
	struct nt_walk *nt = walk->heap->nt;
	const struct segment_parts *parts = walk->heap->parts;
	const char *fault = range_fault(parts, all + (size_t)i * parts->range_bytes, i, units);
	unsigned inner;

	*step = 1;
	if (fault)
		return walk_broken(nt->walk, range->addr, fault);
	inner = inner_first(walk, all, i, units);
	if (inner)
		walk_broken(nt->walk, range->addr, "page range that covers another one");
	*step = inner ? inner - i : units;
	range->bytes = (uint64_t)*step << walk->unit_shift;
	return walk->visit->range(walk->visit->ctx, range);
}

/*
 * Walks the ranges of a page segment. A range in use is visited as a whole. The length of a free
 * range is checked but not trusted: the walk reads all descriptors in the range.
 */
static int segment_walk(const struct context_walk *walk, uint64_t addr, const unsigned char *all)
{
	const struct segment_layout *layout = walk->heap->layout;
	unsigned free_end = 0, step;
	int rc = 0;

	for (unsigned i = walk->first, units; !rc && i < SEGMENT_DESCRIPTORS; i += step) {
		const unsigned char *descriptor = all + (size_t)i * layout->parts->range_bytes;
		struct segment_range range;
		const char *fault;

		step = 1;
		range.addr = addr + ((uint64_t)i << walk->unit_shift);
		if (range_parse(layout, descriptor, &units, &range)) {
			rc = used_range(walk, all, i, units, &range, &step);
			free_end = 0;
		} else if (i >= free_end) {
			fault = free_fault(walk, all, i, units);
			free_end = i + units;
			if (fault)
				walk_broken(walk->heap->nt->walk, range.addr, fault);
		}
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
	uint64_t bytes = (uint64_t)SEGMENT_DESCRIPTORS << walk->unit_shift;
	int answer;

	/* Windows finds page segments by masking addresses, so they are aligned to their size. For
	 * the same reason, the segments of one context cannot overlap. */
	if (link % bytes)
		return walk_broken(nt->walk, link, "misaligned page segment");
	answer = visit->segment ? visit->segment(visit->ctx, link, walk->addr) : SEGMENT_TAKE;
	if (answer != SEGMENT_TAKE)
		return answer;
	if (link + bytes < link || memory_copy(nt->memory, link, all, len))
		return walk_missing(nt->walk, link, "unreadable page segment");
	answer = walk_add_own(nt->walk, link);
	return answer ? answer : segment_walk(walk, link, all);
}

static int context_walk(struct segment_heap *heap, const struct segment_visit *visit, uint64_t addr)
{
	const struct segment_layout *layout = heap->layout;
	struct context_walk walk = {.heap = heap, .visit = visit, .addr = addr};
	const struct nt_list list = {
		.head = addr + layout->segment_list, .each = each_link, .ctx = &walk};
	uint8_t shift = SEGMENT_ONLY_SHIFT, first = SEGMENT_ONLY_FIRST;

	if (layout->context_bytes &&
		(memory_u8(heap->nt->memory, addr + layout->unit_shift, &shift) ||
			memory_u8(heap->nt->memory, addr + layout->first_descriptor, &first)))
		return walk_missing(heap->nt->walk, addr, "unreadable segment context");
	if (shift < UNIT_SHIFT_MIN || shift > UNIT_SHIFT_MAX || !first)
		return walk_broken(
			heap->nt->walk, addr, "segment context with an impossible unit size");
	walk.unit_shift = shift;
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
