/* Walks a segment heap: its large blocks, which are in a tree, and its page ranges. Each page range
 * is a block, a VS subsegment or an LFH subsegment. */
#include "snapshot/heap/nt_heap.h"
#include "snapshot/heap/segment/segment.h"

#define PAGES_MAX (TARGET_SPACE_BYTES >> 12)
/* bits of VirtualAddress that contain the number of unused bytes */
#define LOW_BITS ((uint64_t)0xffff)
#define PAGE_BITS ((uint64_t)0xfff) /* bits of the word AllocatedPages that contain flags */

struct large_walk {
	struct segment_heap *heap;
	uint64_t committed_bytes; /* bytes of all blocks */
	uint64_t first; /* first node that was visited; 0: none yet */
};

/* Reads a page count from the heap's structure. Returns the count in bytes, or 0 if the count is
 * impossible. */
static uint64_t pages_at(const struct segment_heap *heap, uint16_t field)
{
	uint64_t pages = 0;

	if (memory_ptr(heap->nt->memory, heap->parts->bits, heap->addr + field, &pages) ||
		pages > PAGES_MAX)
		return 0;
	return pages << 12;
}

static const char *large_fault(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t space = heap->parts->bits == 64 ? TARGET_SPACE_BYTES : (uint64_t)1 << 32;
	uint64_t end = block->addr + block->bytes, there;

	if (!block->addr || block->bytes < block->unused_bytes || !block->bytes)
		return "large block without a size";
	if (block->addr >= space || block->bytes > space - block->addr)
		return "large block past its memory";
	/* If the beginning of the block is not in the dump, the whole block is missing, which is
	 * not a fault. */
	there = target_committed_end(heap->nt->memory->target, block->addr, end);
	return there == block->addr || there == end ? NULL : "large block past its memory";
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
		return walk_broken(heap->nt->walk, node, "more blocks than the memory can hold");
	walk->committed_bytes += block->bytes;
	rc = rc ? rc : walk_add_own(heap->nt->walk, node);
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

/* Checks the walk against the tree's pointer to its first node, and against the heap's total of
 * large blocks. Either may be stored as 0. */
static void large_check(const struct large_walk *walk, uint64_t tree, uint64_t min)
{
	const struct segment_heap *heap = walk->heap;
	uint16_t committed = heap->layout->large_committed;

	min &= ~(uint64_t)1;
	if (min && min != tree && min != walk->first && (min ^ tree) != walk->first)
		walk_broken(heap->nt->walk, tree, "tree of large blocks without its first one");
	if (committed && walk->committed_bytes < pages_at(heap, committed))
		walk_broken(heap->nt->walk, tree, "fewer large blocks than the heap's own count");
}

static int segment_large_walk(struct segment_heap *heap)
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

/* Adds a page range that is a single block. */
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
		return walk_broken(heap->nt->walk, range->addr,
			"page range with more unused bytes than its size");
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
	case SEGMENT_RANGE_INTERNAL: /* used by the heap itself */
		return segment_lfh_notice(heap, range->addr, range->bytes);
	default: return walk_broken(heap->nt->walk, range->addr, "page range of an unknown kind");
	}
}

static int each_range(void *ctx, const struct segment_range *range)
{
	struct segment_heap *heap = ctx;
	int rc = range_blocks(heap, range), flushed;

	flushed = claim_run_flush(&heap->run, &heap->nt->claims);
	rc = rc ? rc : flushed;
	if (rc == -ERR_TARGET)
		return walk_broken(
			heap->nt->walk, range->addr, "more blocks than the memory can hold");
	return rc;
}

/* Accepts a page segment if its signature matches the context. */
static int each_segment(void *ctx, uint64_t addr, uint64_t seg_context)
{
	struct segment_heap *heap = ctx;
	uint64_t key;

	if (segment_page_key(heap, addr, seg_context, &key) && key == heap->nt->segment_keys.page)
		return 1;
	return walk_broken(heap->nt->walk, addr, "page segment with an unknown key");
}

static int blocks(struct segment_heap *heap)
{
	const struct segment_visit visit = {
		.segment = each_segment, .range = each_range, .ctx = heap};
	unsigned missing_count = heap->nt->walk->missing_count;
	uint64_t contexts = heap->addr + heap->layout->contexts, listed;
	int rc = segment_large_walk(heap);

	for (unsigned i = 0; heap->layout->context_bytes && i < 2; i++)
		segment_context_check(heap, contexts + i * heap->layout->context_bytes);
	rc = rc ? rc : segment_ranges_walk(heap, &visit);
	if (rc)
		return rc;
	listed = segment_vs_listed(heap);
	if (heap->vs_ranges != listed && heap->nt->walk->missing_count == missing_count)
		walk_broken(heap->nt->walk, heap->addr, "VS subsegments that are not listed");
	return 0;
}

static int walk_opened(struct segment_heap *heap)
{
	const struct segment_layout *layout = heap->layout;
	struct heap found = {.addr = heap->addr,
		.bits = layout->parts->bits,
		.kind = "segment",
		.layout = layout->name};
	int rc;

	if (layout->committed_pages) {
		found.committed_bytes = pages_at(heap, layout->committed_pages) +
					pages_at(heap, layout->large_committed);
		found.reserved_bytes = pages_at(heap, layout->reserved_pages) +
				       pages_at(heap, layout->large_reserved);
	}
	rc = walk_add_heap(heap->nt->walk, &found);
	return rc ? rc : blocks(heap);
}

int segment_heap_walk(struct nt_walk *nt, uint64_t addr)
{
	struct heap found = {.addr = addr, .bits = nt->process->bits, .kind = "segment"};
	struct segment_heap heap;
	int rc = segment_keys_find(nt);

	if (rc)
		return rc;
	/* These builds changed x64 heaps considerably. It is not known how they changed x86
	 * heaps. */
	if (nt->process->bits == 32 && nt->process->os_build >= SEGMENT_BUILD_X64_ONLY)
		nt->walk->unwalked_why = "32-bit segment heaps of this Windows are not known yet";
	else if (segment_heap_open(&heap, nt, addr))
		return walk_opened(&heap);
	found.unwalked = true;
	return walk_add_heap(nt->walk, &found);
}
