/*
 * Use of the heaps' memory: the largest unused range of each heap, the blocks in LFH and VS
 * containers, and the containers that only a few blocks keep allocated.
 *
 * Containers are sorted by address and nested in each other, so each block has an innermost
 * container. A walk adds most blocks of a container in ascending order. The gaps between these
 * blocks are then unused, except for smaller containers, and for the few blocks that the walk added
 * out of order. If there are such blocks, a second pass over all blocks uses their sorted list.
 * Walked data is not trusted: overlapping containers are dropped, and their heap's numbers are
 * unknown.
 */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/heap/claims.h"

#define AREA_NONE UINT32_MAX
#define DEPTH_MAX 3 /* a segment, a VS subsegment in it, and an LFH subsegment in that */
#define PAGE_BYTES 4096
#define PINNED_SHARE 8 /* live blocks fill at most this part of a listed container */
#define PINNED_MAX 4096 /* maximum number of listed containers */

/* A container while its blocks are counted. */
struct area {
	uint64_t addr, end;
	uint64_t used_end; /* end of the last block that was found in ascending order */
	struct block_totals blocks;
	uint32_t parent; /* index of the container around it, or AREA_NONE */
	uint32_t heap;
	unsigned char kind, depth;
	bool is_sparse;
	bool is_covered; /* it, or a container around it, is listed */
};

struct measuring {
	struct target *target;
	struct walk *walk;
	struct area *areas; /* sorted by address; a container follows the containers around it */
	size_t count;
	/* Innermost container in [from, end), the range that was found last. */
	uint32_t recent;
	uint64_t from, end;
	/* Blocks that were found out of order. `is_again`: they are sorted, so a second pass can use
	 * them. */
	struct extents disordered;
	bool is_again;
};

