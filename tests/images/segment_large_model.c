/* A segment heap's large blocks. Each block is its own reservation, which a node of
 * LargeAllocMetadata describes. The low 16 bits of VirtualAddress count the unused bytes. A guard
 * page may follow [2+, PDB]. To keep images small, the blocks are smaller than Windows' large
 * blocks. */
#include <stdlib.h>

#include "tests/images/rb_image.h"
#include "tests/images/segment_parts.h"

#define MOST_LARGE 64u
#define GUARD_PAGE 2u
#define EXTRA_PRESENT 1u

static uint64_t large_pages(const struct segment_model *model, const struct segment_block *block)
{
	uint64_t bytes = (block->requested + model->unit - 1) / model->unit * model->unit;
	bytes += segment_tail_bytes(model, block, TAIL_WORD_NONE);
	return (bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE;
}

static void write_node(struct segment_model *model, const struct segment_block *block,
	uint64_t node, uint64_t addr, uint64_t pages)
{
	uint64_t unused = pages * SEGMENT_PAGE - block->requested;
	uint64_t extra = block->has_stack_place ? EXTRA_PRESENT : 0;
	image_write_ptr(model->image, node + model->at->large.address, addr | unused);
	image_write_ptr(
		model->image, node + model->at->large.pages, pages << 12 | GUARD_PAGE | extra);
	image_mark(model->image, "large node", node);
}

void segment_large_write(struct segment_model *model, unsigned count, bool is_encoded)
{
	struct rb_nodes nodes = {0};
	for (unsigned i = 0; i < count && i < MOST_LARGE; i++) {
		struct segment_block block = segment_plan_block(model, 0x10000, 0x30000);
		uint64_t pages = large_pages(model, &block);
		uint64_t addr =
			image_reserve(model->image, (pages + 1) * SEGMENT_PAGE, SEGMENT_PAGE);
		uint64_t node = segment_meta(model, model->at->large.bytes);
		if (!block.is_live)
			continue;
		uint64_t bytes = pages * SEGMENT_PAGE;
		image_commit(model->image, addr, bytes, IMAGE_READ | IMAGE_WRITE);
		write_node(model, &block, node, addr, pages);
		segment_write_block(model, &block, addr, bytes, TAIL_WORD_NONE);
		segment_print(model, &block, addr, bytes);
		model->large_committed += pages;
		model->large_reserved += pages + 1;
		rb_image_add(&nodes, node);
	}
	uint64_t tree = model->heap + model->at->heap.large_tree;
	rb_image_build(model->image, tree, &nodes, is_encoded);
	free(nodes.at);
	image_mark(model->image, "large tree", tree);
}
