#include "snapshot/heap/nt/nt_lfh.h"

#include <stdlib.h>

#include "core/buf.h"
#include "snapshot/heap/nt/nt_chain.h"

#define NT_MARKS_PER_ODD 8 /* so many headers agree with the bitmap for one that does not */
#define BLOCKS_MAX 65536 /* of a container: its count is a u16 */

/* A container that is about to be walked. */
struct view {
	const struct nt_container *container;
	struct nt_offsets offsets;
	uint32_t block_count, bit_count; /* bits: what there is of the bitmap */
	bool has_bitmap;
	unsigned char busy[BLOCKS_MAX / 8];
};

int nt_lfh_note(struct nt_heap *heap, uint64_t addr, uint64_t end)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	struct nt_lfh *lfh = &heap->lfh;
	struct nt_container container = {.addr = addr, .end = end};
	const unsigned char *bytes;

	if (end <= addr || end - addr < layout->data_bytes)
		return 0;
	bytes = nt_span_at(&heap->span, addr, layout->data_bytes);
	if (!bytes || bytes_u32(bytes + layout->data_signature) != NT_LFH_SIGNATURE)
		return 0;
	container.subsegment = bytes_ptr(bytes + layout->data_sub, heap->layout->bits);
	if (layout->data_offsets)
		container.offsets = bytes_u32(bytes + layout->data_offsets);
	if (array_grow((void **)&lfh->containers, &lfh->container_cap, lfh->container_count,
		    sizeof(*lfh->containers)))
		return -ERR_NOMEM;
	lfh->containers[lfh->container_count++] = container;
	return 0;
}

void nt_lfh_release(struct nt_lfh *lfh)
{
	free(lfh->internals);
	free(lfh->listed);
	free(lfh->containers);
	*lfh = (struct nt_lfh){0};
}

bool nt_lfh_owns(const struct nt_lfh *lfh, uint64_t addr, uint64_t end)
{
	size_t low = 0, high = lfh->internal_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lfh->internals[middle] < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < lfh->internal_count && lfh->internals[low] < end;
}

/* ---------------------------------------------------------------- one container */

uint32_t nt_first_offset_min(const struct nt_heap *heap, const struct nt_container *container)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	uint32_t unit = heap->layout->common->unit, word = heap->layout->bits;
	uint32_t bytes = layout->data_bytes;

	/* The bitmap is made of whole words; blocks begin at whole units. */
	if (layout->data_bitmap)
		bytes = layout->data_bitmap + (container->block_count + word - 1) / word * word / 8;
	bytes = (bytes + unit - 1) / unit * unit;
	return bytes > layout->first_min ? bytes : layout->first_min;
}

bool nt_offsets_are_legal(
	const struct nt_heap *heap, const struct nt_container *container, struct nt_offsets offsets)
{
	return container->stride && offsets.stride == container->stride &&
	       offsets.first >= nt_first_offset_min(heap, container) &&
	       offsets.first <= NT_FIRST_OFFSET_MAX && offsets.first % 8 == 0 &&
	       offsets.first + (uint64_t)container->block_count * offsets.stride <=
		       container->end - container->addr;
}

/* The byte in a block's header that says whether the block is in use; 0: it is not there. */
static inline uint8_t mark_at(struct nt_heap *heap, uint64_t entry)
{
	const struct nt_common_layout *layout = heap->layout->common;
	const unsigned char *bytes = nt_span_at(&heap->span, entry, layout->entry_bytes);

	return bytes ? bytes[layout->entry_coded + NT_ENTRY_UNUSED / 8] : 0;
}

static bool is_live(uint8_t mark)
{
	return mark & NT_UNUSED_LFH && mark != NT_UNUSED_LFH;
}

/* Reads what the bitmap has for more blocks than the container is said to have. */
static void read_more_bits(struct memory *memory, struct view *view, uint64_t at, uint32_t count)
{
	uint64_t bytes = (count + 7) / 8;

	view->bit_count = view->block_count;
	if (count > view->block_count && view->container->end - at >= bytes &&
		!memory_copy(memory, at, view->busy, (size_t)bytes))
		view->bit_count = count;
}

/* Reads which blocks are busy, where the container says it in a bitmap. False: it should, and does
 * not. */
