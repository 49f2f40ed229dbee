/* A full page heap: every block lies at the end of its own pages, and an inaccessible page follows.
 * A _DPH_HEAP_ROOT describes the heap. Allocations that the page heap does not place itself lie in
 * its NormalHeap, a normal heap. The sources do not define the root's distance from the handle. In
 * public debugger output the process heap's root is at the handle, and other roots are one page
 * after their handles. The nodes of live blocks are in an AVL tree. The nodes of freed blocks,
 * whose pages are inaccessible, are in a list. Stamps: ABCDBBBB before a busy block's information
 * (mona, HeapStat), DCBABBBB at its end, FFEEDDCC at the root [inf: seen in public debugger
 * output]. */
#include <stdlib.h>

#include "tests/images/model_plan.h"
#include "tests/images/page_parts.h"

#define PAGE 0x1000u
#define REGION_BYTES 0x100000u
#define ROOT_SIGNATURE 0xffeeddccu
#define FILL_NEW 0xc0
#define FILL_AFTER 0xd0
#define FILL_HANDLE 0xee

struct page_block {
	struct page_plan plan;
	uint64_t node, user, base, region;
	uint64_t access_bytes; /* bytes without the guard page */
};

struct page_model {
	struct image *image;
	const struct page_image_layout *at;
	struct model_plan plan;
	uint64_t handle, root;
	uint64_t region, region_next, region_end;
	struct page_block *blocks;
	unsigned count;
	struct ring_wish wish;
};

void page_write_info(struct image *image, const struct page_image_layout *at, uint64_t user,
	const struct page_info *info)
{
	uint64_t addr = user - at->info.bytes;
	image_fill(image, addr, 0, at->info.bytes);
	image_write(image, addr, info->is_full ? 0xabcdbbbb : 0xabcdaaaa, 4);
	image_write_ptr(image, addr + at->info.heap, info->heap);
	image_write_ptr(image, addr + at->info.requested, info->requested);
	image_write_ptr(image, addr + at->info.actual, info->requested + at->info.bytes);
	image_write_ptr(image, addr + at->info.stack, info->stack);
	image_write(image, addr + at->info.end_stamp, info->is_full ? 0xdcbabbbb : 0xdcbaaaaa, 4);
	image_mark(image, info->is_full ? "page info" : "light info", addr);
}

struct page_plan page_plan_block(struct image *image, struct model_plan *plan)
{
	static const uint32_t most[] = {24, 100, 100, 400, 400, 400, 3000, 20000};
	struct page_plan block = {.stack = STACK_NOTHING};
	block.requested = (uint32_t)model_random(plan, most[model_random(plan, 8)]);
	block.is_live = model_life(plan);
	uint64_t stack = model_random(plan, UINT32_MAX);
	bool has_stack = model_random(plan, 32);
	if (has_stack && image_has_ust(image) && image_stack_count(image))
		block.stack = (unsigned)(stack % image_stack_count(image));
	return block;
}

/* ---- blocks */

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static void place_block(struct page_model *model, struct page_block *block)
{
	uint64_t unit = 2ull * image_ptr_bytes(model->image);
	uint64_t bytes = round_up(block->plan.requested, unit);
	block->access_bytes = round_up(bytes + model->at->info.bytes, PAGE);
	if (block->access_bytes + PAGE > model->region_end - model->region_next) {
		model->region = image_reserve(model->image, REGION_BYTES, 0);
		model->region_next = model->region;
		model->region_end = model->region + REGION_BYTES;
	}
	block->region = model->region;
	block->base = model->region_next;
	block->user = block->base + block->access_bytes - bytes;
	model->region_next += block->access_bytes + PAGE;
}

static uint64_t stack_record(struct page_model *model, const struct page_block *block)
{
	unsigned stack = block->plan.stack;
	return stack == STACK_NOTHING ? 0 : image_stack_record(model->image, stack);
}

static void write_node(struct page_model *model, const struct page_block *block)
{
	const struct page_image_layout *at = model->at;
	uint64_t adjacent = block->node + at->block.adjacency;
	image_write_ptr(model->image, block->node + at->block.user, block->user);
	image_write_ptr(model->image, block->node + at->block.base, block->base);
	image_write_ptr(
		model->image, block->node + at->block.base_bytes, block->access_bytes + PAGE);
	image_write_ptr(model->image, block->node + at->block.access_bytes, block->access_bytes);
	image_write_ptr(model->image, block->node + at->block.requested, block->plan.requested);
	image_write_ptr(model->image, block->node + at->block.actual,
		block->plan.requested + at->info.bytes);
	image_write_ptr(model->image, block->node + at->block.stack, stack_record(model, block));
	image_write_ptr(model->image, block->node + at->block.region, block->region);
	image_list_init(model->image, adjacent);
}

static void write_busy(struct page_model *model, const struct page_block *block)
{
	struct image *image = model->image;
	uint64_t end = block->base + block->access_bytes;
	uint64_t user_end = block->user + block->plan.requested;
	image_commit(image, block->base, block->access_bytes, IMAGE_READ | IMAGE_WRITE);
	image_fill(image, block->user, FILL_NEW, block->plan.requested);
	image_fill(image, user_end, FILL_AFTER, end - user_end);
	page_write_info(image, model->at, block->user,
		&(struct page_info){.heap = model->root,
			.requested = block->plan.requested,
			.stack = stack_record(model, block),
			.is_full = true});
	truth_block(image, model->handle, block->user, block->plan.requested,
		block->access_bytes + PAGE - block->plan.requested, block->plan.stack);
	image_mark(image, "page node", block->node);
}

