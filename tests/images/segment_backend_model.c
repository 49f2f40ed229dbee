/* A segment heap's back end: page segments of 256 units. The first units describe all units.
 * RangeFlags: 1 allocated, 2 first unit of a range; bits 2 and 3 are the range's type. So 3 is a
 * user's block, 0B an LFH subsegment, 0F a VS subsegment [2+]. A range's other units have the flags
 * without bit 1, and store their distance from the first unit [inf]. A free range's first unit has
 * flags 0, the range's length, and a node of FreePageRanges where a used unit has its signature. A
 * page segment's Signature is the XOR of its address, its context's address, HeapKey and a
 * constant. Since 26100 the constant is missing. */
#include <stdlib.h>

#include "tests/images/rb_image.h"
#include "tests/images/segment_parts.h"

#define UNITS_PER_SEGMENT 256u
#define RANGE_SIGNATURE 0xccddccddu
#define SIGNATURE_CONSTANT 0xa2e64eada2e64eadull

static uint64_t units_addr(
	const struct segment_context *context, const struct page_segment *segment, unsigned unit)
{
	return segment->addr + ((uint64_t)unit << context->unit_shift);
}

static void init_context(struct segment_model *model, unsigned number, unsigned shift)
{
	struct segment_context *context = &model->contexts[number];
	const struct segment_image_layout *at = model->at;
	uint64_t addr = model->heap + at->heap.contexts + (uint64_t)number * at->context.bytes;
	unsigned first = at->segment.header_bytes >> shift;
	context->addr = addr;
	image_mark(model->image, "segment context", addr);
	context->unit_shift = shift;
	context->first_index = first ? first : 1;
	image_list_init(model->image, addr + at->context.list);
	if (!at->context.bytes)
		return;
	uint64_t segment_bytes = (uint64_t)UNITS_PER_SEGMENT << shift;
	uint64_t most = segment_bytes / 2 - (UINT64_C(1) << shift);
	image_write_ptr(model->image, addr + at->context.mask, ~(segment_bytes - 1));
	image_write(model->image, addr + at->context.unit_shift, shift, 1);
	image_write(model->image, addr + at->context.pages_shift, shift - 12, 1);
	image_write(model->image, addr + at->context.first_index, context->first_index, 1);
	image_write(model->image, addr + at->context.max_bytes, most, 4);
	/* The second context has no subsegments. In the kernel of 19041 its fields for the LFH and
	 * VS contexts are empty. */
	if (number == 0 || image_chance(model->image, "second context", 2)) {
		image_write_ptr(model->image, addr + at->context.lfh, model->heap + at->heap.lfh);
		image_write_ptr(model->image, addr + at->context.vs, model->heap + at->heap.vs);
	}
	image_write_ptr(model->image, addr + at->context.heap, model->heap);
}

unsigned segment_backend_count(const struct segment_model *model)
{
	return model->at->context.bytes ? 2 : 1;
}

/* Segment masks of 1 MB and 16 MB [1]. */
void segment_backend_init(struct segment_model *model)
{
	for (unsigned i = 0; i < segment_backend_count(model); i++)
		init_context(model, i, i ? 16 : 12);
}

static struct page_segment *add_segment(
	struct segment_model *model, struct segment_context *context)
{
	context->segments = image_grow(
		context->segments, &context->capacity, context->count, sizeof *context->segments);
	struct page_segment *segment = &context->segments[context->count++];
	uint64_t bytes = (uint64_t)UNITS_PER_SEGMENT << context->unit_shift;
	*segment = (struct page_segment){
		.addr = image_reserve(model->image, bytes, bytes), .next = context->first_index};
	image_commit(model->image, segment->addr, model->at->segment.header_bytes,
		IMAGE_READ | IMAGE_WRITE);
	return segment;
}

