/* A light page heap: the blocks of a normal NT heap, without the prefix that +ust adds. Each block
 * begins with a _DPH_BLOCK_INFORMATION that has the stamp ABCDAAAA. The user's bytes follow, and
 * then a pattern that detects overruns. */
#include "tests/images/model_plan.h"
#include "tests/images/nt_model.h"
#include "tests/images/page_parts.h"

#define FILL_AFTER 0xa0

struct light_model {
	struct image *image;
	const struct page_image_layout *at;
	struct nt_heap *heap;
	uint64_t base;
	unsigned suffix_bytes;
};

static uint64_t write_live(
	struct light_model *model, const struct page_plan *plan, const struct nt_block *block)
{
	uint64_t bytes;
	uint64_t user = nt_place_block(model->heap, block, &bytes) + model->at->info.bytes;
	bool has_stack = plan->stack != STACK_NOTHING;
	page_write_info(model->image, model->at, user,
		&(struct page_info){.heap = model->base,
			.requested = plan->requested,
			.stack = has_stack ? image_stack_record(model->image, plan->stack) : 0});
	image_fill(model->image, user + plan->requested, FILL_AFTER, model->suffix_bytes);
	truth_block(model->image, model->base, user, plan->requested, bytes - plan->requested,
		plan->stack);
	return user;
}

static struct nt_block block_of(const struct light_model *model, const struct page_plan *plan)
{
	struct nt_block block = {.stack = STACK_NOTHING, .is_bare = true};
	block.requested = model->at->info.bytes + plan->requested + model->suffix_bytes;
	return block;
}

static void write_ring_blocks(struct light_model *model)
{
	struct ring_wish wish = image_ring_wish(model->image);
	struct page_plan plan = {wish.bytes, STACK_NOTHING, true};
	struct nt_block block = block_of(model, &plan);
	for (unsigned i = 0; i < wish.count; i++)
		image_ring_offer(model->image, write_live(model, &plan, &block));
}

static void write_block(struct light_model *model, const struct page_plan *plan)
{
	struct nt_block block = block_of(model, plan);
	if (plan->is_live)
		write_live(model, plan, &block);
	else
		nt_add_freed(model->heap, &block);
}

uint64_t page_light_make(struct image *image, const struct model_request *request)
{
	unsigned ptr = image_ptr_bytes(image);
	struct model_plan chance = model_plan_of(image, request);
	struct light_model model = {
		.image = image, .at = page_image_layout_of(ptr * 8), .suffix_bytes = 2 * ptr};
	model.heap = nt_heap_new(image, request->is_process_heap);
	model.base = model.heap->base;
	write_ring_blocks(&model);
	for (unsigned i = 0; i < request->block_count * 8 / 7; i++) {
		struct page_plan plan = page_plan_block(image, &chance);
		/* Every other block stays live, because free neighbours would be merged. */
		plan.is_live |= i % 2 == 0;
		write_block(&model, &plan);
		/* Allocations by the heap's own code bypass the page heap. */
		if (i % 50 == 49)
			nt_add_block(model.heap, &(struct nt_block){.requested = 40 + i % 64,
							 .stack = STACK_NOTHING,
							 .is_bare = true});
	}
	truth_heap(image, model.base, "nt");
	image_ring_add(image, model.base, model.base + model.heap->layout->user_context);
	nt_heap_finish(model.heap);
	image_enter_heap(image, model.base, request->is_process_heap);
	return model.base;
}