static bool read_bitmap(struct nt_heap *heap, struct view *view)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	const struct nt_container *container = view->container;
	uint64_t bytes = (view->block_count + 7) / 8, at = 0;
	struct memory *memory = heap->nt->memory;
	uint32_t count = 0;

	view->has_bitmap = false;
	view->bit_count = 0;
	if (!layout->data_bitmap)
		return true;
	nt_span_forget(&heap->span);
	memory_u32(memory, container->addr + layout->data_bitmap_count, &count);
	memory_ptr(memory, heap->layout->bits, container->addr + layout->data_bitmap_bytes, &at);
	if (count < view->block_count || at < container->addr + layout->data_bytes ||
		at >= container->end || container->end - at < bytes ||
		memory_copy(memory, at, view->busy, (size_t)bytes))
		return false;
	view->has_bitmap = true;
	read_more_bits(memory, view, at, count < BLOCKS_MAX ? count : BLOCKS_MAX);
	return true;
}

static void view_init(struct view *view, struct nt_heap *heap, const struct nt_container *container)
{
	view->container = container;
	view->block_count = container->block_count;
	if (!read_bitmap(heap, view))
		walk_broken(heap->nt->walk, container->addr, "LFH container without its bitmap");
}

static bool is_busy(const struct view *view, uint32_t block)
{
	return view->busy[block / 8] >> block % 8 & 1;
}

/* Where a container's blocks begin, when their marks lie there and, mostly, are as the bitmap says:
 * of a block whose header and whose bit disagree, others than it are sound. */
static bool is_marked(struct nt_heap *heap, const struct view *view, uint32_t first)
{
	const struct nt_container *container = view->container;
	uint32_t step = view->block_count / NT_MARK_SAMPLES + 1, samples = 0, odd = 0;

	for (uint32_t i = 0; i < view->block_count; i += step) {
		uint8_t mark =
			mark_at(heap, container->addr + first + (uint64_t)i * container->stride);

		if (!(mark & NT_UNUSED_LFH))
			return false;
		samples++;
		odd += view->has_bitmap && is_busy(view, i) != is_live(mark);
	}
	return samples && odd <= samples / NT_MARKS_PER_ODD;
}

bool nt_offsets_are_marked(
	struct nt_heap *heap, const struct nt_container *container, struct nt_offsets offsets)
{
	struct view view;

	view_init(&view, heap, container);
	return is_marked(heap, &view, offsets.first);
}

/* Looks for the first place where all headers have their marks. */
static bool probe(struct nt_heap *heap, struct view *view)
{
	const struct nt_container *container = view->container;
	struct nt_offsets offsets = {
		.first = nt_first_offset_min(heap, container), .stride = container->stride};

	for (; nt_offsets_are_legal(heap, container, offsets);
		offsets.first += heap->layout->common->unit) {
		if (is_marked(heap, view, offsets.first)) {
			view->offsets = offsets;
			return true;
		}
	}
	return false;
}

/* Adds block i, which is in use. */
static int add_block(struct nt_heap *heap, const struct view *view, uint64_t entry, uint8_t mark)
{
	struct nt_block block = {
		.entry = entry,
		.size_bytes = view->offsets.stride,
		.unused = mark & NT_UNUSED_NUMBER,
		.is_extended = mark & NT_UNUSED_OFFSET,
		.may_be_extended = heap->has_prefixes,
	};

	if (!(mark & NT_UNUSED_LFH))
		walk_broken(heap->nt->walk, entry, "LFH block without its mark");
	return nt_block_add(heap, &block);
}

/* The bitmap says which are in use; where there is none, headers do. */
static int add_blocks(struct nt_heap *heap, const struct view *view)
{
	uint64_t entry = view->container->addr + view->offsets.first, odd = 0;
	uint32_t free_count = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < view->block_count; i++, entry += view->offsets.stride) {
		uint8_t mark = mark_at(heap, entry);
		bool is_used = view->has_bitmap ? is_busy(view, i) : is_live(mark);

		free_count += mark == NT_UNUSED_LFH;
		if (is_used && mark == NT_UNUSED_LFH)
			/* Being freed by another thread later (DelayFreeList), or damaged. */
			walk_doubt(heap->nt->walk, entry,
				"LFH block that its container has in use and its header has not");
		else if (is_used)
			rc = add_block(heap, view, entry, mark);
		else if (!view->has_bitmap && !(mark & NT_UNUSED_LFH))
			walk_broken(heap->nt->walk, entry, "LFH block without its mark");
		else if (view->has_bitmap && is_live(mark) && !odd)
			odd = entry;
	}
	if (heap->layout->lfh->sub_free_count && free_count != view->container->free_count)
		walk_doubt(heap->nt->walk, view->container->addr,
			"LFH container of another number of free blocks than its subsegment has");
	if (odd)
		walk_broken(
			heap->nt->walk, odd, "LFH block in use that its container has not in use");
	return rc;
}