/* Allocates a range, sometimes with free units before it. */
static struct segment_range *take(struct segment_model *model, struct segment_context *context,
	uint64_t bytes, uint64_t *addr)
{
	uint64_t unit = UINT64_C(1) << context->unit_shift;
	uint64_t units = (bytes + unit - 1) / unit;
	if (!units || units > UNITS_PER_SEGMENT / 2)
		image_die("no range of %llu units", (unsigned long long)units);
	unsigned gap = segment_random(model, 4) ? 0 : 1 + (unsigned)segment_random(model, 3);
	struct page_segment *segment =
		context->count ? &context->segments[context->count - 1] : NULL;
	if (!segment || segment->next + gap + units > UNITS_PER_SEGMENT)
		segment = add_segment(model, context);
	struct segment_range *range = &segment->ranges[segment->range_count++];
	*range = (struct segment_range){.first = (uint16_t)(segment->next + gap),
		.units = (uint16_t)units,
		.pages_per_unit = (uint16_t)(unit / SEGMENT_PAGE)};
	if (range->first + units > UNITS_PER_SEGMENT)
		range->first = (uint16_t)segment->next;
	segment->next = range->first + range->units;
	*addr = units_addr(context, segment, range->first);
	return range;
}

uint64_t segment_backend_take(
	struct segment_model *model, unsigned context, uint64_t bytes, enum range_type type)
{
	uint64_t addr;
	struct segment_range *range = take(model, &model->contexts[context], bytes, &addr);
	range->flags = (uint8_t)(3 | type << 2);
	image_commit(model->image, addr,
		(uint64_t)range->units << model->contexts[context].unit_shift,
		IMAGE_READ | IMAGE_WRITE);
	return addr;
}

/* In some ranges the pages after a block without an extra part stay uncommitted. */
void segment_backend_place_block(
	struct segment_model *model, unsigned number, const struct segment_block *block)
{
	struct segment_context *context = &model->contexts[number];
	uint64_t bytes = block->requested;
	bytes = (bytes + model->unit - 1) / model->unit * model->unit;
	bytes += segment_tail_bytes(model, block, TAIL_WORD_NONE);
	uint64_t addr;
	struct segment_range *range = take(model, context, bytes, &addr);
	bool is_sparse = !segment_random(model, 2) && !block->has_stack_place;
	if (!block->is_live)
		return;
	uint64_t length = (uint64_t)range->units << context->unit_shift;
	uint64_t committed = is_sparse ? bytes : length;
	image_commit(model->image, addr, committed, IMAGE_READ | IMAGE_WRITE);
	range->flags = 3;
	range->has_extra = block->has_stack_place;
	range->unused = (uint32_t)(length - block->requested);
	segment_write_block(model, block, addr, length, TAIL_WORD_NONE);
	segment_print(model, block, addr, length);
}

/* ---- writing */

static uint64_t descriptor(
	const struct segment_model *model, const struct page_segment *segment, unsigned unit)
{
	return segment->addr + (uint64_t)unit * model->at->range.bytes;
}

static void write_flags(
	struct segment_model *model, uint64_t descriptor_addr, unsigned flags, unsigned pages)
{
	const struct segment_image_layout *at = model->at;
	if (at->range.is_count_in_flags) {
		image_write(model->image, descriptor_addr + at->range.flags,
			flags | (pages & 7) << 5, 1);
		return;
	}
	image_write(model->image, descriptor_addr + at->range.flags, flags, 1);
	if (at->range.committed)
		image_write(model->image, descriptor_addr + at->range.committed, pages, 1);
}

static unsigned unit_inside(const struct segment_model *model)
{
	const struct segment_image_layout *at = model->at;
	return at->range.unit_inside ? at->range.unit_inside : at->range.unit;
}

