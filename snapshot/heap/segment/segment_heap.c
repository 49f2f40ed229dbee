/* The walker of segment heaps: the search for keys in ntdll, the tree of large blocks, the choice
 * of a heap's layout, and the walk of page ranges. */
#include "snapshot/heap/nt_heap.h"
#include "snapshot/heap/segment/segment.h"

/*
 * ntdll stores the keys of segment heaps side by side (RtlpHpHeapGlobals), at an address that is
 * known only from symbols. One of the keys is known from the heaps themselves. Where ntdll's
 * writable data contains that key, the other key is next to it. */

/* Limit for all modules of that name together; ntdll is far smaller. */
#define SCAN_BYTES_MAX ((uint64_t)16 << 20)
#define NTDLL "ntdll.dll"

struct scan {
	struct nt_walk *nt;
	const struct segment_parts *parts;
	const struct segment_globals *wanted;
	uint64_t left; /* bytes that may still be searched */
};

static bool is_at(const struct scan *scan, uint64_t addr)
{
	struct memory *memory = scan->nt->memory;
	unsigned bits = scan->parts->bits;
	uint64_t heap_key, lfh_key;

	return !memory_ptr(memory, bits, addr + scan->parts->globals_heap_key, &heap_key) &&
	       heap_key == scan->wanted->heap_key &&
	       !memory_ptr(memory, bits, addr + scan->parts->globals_lfh_key, &lfh_key) &&
	       scan->wanted->fits(scan->wanted->ctx, (uint32_t)lfh_key);
}

static bool scan_section(struct scan *scan, uint64_t addr, uint64_t end)
{
	unsigned step = scan->parts->bits / 8;
	uint8_t there;

	for (; addr + step <= end && scan->left >= step; addr += step) {
		scan->left -= step;
		if (is_at(scan, addr))
			return true;
		if (addr % CLAIM_PAGE_BYTES < step && memory_u8(scan->nt->memory, addr, &there))
			addr = (addr | (CLAIM_PAGE_BYTES - 1)) + 1 -
			       step; /* continue with the next page */
	}
	return false;
}

static bool scan_data(void *ctx, uint64_t addr, const struct pe_section *section)
{
	return section->is_writable && scan_section(ctx, addr, addr + section->size_bytes);
}

bool segment_globals_find(
	struct nt_walk *nt, const struct segment_parts *parts, const struct segment_globals *wanted)
{
	struct scan scan = {.nt = nt, .parts = parts, .wanted = wanted, .left = SCAN_BYTES_MAX};

	return nt_module_scan(nt, NTDLL, scan_data, &scan);
}

#define PAGES_MAX (TARGET_SPACE_BYTES >> 12)
/* bits of VirtualAddress that contain the number of unused bytes */
#define LOW_BITS ((uint64_t)0xffff)
#define PAGE_BITS ((uint64_t)0xfff) /* bits in the word of AllocatedPages that contain flags */

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

/* Adds a live block without claiming its memory. */
static int block_list(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t requested = block->bytes - block->unused_bytes, record = 0;

	if (block->has_extra)
		record = segment_record_find(heap, block->addr + requested, block->unused_bytes);
	return walk_add_block(heap->nt->walk, block->addr, requested,
		block->header_bytes + block->unused_bytes, record);
}

