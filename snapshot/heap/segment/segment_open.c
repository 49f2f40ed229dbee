/* Opens a segment heap: chooses the layout that best fits its structures. Each layout gets a score:
 * the weights of the links that lead back to a context. If several layouts have the same score, the
 * page ranges of a few segments decide. */
#include "snapshot/heap/segment/segment.h"

#define TRIAL_SEGMENTS 8u /* number of page segments that are read to choose between layouts */

/* Weights of the criteria for a layout: pointers and lists that have the right target. No criterion
 * is mandatory, because any data may be damaged. The contents of the second context in real heaps
 * are not known. */
enum segment_weight {
	WEIGHT_LIST = 1,
	WEIGHT_PART = 2,
	WEIGHT_HEAP = 4,
};

static int context_weight(
	struct nt_walk *nt, const struct segment_layout *layout, uint64_t heap, uint64_t context)
{
	int weight = segment_list_fits(nt, context + layout->segment_list, false) ? WEIGHT_LIST : 0;

	if (!layout->context_bytes)
		return weight;
	if (segment_points_to(nt, context + layout->to_heap, heap))
		weight += WEIGHT_HEAP;
	if (segment_points_to(nt, context + layout->to_lfh, heap + layout->lfh_context))
		weight += WEIGHT_PART;
	if (segment_points_to(nt, context + layout->to_vs, heap + layout->vs_context))
		weight += WEIGHT_PART;
	return weight;
}

static int layout_weight(struct nt_walk *nt, const struct segment_layout *layout, uint64_t addr)
{
	uint64_t context = addr + layout->contexts;
	int weight = 0;

	if (layout->parts->bits != nt->process->bits)
		return 0;
	if (layout->parts->slot_list ?
			segment_vs_has_slots(nt, layout, addr) :
			segment_list_fits(nt, addr + layout->vs_context + layout->vs_list, true))
		weight += WEIGHT_LIST;
	weight += context_weight(nt, layout, addr, context);
	if (layout->context_bytes)
		weight += context_weight(nt, layout, addr, context + layout->context_bytes);
	return weight;
}

void segment_context_check(struct segment_heap *heap, uint64_t context)
{
	const struct segment_layout *layout = heap->layout;
	struct memory *memory = heap->nt->memory;
	unsigned bits = heap->parts->bits;
	uint64_t to_heap, to_lfh, to_vs;

	if (memory_ptr(memory, bits, context + layout->to_heap, &to_heap) ||
		memory_ptr(memory, bits, context + layout->to_lfh, &to_lfh) ||
		memory_ptr(memory, bits, context + layout->to_vs, &to_vs))
		return; /* the walk reports the missing memory */
	if (to_heap != heap->addr)
		walk_doubt(heap->nt->walk, context, "segment context of another heap");
	if ((to_lfh && to_lfh != heap->addr + layout->lfh_context) ||
		(to_vs && to_vs != heap->addr + layout->vs_context))
		walk_doubt(heap->nt->walk, context, "segment context of another front end");
}

static int trial_segment(void *ctx, uint64_t addr, uint64_t seg_context)
{
	unsigned *segments_left = ctx;

	(void)addr;
	(void)seg_context;
	if (!*segments_left)
		return SEGMENT_STOP;
	--*segments_left;
	return SEGMENT_TAKE;
}

static int trial_range(void *ctx, const struct segment_range *range)
{
	(void)ctx;
	(void)range;
	return 0;
}

static unsigned range_faults(
	const struct nt_walk *nt, const struct segment_layout *layout, uint64_t addr)
{
	unsigned segments_left = TRIAL_SEGMENTS;
	const struct segment_visit visit = {
		.segment = trial_segment, .range = trial_range, .ctx = &segments_left};
	struct walk unheard;
	struct nt_walk quiet = *nt;
	struct segment_heap heap = {
		.nt = &quiet, .layout = layout, .parts = layout->parts, .addr = addr};

	walk_init(&unheard);
	quiet.walk = &unheard;
	segment_ranges_walk(&heap, &visit);
	return unheard.broken_count;
}

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
	int best_weight = 0;

	for (size_t i = 0; i < segment_layout_count; i++) {
		const struct segment_layout *layout = &segment_layouts[i];
		int weight = layout_weight(nt, layout, addr);

		if (weight > best_weight ||
			(best && weight == best_weight && is_better(nt, addr, layout, best))) {
			best = layout;
			best_weight = weight;
		}
	}
	if (best)
		*heap = (struct segment_heap){
			.nt = nt, .layout = best, .parts = best->parts, .addr = addr};
	return best != NULL;
}