static void write_range(struct segment_model *model, const struct page_segment *segment,
	const struct segment_range *range)
{
	const struct segment_image_layout *at = model->at;
	uint64_t first = descriptor(model, segment, range->first);
	image_write(model->image, first, RANGE_SIGNATURE, 4);
	image_write(model->image, first + at->range.unused, range->unused, at->range.unused_bytes);
	image_write(model->image, first + at->range.extra, range->has_extra, 2);
	write_flags(model, first, range->flags, range->pages_per_unit);
	image_write(model->image, first + at->range.unit, range->units, 1);
	unsigned inside = unit_inside(model);
	for (unsigned i = 1; i < range->units; i++) {
		uint64_t addr = descriptor(model, segment, range->first + i);
		write_flags(model, addr, range->flags & ~2u, range->pages_per_unit);
		image_write(model->image, addr + inside, i, 1);
	}
	if ((range->flags & 0xf) == 3)
		image_mark(model->image, "segment user range", first);
	if ((range->flags & 0xf) == 0xb)
		image_mark(model->image, "segment lfh range", first);
}

static void write_free(struct segment_model *model, const struct page_segment *segment,
	struct rb_nodes *nodes, unsigned from, unsigned to)
{
	if (from == to)
		return;
	uint64_t first = descriptor(model, segment, from);
	uint64_t last = descriptor(model, segment, to - 1);
	image_write(model->image, last + unit_inside(model), to - 1 - from, 1);
	image_write(model->image, first + model->at->range.unit, to - from, 1);
	image_mark(model->image, "segment free range", first);
	rb_image_add(nodes, first);
}

static void write_ranges(struct segment_model *model, const struct segment_context *context,
	const struct page_segment *segment, struct rb_nodes *nodes)
{
	unsigned free_from = context->first_index;
	for (size_t i = 0; i < segment->range_count; i++) {
		const struct segment_range *range = &segment->ranges[i];
		if (!range->flags)
			continue;
		write_free(model, segment, nodes, free_from, range->first);
		write_range(model, segment, range);
		free_from = range->first + range->units;
	}
	write_free(model, segment, nodes, free_from, UNITS_PER_SEGMENT);
}

static void write_context(struct segment_model *model, struct segment_context *context)
{
	const struct segment_image_layout *at = model->at;
	struct rb_nodes nodes = {0};
	uint64_t constant = at->segment.has_no_constant ? 0 : SIGNATURE_CONSTANT;
	for (size_t i = 0; i < context->count; i++) {
		const struct page_segment *segment = &context->segments[i];
		image_list_add(model->image, context->addr + at->context.list, segment->addr);
		image_write_ptr(model->image, segment->addr + at->segment.signature,
			segment->addr ^ context->addr ^ model->heap_key ^ constant);
		if (at->segment.watermark)
			image_write(model->image, segment->addr + at->segment.watermark,
				segment->next & 0xff, 1);
		write_ranges(model, context, segment, &nodes);
		image_mark(model->image, "page segment", segment->addr);
	}
	image_write_ptr(model->image, context->addr + at->context.count, context->count);
	rb_image_build(model->image, context->addr + at->context.free_ranges, &nodes, false);
	free(nodes.at);
}

void segment_backend_write(struct segment_model *model)
{
	for (unsigned i = 0; i < segment_backend_count(model); i++)
		write_context(model, &model->contexts[i]);
}

void segment_backend_count_pages(struct segment_model *model)
{
	for (unsigned i = 0; i < segment_backend_count(model); i++) {
		const struct segment_context *context = &model->contexts[i];
		uint64_t bytes = (uint64_t)UNITS_PER_SEGMENT << context->unit_shift;
		for (size_t k = 0; k < context->count; k++) {
			uint64_t addr = context->segments[k].addr;
			model->committed +=
				image_committed(model->image, addr, bytes) / SEGMENT_PAGE;
			model->reserved += bytes / SEGMENT_PAGE;
		}
	}
}

void segment_backend_release(struct segment_model *model)
{
	free(model->contexts[0].segments);
	free(model->contexts[1].segments);
}