static int by_addr(const void *a, const void *b)
{
	const struct area *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Finds the container around each container. Drops containers that overlap, or are nested too
 * deeply. */
static void nest(struct measuring *measuring)
{
	struct area *areas = measuring->areas;
	uint32_t parent = AREA_NONE, kept = 0;

	for (size_t i = 0; i < measuring->count; i++) {
		struct area area = areas[i];

		while (parent != AREA_NONE && areas[parent].end <= area.addr)
			parent = areas[parent].parent;
		if (parent != AREA_NONE &&
			(area.end > areas[parent].end || area.heap != areas[parent].heap ||
				areas[parent].depth == DEPTH_MAX)) {
			measuring->walk->heaps[area.heap].space.is_known = false;
			continue;
		}
		area.parent = parent;
		area.depth = parent == AREA_NONE ? 1 : areas[parent].depth + 1;
		areas[kept] = area;
		parent = kept++;
	}
	measuring->count = kept;
}

static void add_areas(struct measuring *measuring)
{
	struct walk *walk = measuring->walk;

	measuring->areas = xcalloc(walk->container_count + 1, sizeof(*measuring->areas));
	for (size_t i = 0; i < walk->container_count; i++) {
		const struct walk_container *container = &walk->containers[i];
		struct heap *heap = &walk->heaps[container->heap];

		if (!container->bytes || container->addr > TARGET_SPACE_BYTES ||
			container->bytes > TARGET_SPACE_BYTES || heap->unwalked || heap->is_partial)
			continue;
		heap->space.is_known = true;
		measuring->areas[measuring->count++] = (struct area){.addr = container->addr,
			.end = container->addr + container->bytes,
			.used_end = container->addr,
			.heap = container->heap,
			.kind = (unsigned char)container->kind,
			.is_sparse = container->is_sparse};
	}
	if (measuring->count)
		qsort(measuring->areas, measuring->count, sizeof(*measuring->areas), by_addr);
	nest(measuring);
}

/* Returns the number of containers that begin at or below `addr`. */
static size_t count_up_to(const struct measuring *measuring, uint64_t addr)
{
	return sorted_up_to(measuring->areas, measuring->count, sizeof(*measuring->areas),
		offsetof(struct area, addr), addr);
}

/* Returns the innermost container at `addr`, or AREA_NONE. */
static uint32_t area_at(struct measuring *measuring, uint64_t addr)
{
	const struct area *areas = measuring->areas;
	size_t next;
	uint32_t area;

	if (addr >= measuring->from && addr < measuring->end)
		return measuring->recent;
	next = count_up_to(measuring, addr);
	area = next ? (uint32_t)next - 1 : AREA_NONE;
	measuring->from = area == AREA_NONE ? 0 : areas[area].addr;
	while (area != AREA_NONE && areas[area].end <= addr) {
		measuring->from = areas[area].end;
		area = areas[area].parent;
	}
	measuring->end = next < measuring->count ? areas[next].addr : UINT64_MAX;
	if (area != AREA_NONE && areas[area].end < measuring->end)
		measuring->end = areas[area].end;
	measuring->recent = area;
	return area;
}

/* ---------------------------------------------------------------- unused ranges */

/* Calls region() for the committed parts of [from, end) in ascending order, and returns the sum of
 * their bytes. Stores the size of the largest part in `*largest` if that is more. */
static uint64_t committed_bytes(
	struct target *target, uint64_t from, uint64_t end, uint64_t *largest)
{
	uint64_t sum = 0, run = 0, run_end = 0;

	while (from < end) {
		struct target_region region = {.addr = from, .end = end};

		if (target->ops->region && target->ops->region(target, from, &region))
			break;
		if (region.addr >= end || region.end <= from)
			break;
		region.addr = region.addr > from ? region.addr : from;
		region.end = region.end < end ? region.end : end;
		run = region.addr == run_end ? run + region.end - region.addr :
					       region.end - region.addr;
		sum += region.end - region.addr;
		*largest = run > *largest ? run : *largest;
		from = run_end = region.end;
	}
	return sum;
}

/* Counts a range without containers and without blocks that were found in order. */
static void add_unused(
	struct measuring *measuring, const struct area *area, uint64_t from, uint64_t end)
{
	uint64_t *largest = &measuring->walk->heaps[area->heap].space.free_run_bytes;

	while (from < end && end - from > *largest) {
		const struct extent *block =
			measuring->is_again ? extents_above(&measuring->disordered, from) : NULL;
		uint64_t to = block && block->addr < end ? block->addr : end;

		if (from < to && to - from > *largest) {
			if (area->is_sparse)
				committed_bytes(measuring->target, from, to, largest);
			else
				*largest = to - from;
		}
		from = to < end ? block->end : end;
	}
}

/* Counts a gap between two blocks of a container. */
static void add_gap(struct measuring *measuring, uint32_t number, uint64_t from, uint64_t end)
{
	const struct area *areas = measuring->areas, *area = &areas[number];
	size_t next;
	uint32_t inner;

	if (from >= end || end - from <= measuring->walk->heaps[area->heap].space.free_run_bytes)
		return;
	next = count_up_to(measuring, from);
	/* A block may seem to end a few bytes after the start of the next container, because
	 * its bytes are counted from its address, which follows its header. */
	inner = (uint32_t)next - 1;
	while (inner > number && areas[inner].parent != number)
		inner = areas[inner].parent;
	if (inner > number && areas[inner].end > from)
		from = areas[inner].end;
	for (; next < measuring->count && areas[next].addr < end; next++) {
		if (areas[next].parent != number)
			continue;
		add_unused(measuring, area, from, areas[next].addr);
		from = areas[next].end > from ? areas[next].end : from;
	}
	add_unused(measuring, area, from, end);
}

/* ---------------------------------------------------------------- blocks */

/* Finds the gaps between blocks. The first pass also counts the blocks of each container, and lists
 * the blocks that are out of order. Returns 0 or -ERR_NOMEM. */
static int pass(struct measuring *measuring)
{
	const struct walk *walk = measuring->walk;
	const bool is_first = !measuring->is_again;
	int rc = 0;

	for (size_t i = 0; !rc && i < walk->block_count; i++) {
		const struct block *block = &walk->blocks[i];
		const uint32_t number = area_at(measuring, block->addr);
		const uint64_t end = block->addr + block->requested_bytes + block->overhead_bytes;
		struct area *area;

		if (number == AREA_NONE || measuring->areas[number].heap != block->heap)
			continue;
		area = &measuring->areas[number];
		if (is_first)
			block_totals_add(
				&area->blocks, &(struct block_totals){1, block->requested_bytes,
						       block->overhead_bytes});
		if (end >= area->used_end) {
			add_gap(measuring, number, area->used_end, block->addr);
			area->used_end = end;
		} else if (is_first) {
			rc = extents_add(&measuring->disordered,
				&(struct extent){.addr = block->addr, .end = end});
		}
	}
	for (size_t i = 0; !rc && i < measuring->count; i++) {
		struct area *area = &measuring->areas[i];

		add_gap(measuring, (uint32_t)i, area->used_end, area->end);
		area->used_end = area->addr;
	}
	return rc;
}

static int measure(struct measuring *measuring)
{
	struct walk *walk = measuring->walk;
	int rc = pass(measuring);

	if (rc || !measuring->disordered.count)
		return rc;
	extents_sort(&measuring->disordered, NULL);
	measuring->is_again = true;
	for (size_t i = 0; i < walk->heap_count; i++)
		walk->heaps[i].space.free_run_bytes = 0;
	return pass(measuring);
}

/* Adds the blocks of each container to its heap, and to the containers around it. */
static void add_up(struct measuring *measuring)
{
	for (size_t i = 0; i < measuring->count; i++) {
		const struct area *area = &measuring->areas[i];
		struct heap_space *space = &measuring->walk->heaps[area->heap].space;

		if (area->kind == CONTAINER_LFH)
			block_totals_add(&space->lfh, &area->blocks);
		else if (area->kind == CONTAINER_VS)
			block_totals_add(&space->vs, &area->blocks);
	}
	for (size_t i = measuring->count; i-- > 0;) {
		const struct area *area = &measuring->areas[i];

		if (area->parent != AREA_NONE)
			block_totals_add(&measuring->areas[area->parent].blocks, &area->blocks);
	}
}

/* ---------------------------------------------------------------- containers to list */

static int by_bytes(const void *a, const void *b)
{
	const struct container *x = a, *y = b;

	if (x->committed_bytes != y->committed_bytes)
		return x->committed_bytes > y->committed_bytes ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Returns true if blocks of `used` bytes, of `committed` bytes, keep at least one page allocated
 * that they do not need. */
static bool is_pinned(uint64_t used, uint64_t committed)
{
	return used <= committed / PINNED_SHARE &&
	       committed >= (used + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
}

/* Lists the outermost containers that few blocks keep allocated. */
static void list_pinned(struct measuring *measuring, struct snapshot *snapshot)
{
	for (size_t i = 0; i < measuring->count; i++) {
		struct area *area = &measuring->areas[i];
		const uint64_t used = area->blocks.requested_bytes + area->blocks.overhead_bytes;
		uint64_t committed = area->end - area->addr, ignored = 0;

		area->is_covered =
			area->parent != AREA_NONE && measuring->areas[area->parent].is_covered;
		if (area->is_covered || !area->blocks.block_count ||
			!measuring->walk->heaps[area->heap].space.is_known ||
			!is_pinned(used, committed))
			continue;
		if (area->is_sparse)
			committed =
				committed_bytes(measuring->target, area->addr, area->end, &ignored);
		if (!is_pinned(used, committed))
			continue;
		area->is_covered = true;
		array_grow((void **)&snapshot->containers, &snapshot->container_cap,
			snapshot->container_count, sizeof(*snapshot->containers));
		snapshot->containers[snapshot->container_count++] =
			(struct container){.addr = area->addr,
				.bytes = area->end - area->addr,
				.committed_bytes = committed,
				.blocks = area->blocks,
				.heap = area->heap,
				.kind = (enum container_kind)area->kind};
	}
	if (snapshot->container_count)
		qsort(snapshot->containers, snapshot->container_count,
			sizeof(*snapshot->containers), by_bytes);
	if (snapshot->container_count > PINNED_MAX) {
		snapshot->container_left_count = snapshot->container_count - PINNED_MAX;
		snapshot->container_count = PINNED_MAX;
	}
}

void heap_space_capture(
	struct target *target, struct raw_capture *captured, struct snapshot *snapshot)
{
	struct measuring measuring = {.target = target, .walk = &captured->walk};
	struct walk *walk = &captured->walk;

	if (walk->lacks_containers)
		return;
	add_areas(&measuring);
	if (measure(&measuring)) {
		for (size_t i = 0; i < walk->heap_count; i++)
			walk->heaps[i].space = (struct heap_space){0};
	} else {
		add_up(&measuring);
		snapshot->has_containers = !captured->source.sample_bytes;
		if (snapshot->has_containers)
			list_pinned(&measuring, snapshot);
	}
	extents_release(&measuring.disordered);
	free(measuring.areas);
}
