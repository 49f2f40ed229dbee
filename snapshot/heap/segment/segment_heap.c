#include "snapshot/heap/segment/segment_heap.h"

#define UNIT_SHIFT_MIN 12
#define UNIT_SHIFT_MAX 16
#define TRIAL_SEGMENTS 8u /* looked at to choose between layouts */
#define PAGES_MAX (TARGET_SPACE_BYTES >> 12)

/* ---------------------------------------------------------------- which layout */

static bool points_to(struct nt_walk *nt, uint64_t addr, uint64_t to)
{
	uint64_t value;

	return !memory_ptr(nt->memory, nt->process->bits, addr, &value) && value == to;
}

/* A _HEAP_SEG_CONTEXT whose pointers lead back to the heap and its two front ends. */
static bool context_fits(
	struct nt_walk *nt, const struct segment_layout *layout, uint64_t heap, uint64_t context)
{
	uint8_t shift, first;

	return points_to(nt, context + layout->to_heap, heap) &&
	       points_to(nt, context + layout->to_lfh, heap + layout->lfh_context) &&
	       points_to(nt, context + layout->to_vs, heap + layout->vs_context) &&
	       !memory_u8(nt->memory, context + layout->unit_shift, &shift) &&
	       shift >= UNIT_SHIFT_MIN && shift <= UNIT_SHIFT_MAX &&
	       !memory_u8(nt->memory, context + layout->first_descriptor, &first) && first;
}

/* True when a neighbour of a list's head points back to it: the other may be damaged. */
static bool list_fits(struct nt_walk *nt, uint64_t head, bool is_coded)
{
	unsigned bits = nt->process->bits;
	uint64_t next, previous, key = is_coded ? head : 0;

	if (memory_ptr(nt->memory, bits, head, &next) ||
		memory_ptr(nt->memory, bits, head + bits / 8, &previous))
		return false;
	next ^= key;
	previous ^= key;
	return points_to(nt, next + bits / 8, is_coded ? head ^ next : head) ||
	       points_to(nt, previous, is_coded ? head ^ previous : head);
}

/* A heap without contexts has only its lists to be known by. */
static bool layout_fits(struct nt_walk *nt, const struct segment_layout *layout, uint64_t addr)
{
	uint64_t contexts = addr + layout->contexts;
	uint64_t vs_list = addr + layout->vs_context + layout->vs_list;

	if (layout->parts->bits != nt->process->bits)
		return false;
	if (layout->context_bytes)
		return context_fits(nt, layout, addr, contexts) &&
		       context_fits(nt, layout, addr, contexts + layout->context_bytes);
	return list_fits(nt, addr + layout->segment_list, false) && list_fits(nt, vs_list, true);
}

struct trial {
	unsigned segments_left;
};

static int trial_segment(void *ctx, uint64_t addr, uint64_t seg_context)
{
	struct trial *trial = ctx;

	(void)addr;
	(void)seg_context;
	if (!trial->segments_left)
		return SEGMENT_STOP;
	trial->segments_left--;
	return SEGMENT_TAKE;
}

static int trial_range(void *ctx, const struct segment_range *range)
{
	(void)ctx;
	(void)range;
	return 0;
}

/* How many page ranges of the first segments make no sense, seen with the layout. */
static unsigned range_faults(
	const struct nt_walk *nt, const struct segment_layout *layout, uint64_t addr)
{
	struct trial trial = {.segments_left = TRIAL_SEGMENTS};
	const struct segment_visit visit = {
		.segment = trial_segment, .range = trial_range, .ctx = &trial};
	struct walk unheard;
	struct nt_walk quiet = *nt;
	struct segment_heap heap = {
		.nt = &quiet, .layout = layout, .parts = layout->parts, .addr = addr};

	walk_init(&unheard);
	quiet.walk = &unheard;
	segment_ranges_walk(&heap, &visit);
	return unheard.broken_count;
}

/* Whether a fits the heap better than b. */
static bool is_better(const struct nt_walk *nt, uint64_t addr, const struct segment_layout *a,
	const struct segment_layout *b)
{
	unsigned faults_a = range_faults(nt, a, addr), faults_b = range_faults(nt, b, addr);
	uint32_t build = nt->process->os_build;

	if (faults_a != faults_b)
		return faults_a < faults_b;
	return a->first_build <= build &&
	       (b->first_build > build || b->first_build < a->first_build);
}

bool segment_heap_open(struct segment_heap *heap, struct nt_walk *nt, uint64_t addr)
{
	const struct segment_layout *best = NULL;

	for (size_t i = 0; i < segment_layout_count; i++) {
		const struct segment_layout *layout = &segment_layouts[i];

		if (layout_fits(nt, layout, addr) && (!best || is_better(nt, addr, layout, best)))
			best = layout;
	}
	if (best)
		*heap = (struct segment_heap){
			.nt = nt, .layout = best, .parts = best->parts, .addr = addr};
	return best != NULL;
}