/* ---- the heap */

static void place_nodes(struct page_model *model)
{
	uint64_t bytes = (uint64_t)(model->count + 1) * model->at->block.bytes;
	uint64_t pool = image_reserve(model->image, bytes, 0);
	image_commit(model->image, pool, bytes, IMAGE_READ | IMAGE_WRITE);
	image_write_ptr(model->image, model->root + model->at->root.node_pool_head, pool);
	for (unsigned i = 0; i < model->count; i++)
		model->blocks[i].node = pool + (uint64_t)(i + 1) * model->at->block.bytes;
	/* Shuffle the nodes: their order must not depend on the blocks' order, because nodes are
	 * reused. */
	for (unsigned i = model->count; i > 1; i--) {
		unsigned other = (unsigned)model_random(&model->plan, i);
		uint64_t node = model->blocks[i - 1].node;
		model->blocks[i - 1].node = model->blocks[other].node;
		model->blocks[other].node = node;
	}
}

static void write_free_list(struct page_model *model)
{
	const struct page_image_layout *at = model->at;
	uint64_t head = model->root + at->root.free_head, last = 0;
	unsigned count = 0;
	for (unsigned i = 0; i < model->count; i++) {
		if (model->blocks[i].plan.is_live)
			continue;
		uint64_t node = model->blocks[i].node;
		image_write_ptr(model->image, last ? last : head, node);
		last = node;
		count++;
	}
	image_write_ptr(model->image, model->root + at->root.free_tail, last);
	image_write(model->image, model->root + at->root.free_count, count, 4);
}

static void write_tree(struct page_model *model)
{
	const struct page_image_layout *at = model->at;
	uint64_t *nodes = model_zeroed(model->count + 1, sizeof *nodes);
	size_t count = 0;
	for (unsigned i = 0; i < model->count; i++)
		if (model->blocks[i].plan.is_live)
			nodes[count++] = model->blocks[i].node;
	uint64_t table = model->root + at->root.busy_table;
	avl_image_build(model->image, at, table, nodes, count);
	image_write(model->image, model->root + at->root.busy_count, count, 4);
	image_mark(model->image, "page table", table);
	free(nodes);
}

static void write_root(struct page_model *model, bool is_handle)
{
	const struct page_image_layout *at = model->at;
	struct image *image = model->image;
	model->handle = image_reserve(image, 2 * PAGE, 0);
	model->root = is_handle ? model->handle : model->handle + PAGE;
	image_commit(image, model->handle, 2 * PAGE, IMAGE_READ | IMAGE_WRITE);
	image_fill(image, model->handle, FILL_HANDLE, PAGE);
	image_fill(image, model->root, 0, PAGE);
	image_write(image, model->root + at->root.signature, ROOT_SIGNATURE, 4);
	image_write(image, model->root + at->root.flags, 0x01001002, 4);
	image_write(image, model->root + at->root.seed, 0x1234, 4);
	image_list_add(image, image_page_heap_list(image), model->root + at->root.next);
	image_mark(image, "page root", model->root);
}

/* Plans a block of random size and life. The first blocks may be planned for the ring of heaps. */
static void plan_block(struct page_model *model, struct page_block *block, bool is_for_ring)
{
	block->plan = page_plan_block(model->image, &model->plan);
	if (is_for_ring) {
		block->plan.requested = model->wish.bytes;
		block->plan.is_live = true;
	}
}

uint64_t page_full_make(struct image *image, const struct model_request *request)
{
	struct page_model model = {
		.image = image, .at = page_image_layout_of(image_ptr_bytes(image) * 8)};
	model.plan = model_plan_of(image, request);
	model.wish = image_ring_wish(image);
	model.count = model.wish.count + model_places(request->block_count);
	model.blocks = model_zeroed(model.count + 1, sizeof *model.blocks);
	write_root(&model, request->is_process_heap);
	place_nodes(&model);
	for (unsigned i = 0; i < model.count; i++) {
		struct page_block *block = &model.blocks[i];
		plan_block(&model, block, i < model.wish.count);
		place_block(&model, block);
		write_node(&model, block);
		if (block->plan.is_live)
			write_busy(&model, block);
		if (i < model.wish.count)
			image_ring_offer(image, block->user);
	}
	write_free_list(&model);
	write_tree(&model);
	truth_heap(image, model.handle, "page");
	image_enter_heap(image, model.handle, request->is_process_heap);
	/* The sources do not define whether the PEB lists the normal heap. Inferred for the ring of
	 * later builds: it contains the normal heap but not the root, which has no UserContext. */
	struct model_request normal = {.block_count = 20,
		.growth = request->growth,
		.is_unlisted = image_chance(image, "unlisted", 2)};
	uint64_t normal_heap = nt_model_make(image, &normal);
	image_write_ptr(image, model.root + model.at->root.normal, normal_heap);
	free(model.blocks);
	return model.handle;
}

uint64_t page_model_make(struct image *image, const struct model_request *request, bool is_full)
{
	return is_full ? page_full_make(image, request) : page_light_make(image, request);
}