static const char *large_fault(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t space = heap->parts->bits == 64 ? TARGET_SPACE_BYTES : (uint64_t)1 << 32;
	uint64_t end = block->addr + block->bytes, there;

	if (!block->addr || block->bytes < block->unused_bytes || !block->bytes)
		return "large block of no size";
	if (block->addr >= space || block->bytes > space - block->addr)
		return "large block past its memory";
	/* If a dump lacks the block's beginning, it lacks the whole block, which is not a fault. */
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
		return walk_broken(heap->nt->walk, node, "more blocks than memory");
	walk->committed_bytes += block->bytes;
	rc = rc ? rc : walk_add_own(heap->nt->walk, node);
	return rc ? rc : block_list(heap, block);
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

/* Checks the result of the walk against the tree's pointer to its first node and the heap's total
 * of large blocks. Either may be stored as 0. */
static void large_check(const struct large_walk *walk, uint64_t tree, uint64_t min)
{
	const struct segment_heap *heap = walk->heap;
	uint16_t committed = heap->layout->large_committed;

	min &= ~(uint64_t)1;
	if (min && min != tree && min != walk->first && (min ^ tree) != walk->first)
		walk_broken(heap->nt->walk, tree, "tree of large blocks without its first one");
	if (committed && walk->committed_bytes < pages_at(heap, committed))
		walk_broken(heap->nt->walk, tree, "fewer large blocks than the heap counts");
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

#define TRIAL_SEGMENTS 8u /* number of page segments that are read to choose between layouts */

/* ---------------------------------------------------------------- choosing a layout */

static bool points_to(struct nt_walk *nt, uint64_t addr, uint64_t to)
{
	uint64_t value;

	return !memory_ptr(nt->memory, nt->process->bits, addr, &value) && value == to;
}

bool segment_list_fits(struct nt_walk *nt, uint64_t head, bool is_coded)
{
	unsigned bits = nt->process->bits;
	uint64_t next, previous, key = is_coded ? head : 0;

	if (memory_ptr(nt->memory, bits, head, &next) ||
		memory_ptr(nt->memory, bits, head + bits / 8, &previous))
		return false;
	if (!next || !previous)
		return false; /* encoded or not, zeros prove nothing */
	next ^= key;
	previous ^= key;
	return points_to(nt, next + bits / 8, is_coded ? head ^ next : head) ||
	       points_to(nt, previous, is_coded ? head ^ previous : head);
}

/* Weights of the criteria for a layout: pointers and lists that have the right target. No criterion
 * is required, because any data may be damaged. It is not known what the second context contains in
 * real heaps. */
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
	if (points_to(nt, context + layout->to_heap, heap))
		weight += WEIGHT_HEAP;
	if (points_to(nt, context + layout->to_lfh, heap + layout->lfh_context))
		weight += WEIGHT_PART;
	if (points_to(nt, context + layout->to_vs, heap + layout->vs_context))
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

/* Records a warning if a context's pointers have the wrong targets. Pointers to the front ends may
 * be null. */
static void check_context(struct segment_heap *heap, uint64_t context)
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

int segment_fault(const struct segment_heap *heap, uint64_t addr, const char *what)
{
	uint8_t byte;

	return memory_u8(heap->nt->memory, addr, &byte) ?
		       walk_missing(heap->nt->walk, addr, "unreadable memory of a segment heap") :
		       walk_broken(heap->nt->walk, addr, what);
}

/* ---------------------------------------------------------------- blocks */

int segment_block_add(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t requested = block->bytes - block->unused_bytes;
	int rc = claim_run_add(&heap->run, &heap->nt->claims, block->addr - block->header_bytes,
		block->header_bytes + (requested ? requested : 1));

	return rc ? rc : block_list(heap, block);
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
	case SEGMENT_RANGE_INTERNAL: /* used by the heap itself */
		return segment_lfh_notice(heap, range->addr, range->bytes);
	default: return walk_broken(heap->nt->walk, range->addr, "page range of no known kind");
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

/* Accepts a page segment if its signature fits the context. */
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
	unsigned missing_count = heap->nt->walk->missing_count;
	uint64_t contexts = heap->addr + heap->layout->contexts, listed;
	int rc = segment_large_walk(heap);

	for (unsigned i = 0; heap->layout->context_bytes && i < 2; i++)
		check_context(heap, contexts + i * heap->layout->context_bytes);
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
	/* These builds changed x64 heaps considerably; their x86 heaps are unknown. */
	if (nt->process->bits == 32 && nt->process->os_build >= SEGMENT_BUILD_X64_ONLY)
		nt->walk->unwalked_why = "32-bit segment heaps of this Windows are not known yet";
	else if (segment_heap_open(&heap, nt, addr))
		return walk_opened(&heap);
	found.unwalked = true;
	return walk_add_heap(nt->walk, &found);
}