/* ---------------------------------------------------------------- how large it is */

uint64_t segment_pages_at(const struct segment_heap *heap, uint16_t field)
{
	uint64_t pages = 0;

	if (memory_ptr(heap->nt->memory, heap->parts->bits, heap->addr + field, &pages) ||
		pages > PAGES_MAX)
		return 0;
	return pages << 12;
}

static struct heap heap_of(const struct segment_heap *heap)
{
	const struct segment_layout *layout = heap->layout;

	struct heap found = {.addr = heap->addr,
		.bits = heap->parts->bits,
		.kind = "segment",
		.layout = layout->name};

	if (layout->committed_pages) {
		found.committed_bytes = segment_pages_at(heap, layout->committed_pages) +
					segment_pages_at(heap, layout->large_committed);
		found.reserved_bytes = segment_pages_at(heap, layout->reserved_pages) +
				       segment_pages_at(heap, layout->large_reserved);
	}
	return found;
}

/* ---------------------------------------------------------------- its blocks */

int segment_block_list(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t requested = block->bytes - block->unused_bytes, record = 0;

	if (block->has_extra)
		record = segment_record_find(heap, block->addr + requested, block->unused_bytes);
	return walk_add_block(heap->nt->walk, block->addr, requested,
		block->header_bytes + block->unused_bytes, record);
}

int segment_block_add(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t requested = block->bytes - block->unused_bytes;
	int rc = claim_run_add(&heap->run, &heap->nt->claims, block->addr - block->header_bytes,
		block->header_bytes + (requested ? requested : 1));

	return rc ? rc : segment_block_list(heap, block);
}

/* A range that is one block. */
static int user_range(struct segment_heap *heap, const struct segment_range *range)
{
	const struct segment_block block = {.addr = range->addr,
		.bytes = range->bytes,
		.unused_bytes = range->unused_bytes,
		.has_extra = range->has_extra};
	int rc = segment_lfh_notice(heap, range->addr, range->bytes);

	if (rc)
		return rc;
	if (range->unused_bytes > range->bytes)
		return walk_broken(heap->nt->walk, range->addr, "pages smaller than unused");
	return segment_block_add(heap, &block);
}

static int range_blocks(struct segment_heap *heap, const struct segment_range *range)
{
	switch (range->flags) {
	case SEGMENT_RANGE_USER: return user_range(heap, range);
	case SEGMENT_RANGE_LFH: return segment_lfh_walk(heap, range->addr, range->bytes);
	case SEGMENT_RANGE_VS:
		heap->vs_ranges++;
		return segment_vs_walk(heap, range->addr, range->bytes);
	default: return segment_lfh_notice(heap, range->addr, range->bytes); /* the heap's own */
	}
}

static int each_range(void *ctx, const struct segment_range *range)
{
	struct segment_heap *heap = ctx;
	int rc = range_blocks(heap, range), flushed;

	flushed = claim_run_flush(&heap->run, &heap->nt->claims);
	rc = rc ? rc : flushed;
	if (rc == -ERR_TARGET)
		return walk_broken(heap->nt->walk, range->addr, "more blocks than memory");
	return rc;
}

/* A page segment is the heap's own when it is signed for its context. */
static int each_segment(void *ctx, uint64_t addr, uint64_t seg_context)
{
	struct segment_heap *heap = ctx;
	uint64_t key;

	if (segment_page_key(heap, addr, seg_context, &key) && key == heap->nt->segment_keys.page)
		return 1;
	return walk_broken(heap->nt->walk, addr, "page segment of no known key");
}

static int blocks(struct segment_heap *heap)
{
	const struct segment_visit visit = {
		.segment = each_segment, .range = each_range, .ctx = heap};
	int rc = segment_large_walk(heap);

	rc = rc ? rc : segment_ranges_walk(heap, &visit);
	if (!rc && heap->vs_ranges != segment_vs_listed(heap))
		walk_broken(heap->nt->walk, heap->addr, "VS subsegments that are not listed");
	return rc;
}

int segment_heap_walk(struct nt_walk *nt, uint64_t addr)
{
	struct segment_heap heap;
	struct heap unknown = {
		.addr = addr, .bits = nt->process->bits, .kind = "segment", .unwalked = true};
	struct heap known;
	int rc = segment_keys_find(nt);

	if (rc)
		return rc;
	if (!segment_heap_open(&heap, nt, addr))
		return walk_add_heap(nt->walk, &unknown);
	known = heap_of(&heap);
	rc = walk_add_heap(nt->walk, &known);
	return rc ? rc : blocks(&heap);
}