/* Blocks in use behind the last that the container is said to have: it has more. Bits alone may be
 * what rounds a bitmap up. */
static void look_behind(struct nt_heap *heap, const struct view *view)
{
	for (uint32_t i = view->block_count; i < view->bit_count; i++) {
		uint64_t entry = view->container->addr + view->offsets.first +
				 (uint64_t)i * view->offsets.stride;

		if (entry + view->offsets.stride > view->container->end)
			return;
		if (is_busy(view, i) && is_live(mark_at(heap, entry))) {
			walk_broken(heap->nt->walk, entry,
				"LFH container of more blocks than its subsegment has");
			return;
		}
	}
}

/*
 * A container that no subsegment describes is empty and kept for later. True when its bitmap or, by
 * the size of the subsegment that it had, its headers say otherwise.
 */
static bool is_in_use(struct nt_heap *heap, const struct nt_container *container)
{
	struct nt_container had = *container;
	struct view view = {0};

	if (!nt_lfh_last_described(heap, &had))
		return false;
	nt_span_forget(&heap->span);
	view.container = &had;
	view.block_count = had.block_count;
	read_bitmap(heap, &view);
	for (uint32_t i = 0; view.has_bitmap && i < view.block_count; i++)
		if (is_busy(&view, i))
			return true;
	if (heap->layout->lfh->data_bitmap || had.end - had.addr < heap->layout->lfh->data_bytes)
		return false;
	for (uint32_t i = 0; i < had.block_count; i++) {
		uint64_t entry =
			had.addr + heap->layout->lfh->data_bytes + (uint64_t)i * had.stride;

		if (entry + had.stride > had.end)
			return false;
		if (is_live(mark_at(heap, entry)))
			return true;
	}
	return false;
}

/* Where the container's blocks lie, by what its layout has to say about it. */
static bool find_offsets(struct nt_heap *heap, struct view *view, const uint32_t *key)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	const struct nt_container *container = view->container;

	if (!layout->data_offsets)
		view->offsets = (struct nt_offsets){layout->data_bytes, container->stride};
	else if (layout->data_is_coded && !key)
		return probe(heap, view);
	else
		view->offsets = nt_offsets_decode(heap, container, key ? *key : 0);
	if (!layout->data_offsets)
		return view->offsets.first + (uint64_t)view->block_count * container->stride <=
		       container->end - container->addr;
	if (nt_offsets_are_legal(heap, container, view->offsets))
		return true;
	walk_broken(heap->nt->walk, container->addr, "LFH container with impossible offsets");
	return probe(heap, view);
}

/* key: NULL where there is none or none was found. */
static int walk_container(
	struct nt_heap *heap, const struct nt_container *container, const uint32_t *key)
{
	struct view view;

	if (!container->stride)
		return is_in_use(heap, container) ?
			       walk_doubt(heap->nt->walk, container->addr,
				       "LFH container in use without a subsegment") :
			       0;
	if (!container->block_count)
		return walk_broken(heap->nt->walk, container->addr, "LFH container of no blocks");
	view_init(&view, heap, container);
	if (!find_offsets(heap, &view, key))
		return walk_broken(heap->nt->walk, container->addr,
			"LFH container whose blocks cannot be found");
	look_behind(heap, &view);
	return add_blocks(heap, &view);
}

/* Whether there are blocks to be found: containers may all be empty and kept for later. */
static bool has_blocks(const struct nt_lfh *lfh)
{
	for (size_t i = 0; i < lfh->container_count; i++)
		if (lfh->containers[i].stride && lfh->containers[i].block_count)
			return true;
	return false;
}

int nt_lfh_walk(struct nt_heap *heap)
{
	struct nt_lfh *lfh = &heap->lfh;
	uint32_t key = 0;
	bool has_key = false;
	int rc = nt_lfh_match(heap);

	if (!rc && has_blocks(lfh) && heap->layout->lfh->data_is_coded) {
		has_key = nt_lfh_key_find(heap, &key);
		if (!has_key)
			walk_broken(heap->nt->walk, lfh->containers[0].addr,
				"LFH key that does not verify");
	}
	for (size_t i = 0; !rc && i < lfh->container_count; i++)
		rc = walk_container(heap, &lfh->containers[i], has_key ? &key : NULL);
	return rc;
}
