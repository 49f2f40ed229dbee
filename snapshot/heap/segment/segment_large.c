#include "snapshot/heap/nt/nt_tree.h"
#include "snapshot/heap/segment/segment_heap.h"

#define LOW_BITS ((uint64_t)0xffff) /* of VirtualAddress: how many bytes are not used */
#define PAGE_BITS ((uint64_t)0xfff) /* of AllocatedPages' word: flags */

struct large_walk {
	struct segment_heap *heap;
	uint64_t committed_bytes; /* of all blocks */
	uint64_t first; /* node met; 0: none yet */
};

/* Whether the memory that begins at addr goes on to the end, as far as that is known. Where a dump does
 * not hold its beginning nothing is. */
static bool is_committed(struct target *target, uint64_t addr, uint64_t end)
{
	struct target_region region;
	bool is_first = true;

	for (; target->ops->region && addr < end; addr = region.end) {
		if (target->ops->region(target, addr, &region) || region.addr > addr ||
			region.end <= addr)
			return is_first;
		is_first = false;
	}
	return true;
}

/* What is wrong with a large block, or NULL. */
static const char *large_fault(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t space = heap->parts->bits == 64 ? TARGET_SPACE_BYTES : (uint64_t)1 << 32;

	if (!block->addr || block->bytes < block->unused_bytes || !block->bytes)
		return "large block of no size";
	if (block->addr >= space || block->bytes > space - block->addr ||
		!is_committed(heap->nt->memory->target, block->addr, block->addr + block->bytes))
		return "large block past its memory";
	return NULL;
}

static int large_add(struct large_walk *walk, uint64_t node, const struct segment_block *block)
{
	struct segment_heap *heap = walk->heap;
	const char *fault = large_fault(heap, block);
	uint64_t requested = block->bytes - block->unused_bytes;
	int rc;

	if (fault)
		return walk_broken(heap->nt->walk, node, fault);
	rc = claims_add(&heap->nt->claims, block->addr, requested ? requested : 1);
	if (rc == -ERR_TARGET)
		return walk_broken(heap->nt->walk, node, "more blocks than memory");
	walk->committed_bytes += block->bytes;
	return rc ? rc : segment_block_list(heap, block);
}

static int each_large(void *ctx, uint64_t node)
{
	struct large_walk *walk = ctx;
	struct memory *memory = walk->heap->nt->memory;
	const struct segment_parts *parts = walk->heap->parts;
	uint64_t address, pages;
	struct segment_block block;

	walk->first = walk->first ? walk->first : node;
	if (memory_ptr(memory, parts->bits, node + parts->large_address, &address) ||
		memory_ptr(memory, parts->bits, node + parts->large_pages, &pages))
		return walk_missing(walk->heap->nt->walk, node, "unreadable large block");
	block = (struct segment_block){.addr = address & ~LOW_BITS,
		.bytes = pages & ~PAGE_BITS,
		.unused_bytes = address & LOW_BITS,
		.has_extra = pages & 1};
	return large_add(walk, node, &block);
}

/* The tree knows its first node, and the heap how much all blocks are. Each may be stored as nothing. */
static void large_check(const struct large_walk *walk, uint64_t tree, uint64_t min)
{
	const struct segment_heap *heap = walk->heap;
	uint16_t committed = heap->layout->large_committed;

	min &= ~(uint64_t)1;
	if (min && min != tree && min != walk->first && (min ^ tree) != walk->first)
		walk_broken(heap->nt->walk, tree, "tree of large blocks without its first one");
	if (committed && walk->committed_bytes < segment_pages_at(heap, committed))
		walk_broken(heap->nt->walk, tree, "fewer large blocks than the heap counts");
}

int segment_large_walk(struct segment_heap *heap)
{
	const struct segment_parts *parts = heap->parts;
	uint64_t addr = heap->addr + heap->layout->large_tree, root, min;
	struct large_walk walk = {.heap = heap};
	struct nt_tree tree = {.left = parts->node_left,
		.right = parts->node_right,
		.parent = parts->node_parent,
		.each = each_large,
		.ctx = &walk};
	unsigned missing_count = heap->nt->walk->missing_count;
	int rc;

	if (memory_ptr(heap->nt->memory, parts->bits, addr + parts->tree_root, &root) ||
		memory_ptr(heap->nt->memory, parts->bits, addr + parts->tree_min, &min))
		return walk_missing(heap->nt->walk, addr, "unreadable large blocks");
	tree.root = root;
	tree.key = min & 1 ? addr : 0;
	rc = nt_tree_walk(heap->nt, &tree);
	if (!rc && heap->nt->walk->missing_count == missing_count)
		large_check(&walk, addr, min);
	return rc;
}
