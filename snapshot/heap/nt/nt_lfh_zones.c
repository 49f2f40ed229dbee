/* The subsegments of an LFH. Each of them describes a container. The zones of the LFH lead to the
 * subsegments. The containers to which the subsegments refer are then compared with the containers
 * that were found in the back end. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "snapshot/heap/nt/nt.h"

static int add_listed(struct nt_lfh *lfh, uint64_t container, uint64_t subsegment)
{
	if (array_try_grow((void **)&lfh->listed, &lfh->listed_cap, lfh->listed_count,
		    sizeof(*lfh->listed)))
		return -ERR_NOMEM;
	lfh->listed[lfh->listed_count++] = (struct nt_listed){container, subsegment};
	return 0;
}

static int by_container(const void *a, const void *b)
{
	const struct nt_listed *x = a, *y = b;

	if (x->container != y->container)
		return x->container < y->container ? -1 : 1;
	return x->subsegment < y->subsegment ? -1 : x->subsegment > y->subsegment;
}

static int has_container(const void *a, const void *b)
{
	const struct nt_listed *x = a, *y = b;

	return x->container < y->container ? -1 : x->container > y->container;
}

/*
 * Returns true if memory at `addr` may be read. The number of reads must be limited. The heap's own
 * memory has been claimed, which is a sufficient limit. Zones may also lie in other memory. Each
 * read there counts as a list entry, and the number of list entries is limited.
 */
static bool may_read(struct nt_heap *heap, uint64_t addr, uint64_t bytes)
{
	const struct extent *run = extents_at(&heap->runs, addr);

	return (run && run->end - addr >= bytes) || nt_list_entry(heap->nt);
}

/* Records the start address of the LFH or of a zone. */
static int add_own(void *ctx, uint64_t addr)
{
	struct nt_heap *heap = ctx;

	return extents_add(&heap->lfh.own, &(struct extent){.addr = addr, .end = addr + 1});
}

/* Returns the end of the part of a zone whose subsegments are or were in use. */
static uint64_t zone_end(struct nt_heap *heap, uint64_t zone)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	uint64_t end = 0;
	uint32_t count = 0;

	if (!layout->zone_counts) {
		memory_ptr(heap->nt->memory, heap->layout->bits, zone + layout->zone_end, &end);
		return end;
	}
	if (memory_u32(heap->nt->memory, zone + layout->zone_end, &count) || count > INT32_MAX)
		return zone;
	return zone + layout->zone_first + (uint64_t)count * layout->sub_bytes;
}

/* Adds the containers to which the subsegments of a zone refer. `limit` is the start of the next
 * zone. */
static int list_zone(struct nt_heap *heap, uint64_t zone, uint64_t limit)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	uint64_t at = zone + layout->zone_first, end = zone_end(heap, zone), data;
	int rc = 0;

	if (end > limit) {
		walk_broken(heap->nt->walk, zone, "LFH zone of an impossible size");
		end = limit;
	}
	for (; !rc && at < end && end - at >= layout->sub_bytes; at += layout->sub_bytes) {
		const unsigned char *bytes = memory_at(heap->nt->memory, at, layout->sub_bytes);

		if (!bytes || !may_read(heap, at, layout->sub_bytes))
			return walk_missing(heap->nt->walk, at, "unreadable LFH subsegment");
		data = bytes_ptr(bytes + layout->sub_data, heap->layout->bits);
		if (data && bytes_u16(bytes + layout->sub_block_size))
			rc = add_listed(&heap->lfh, data, at);
	}
	return rc;
}

int nt_lfh_open(struct nt_heap *heap)
{
	struct nt_lfh *lfh = &heap->lfh;
	struct nt_list list = {.each = add_own, .ctx = heap};
	unsigned missing_count = heap->nt->walk->missing_count;
	uint8_t type = 0;
	bool is_missing;
	int rc;

	lfh->addr = nt_front_end(heap->nt->memory, heap->layout, heap->addr, &is_missing);
	memory_u8(heap->nt->memory, heap->addr + heap->layout->front_end_type, &type);
	lfh->is_list_cut = true;
	if (is_missing)
		return walk_missing(
			heap->nt->walk, lfh->addr ? lfh->addr : heap->addr, "unreadable front end");
	if (!lfh->addr)
		return type == NT_FRONT_END_LFH ? walk_broken(heap->nt->walk, heap->addr,
							  "front end that is not the heap's") :
						  0;
	list.head = lfh->addr + heap->layout->lfh->lfh_zones;
	rc = nt_list_walk(heap->nt, &list);
	extents_sort(&lfh->own, NULL);
	for (size_t i = 0; !rc && i < lfh->own.count; i++)
		rc = list_zone(heap, lfh->own.list[i].addr,
			i + 1 < lfh->own.count ? lfh->own.list[i + 1].addr : UINT64_MAX);
	lfh->is_list_cut = heap->nt->walk->missing_count != missing_count;
	if (lfh->listed_count)
		qsort(lfh->listed, lfh->listed_count, sizeof(*lfh->listed), by_container);
	if (!rc)
		rc = add_own(heap, lfh->addr);
	extents_sort(&lfh->own, NULL);
	/* since Windows 8, these may lie in memory of their own */
	for (size_t i = 0; !rc && i < lfh->own.count; i++)
		rc = walk_add_own(heap->nt->walk, lfh->own.list[i].addr);
	return rc;
}

