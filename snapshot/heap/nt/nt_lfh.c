#include "snapshot/heap/nt/nt_lfh.h"

#include <stdlib.h>

#include "core/buf.h"
#include "snapshot/heap/nt/nt_chain.h"

#define BLOCKS_MAX 65536 /* of a container: its count is a u16 */

/* A container that is about to be walked. */
struct view {
	const struct nt_container *container;
	struct nt_offsets offsets;
	uint32_t block_count;
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

/* Reads which blocks are busy, where the container says it in a bitmap. */
static void read_bitmap(struct nt_heap *heap, struct view *view)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	const struct nt_container *container = view->container;
	unsigned bits = heap->layout->bits;
	uint64_t count = 0, bytes = (view->block_count + 7) / 8, at = 0;
	struct memory *memory = heap->nt->memory;

	view->has_bitmap = false;
	if (!layout->data_bitmap)
		return;
	nt_span_forget(&heap->span);
	memory_ptr(memory, bits, container->addr + layout->data_bitmap_count, &count);
	memory_ptr(memory, bits, container->addr + layout->data_bitmap_bytes, &at);
	if (count < view->block_count || at < container->addr + layout->data_bytes ||
		at >= container->end || container->end - at < bytes ||
		memory_copy(memory, at, view->busy, (size_t)bytes)) {
		walk_broken(heap->nt->walk, container->addr, "LFH container without its bitmap");
		return;
	}
	view->has_bitmap = true;
}

static void view_init(struct view *view, struct nt_heap *heap, const struct nt_container *container)
{
	view->container = container;
	view->block_count = container->block_count;
	read_bitmap(heap, view);
}

static bool is_busy(const struct view *view, uint32_t block)
{
	return view->busy[block / 8] >> block % 8 & 1;
}

/* Where a container's blocks begin, when their marks lie there as the bitmap says. */
static bool is_marked(struct nt_heap *heap, const struct view *view, uint32_t first)
{
	const struct nt_container *container = view->container;
	uint32_t step = view->block_count / NT_MARK_SAMPLES + 1;

	for (uint32_t i = 0; i < view->block_count; i += step) {
		uint8_t mark =
			mark_at(heap, container->addr + first + (uint64_t)i * container->stride);

		if (!(mark & NT_UNUSED_LFH) ||
			(view->has_bitmap && is_busy(view, i) != (mark != NT_UNUSED_LFH)))
			return false;
	}
	return view->block_count > 0;
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

static int add_blocks(struct nt_heap *heap, const struct view *view)
{
	uint64_t entry = view->container->addr + view->offsets.first;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < view->block_count; i++, entry += view->offsets.stride) {
		uint8_t mark;

		if (view->has_bitmap && !is_busy(view, i))
			continue;
		mark = mark_at(heap, entry);
		if (view->has_bitmap || (mark & NT_UNUSED_LFH && mark != NT_UNUSED_LFH))
			rc = add_block(heap, view, entry, mark);
		else if (!(mark & NT_UNUSED_LFH))
			walk_broken(heap->nt->walk, entry, "LFH block without its mark");
	}
	return rc;
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

	if (!container->stride || !container->block_count)
		return 0;
	view_init(&view, heap, container);
	if (!find_offsets(heap, &view, key))
		return walk_broken(heap->nt->walk, container->addr,
			"LFH container whose blocks cannot be found");
	return add_blocks(heap, &view);
}

int nt_lfh_walk(struct nt_heap *heap)
{
	struct nt_lfh *lfh = &heap->lfh;
	uint32_t key = 0;
	bool has_key = false;
	int rc = nt_lfh_match(heap);

	if (!rc && lfh->container_count && heap->layout->lfh->data_is_coded) {
		has_key = nt_lfh_key_find(heap, &key);
		if (!has_key)
			walk_broken(heap->nt->walk, lfh->containers[0].addr,
				"LFH key that does not verify");
	}
	for (size_t i = 0; !rc && i < lfh->container_count; i++)
		rc = walk_container(heap, &lfh->containers[i], has_key ? &key : NULL);
	return rc;
}
