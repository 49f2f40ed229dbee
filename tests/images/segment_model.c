#include <stdlib.h>

#include "tests/images/segment_parts.h"

#define HEAP_SIGNATURE 0xddeeddeeu
#define META_BYTES 0x40000u
#define REF_UNIT 64u
#define UNKNOWN_BYTES 0x20000u
#define UNKNOWN_SIGNATURE 8 /* this value is in all 32-bit builds */

uint64_t segment_random(struct segment_model *model, uint64_t limit)
{
	return model_random(&model->plan, limit);
}

/* One block in 16 was made before stacks were recorded, and one in 32 has no stack. */
static void plan_stack(struct segment_model *model, struct segment_block *block)
{
	uint64_t kind = segment_random(model, 32);
	uint64_t stack = segment_random(model, UINT32_MAX);
	unsigned count = image_stack_count(model->image);
	block->stack = STACK_NOTHING;
	if (!image_has_ust(model->image) || kind < 2)
		return;
	block->has_stack_place = true;
	if (kind > 2 && count)
		block->stack = (unsigned)(stack % count);
}

struct segment_block segment_plan_block(struct segment_model *model, uint32_t least, uint32_t most)
{
	struct segment_block block = {0};
	block.requested = least + (uint32_t)segment_random(model, most - least + 1);
	block.is_live = model_life(&model->plan);
	plan_stack(model, &block);
	return block;
}

uint64_t segment_meta(struct segment_model *model, uint64_t bytes)
{
	uint64_t addr = model->meta;
	model->meta += (bytes + 15) / 16 * 16;
	if (model->meta > model->meta_end)
		image_die("a segment heap's own memory is full");
	return addr;
}

uint64_t segment_meta_by_ref(struct segment_model *model, uint64_t bytes)
{
	model->meta = (model->meta + REF_UNIT - 1) / REF_UNIT * REF_UNIT;
	return segment_meta(model, bytes);
}

unsigned segment_ref(uint64_t context, uint64_t addr)
{
	return (unsigned)((addr - context) / REF_UNIT);
}

void segment_print(struct segment_model *model, const struct segment_block *block, uint64_t addr,
	uint64_t place_bytes)
{
	truth_block(model->image, model->heap, addr, block->requested,
		place_bytes - block->requested, block->stack);
	if (block->is_for_ring)
		image_ring_offer(model->image, addr);
}

/* ---- the heap itself */

static void write_heap(struct segment_model *model)
{
	const struct segment_image_layout *at = model->at;
	struct image *image = model->image;
	unsigned ptr = image_ptr_bytes(image);
	model->heap = image_reserve(image, META_BYTES, 0);
	image_commit(image, model->heap, META_BYTES, IMAGE_READ | IMAGE_WRITE);
	model->meta = model->heap + (at->heap.bytes + 63u) / 64 * 64;
	model->meta_end = model->heap + META_BYTES;
	image_write(image, model->heap + at->heap.signature, HEAP_SIGNATURE, 4);
	image_write(image, model->heap + at->heap.global_flags, 2, 4);
	if (at->heap.interceptor && image_has_ust(image))
		image_write(image, model->heap + at->heap.interceptor, 1, 4);
	if (at->heap.allocated_base) {
		uint64_t base = model->heap + at->heap.allocated_base;
		image_write_ptr(image, base, model->meta);
		image_write_ptr(image, base + ptr, model->meta_end);
		image_write_ptr(image, base + 2ull * ptr, model->meta_end);
	}
}

static void add_ring_blocks(struct segment_model *model)
{
	struct ring_wish wish = image_ring_wish(model->image);
	for (unsigned i = 0; i < wish.count; i++) {
		struct segment_block block = segment_plan_block(model, wish.bytes, wish.bytes);
		block.is_live = true;
		block.is_for_ring = true;
		segment_vs_add_block(model, &block);
	}
}