bool nt_lfh_lists(struct nt_heap *heap, uint64_t addr, uint64_t end)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	const struct nt_lfh *lfh = &heap->lfh;
	const struct nt_listed wanted = {.container = addr};
	const unsigned char *bytes;

	if (!lfh->listed_count || end - addr < layout->data_bytes)
		return false;
	bytes = nt_span_at(&heap->span, addr, layout->data_bytes);
	return bytes && bytes_u32(bytes + layout->data_signature) == NT_LFH_SIGNATURE &&
	       bsearch(&wanted, lfh->listed, lfh->listed_count, sizeof(*lfh->listed),
		       has_container);
}

bool nt_lfh_describe(
	struct nt_heap *heap, struct nt_container *container, uint64_t subsegment, uint64_t data)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	const unsigned char *bytes = memory_at(heap->nt->memory, subsegment, layout->sub_bytes);

	if (!bytes || bytes_ptr(bytes + layout->sub_data, heap->layout->bits) != data)
		return false;
	container->stride =
		(uint32_t)bytes_u16(bytes + layout->sub_block_size) * heap->layout->common->unit;
	container->block_count = bytes_u16(bytes + layout->sub_block_count);
	if (layout->sub_free_count)
		container->free_count = bytes_u16(bytes + layout->sub_free_count);
	return true;
}

/* Copies the container's description from its subsegment. Returns false if the subsegment now
 * refers to another container. */
static bool describe(struct nt_heap *heap, struct nt_container *container, uint64_t subsegment)
{
	if (!nt_lfh_describe(heap, container, subsegment, container->addr))
		return false;
	if (!container->stride)
		walk_broken(
			heap->nt->walk, container->addr, "LFH container whose blocks have no size");
	return true;
}

static uint64_t least_end(const struct nt_heap *heap, const struct nt_container *container)
{
	return container->addr + nt_first_offset(heap, container) +
	       (uint64_t)container->block_count * container->stride;
}

/*
 * Handles a container that is listed by the zones but was not found in the walk of the back end.
 * Adds the container if it lies in a gap of that walk. Outside of gaps, the bytes of the container
 * have already been walked.
 */
static int add_missing(struct nt_heap *heap, const struct nt_listed *listed)
{
	struct nt_lfh *lfh = &heap->lfh;
	const struct extent *gap = extents_at(&heap->gaps, listed->container);
	size_t before = lfh->container_count;
	struct nt_container *container;
	int rc;

	if (!gap)
		walk_broken(
			heap->nt->walk, listed->container, "LFH container unknown to the back end");
	if (!gap || listed->container < lfh->taken_end)
		return 0;
	nt_span_forget(&heap->span);
	rc = nt_lfh_note(heap, listed->container, gap->end);
	if (lfh->container_count == before)
		return rc;
	container = &lfh->containers[before];
	/* Containers must not overlap; otherwise there could be more blocks than bytes. */
	if (describe(heap, container, listed->subsegment) && least_end(heap, container) <= gap->end)
		lfh->taken_end = least_end(heap, container);
	else
		lfh->container_count = before;
	return 0;
}

/*
 * Compares a container of the back end with its entry in the zones, which may be NULL. If the
 * container does not point to its subsegment, copies the description from the entry. A container
 * without a description is empty and waiting for reuse.
 */
static void match(
	struct nt_heap *heap, struct nt_container *container, const struct nt_listed *listed)
{
	bool is_described = describe(heap, container, container->subsegment);

	if (is_described && !listed && !heap->lfh.is_list_cut)
		walk_broken(heap->nt->walk, container->addr, "LFH container that no zone lists");
	if (!is_described && !listed && container->subsegment &&
		!memory_at(heap->nt->memory, container->subsegment, heap->layout->lfh->sub_bytes))
		walk_missing(
			heap->nt->walk, container->subsegment, "subsegment of an LFH container");
	if (is_described || !listed)
		return;
	walk_broken(heap->nt->walk, container->addr, "LFH container without its subsegment");
	describe(heap, container, listed->subsegment);
}

/* Merges the two sorted lists of containers. `found` is the number of containers found in the back
 * end. */
static int compare(struct nt_heap *heap, size_t found)
{
	struct nt_lfh *lfh = &heap->lfh;
	size_t i = 0;
	int rc = 0;

	for (size_t j = 0; !rc && j < lfh->listed_count; j++) {
		const struct nt_listed *listed = &lfh->listed[j];

		if (j && listed[-1].container == listed->container) {
			walk_broken(heap->nt->walk, listed->container,
				"LFH container of two subsegments");
			continue;
		}
		for (; i < found && lfh->containers[i].addr < listed->container; i++)
			match(heap, &lfh->containers[i], NULL);
		if (i < found && lfh->containers[i].addr == listed->container)
			match(heap, &lfh->containers[i++], listed);
		else
			rc = add_missing(heap, listed);
	}
	for (; i < found; i++)
		match(heap, &lfh->containers[i], NULL);
	return rc;
}

int nt_lfh_match(struct nt_heap *heap)
{
	int rc = compare(heap, heap->lfh.container_count);

	nt_span_forget(&heap->span);
	return rc;
}
