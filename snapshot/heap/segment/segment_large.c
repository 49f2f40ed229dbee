#include "snapshot/heap/nt/nt_tree.h"
#include "snapshot/heap/segment/segment_heap.h"

#define LOW_BITS ((uint64_t)0xffff) /* of VirtualAddress: how many bytes are not used */
#define PAGE_BITS ((uint64_t)0xfff) /* of AllocatedPages' word: flags */

static int each_large(void *ctx, uint64_t node)
{
	struct segment_heap *heap = ctx;
	struct nt_walk *nt = heap->nt;
	const struct segment_parts *parts = heap->parts;
	uint64_t address, pages;
	struct segment_block block;
	int rc;

	if (memory_ptr(nt->memory, parts->bits, node + parts->large_address, &address) ||
		memory_ptr(nt->memory, parts->bits, node + parts->large_pages, &pages))
		return walk_broken(nt->walk, node, "unreadable large block"), 1;
	block = (struct segment_block){.addr = address & ~LOW_BITS,
		.bytes = pages & ~PAGE_BITS,
		.unused_bytes = address & LOW_BITS,
		.has_extra = pages & 1};
	if (!block.addr || block.bytes < block.unused_bytes || !block.bytes)
		return walk_broken(nt->walk, node, "large block of no size"), 1;
	rc = segment_block_add(heap, &block);
	if (!rc)
		rc = claim_run_flush(&heap->run, &nt->claims);
	if (rc == -ERR_TARGET)
		return walk_broken(nt->walk, node, "more blocks than memory"), 1;
	return rc;
}

int segment_large_walk(struct segment_heap *heap)
{
	const struct segment_parts *parts = heap->parts;
	uint64_t addr = heap->addr + heap->layout->large_tree, root, min;
	struct nt_tree tree = {.left = parts->node_left,
		.right = parts->node_right,
		.parent = parts->node_parent,
		.each = each_large,
		.ctx = heap};

	if (memory_ptr(heap->nt->memory, parts->bits, addr + parts->tree_root, &root) ||
		memory_ptr(heap->nt->memory, parts->bits, addr + parts->tree_min, &min))
		return walk_broken(heap->nt->walk, addr, "unreadable large blocks");
	tree.root = root;
	tree.key = min & 1 ? addr : 0;
	return nt_tree_walk(heap->nt, &tree);
}