/* At least three quarters of the places are in the LFH. The rest are mostly in VS chunks. */
static void fill(struct segment_model *model, unsigned block_count, bool is_encoded)
{
	unsigned places = model_places(block_count);
	unsigned big = places / 50 < 40 ? places / 50 + 3 : 40;
	add_ring_blocks(model);
	segment_lfh_plan(model, places - places / 4);
	for (unsigned i = 0; i < places / 4; i++) {
		bool is_big = !segment_random(model, 64);
		struct segment_block block =
			segment_plan_block(model, is_big ? 0x800 : 1, is_big ? 0x9000 : 0x400);
		segment_vs_add_block(model, &block);
	}
	for (unsigned i = 0; i < big; i++) {
		struct segment_block block = segment_plan_block(model, 0x20000, 0x30000);
		segment_backend_place_block(model, 0, &block);
	}
	for (unsigned i = 0; i < big / 8 + 3 && segment_backend_count(model) > 1; i++) {
		struct segment_block block = segment_plan_block(model, 0x7f001, 0xc0000);
		segment_backend_place_block(model, 1, &block);
	}
	segment_large_write(model, big / 2 + 4, is_encoded);
}

/* Shuffles the items, so that LFH subsegments lie between blocks. */
static void shuffle_items(struct segment_model *model)
{
	for (size_t i = model->item_count; i > 1; i--) {
		size_t other = segment_random(model, i);
		struct vs_item item = model->items[i - 1];
		model->items[i - 1] = model->items[other];
		model->items[other] = item;
	}
}

/* The sources do not define whether MemStats counts the heap's own memory; the model counts it. */
static void write_pages(struct segment_model *model)
{
	const struct segment_image_layout *at = model->at;
	struct image *image = model->image;
	if (!at->heap.large_reserved)
		return;
	segment_backend_count_pages(model);
	model->committed += META_BYTES / SEGMENT_PAGE;
	model->reserved += META_BYTES / SEGMENT_PAGE;
	image_write_ptr(image, model->heap + at->heap.large_reserved, model->large_reserved);
	image_write_ptr(image, model->heap + at->heap.large_committed, model->large_committed);
	image_write_ptr(image, model->heap + at->heap.total_reserved, model->reserved);
	image_write_ptr(image, model->heap + at->heap.total_committed, model->committed);
	truth_heap_bytes(image, model->heap,
		(model->committed + model->large_committed) * SEGMENT_PAGE,
		(model->reserved + model->large_reserved) * SEGMENT_PAGE);
}

/* Makes a 32-bit heap of 26100 or later. Only its Signature is known, so the rest is random and has
 * no blocks. */
static uint64_t make_unknown(struct image *image, const struct model_request *request)
{
	uint64_t heap = image_reserve(image, UNKNOWN_BYTES, 0);
	image_commit(image, heap, UNKNOWN_BYTES, IMAGE_READ | IMAGE_WRITE);
	for (uint64_t at = 0; at < UNKNOWN_BYTES; at += 4)
		image_write(image, heap + at, image_random(image, UINT32_MAX), 4);
	image_write(image, heap + UNKNOWN_SIGNATURE, HEAP_SIGNATURE, 4);
	truth_heap(image, heap, "segment");
	image_enter_heap(image, heap, request->is_process_heap);
	image_ring_add(image, heap, 0);
	return heap;
}

uint64_t segment_model_make(struct image *image, const struct model_request *request)
{
	const struct profile *profile = image_profile(image);
	struct segment_model model = {.image = image};
	model.at = segment_image_layout_of(profile->bits, profile->os_build);
	if (!model.at && profile->bits == 32 && profile->os_build >= 26100)
		return make_unknown(image, request);
	if (!model.at)
		image_die("%s has no segment heap", profile->name);
	model.heap_key = image_hp_heap_key(image);
	model.lfh_key = image_hp_lfh_key(image);
	model.unit = 2 * image_ptr_bytes(image);
	model.plan = model_plan_of(image, request);
	write_heap(&model);
	segment_backend_init(&model);
	/* RTL_RB_TREE.Encoded exists since 1703. */
	bool is_encoded = request->is_process_heap && profile->os_build >= 15063;
	fill(&model, request->block_count, is_encoded);
	shuffle_items(&model);
	segment_vs_write(&model);
	segment_lfh_write(&model);
	segment_backend_write(&model);
	truth_heap(image, model.heap, "segment");
	write_pages(&model);
	image_enter_heap(image, model.heap, request->is_process_heap);
	image_ring_add(image, model.heap, model.heap + model.at->heap.user_context);
	segment_backend_release(&model);
	segment_lfh_release(&model);
	free(model.items);
	return model.heap;
}
