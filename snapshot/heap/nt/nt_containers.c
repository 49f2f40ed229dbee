/* Containers of the low fragmentation heap, as the walk of the back end and the zones find them. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "snapshot/heap/nt/nt.h"

#define ROOM_SHIFT_MAX 31

/* Returns the size of a container's room, or 0 if SizeIndex is invalid. The size is 2^SizeIndex +
 * PaddingBytes (_HEAP_USERDATA_HEADER.SizeIndexAndPadding). GuardPagePresent marks a guard page at
 * the end; the padding precedes that page. */
static uint64_t room_of(uint32_t word)
{
	return (word & 0xff) > ROOM_SHIFT_MAX ? 0 : ((uint64_t)1 << (word & 0xff)) + (word >> 16);
}

int nt_lfh_note(struct nt_heap *heap, uint64_t addr, uint64_t end)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	struct nt_lfh *lfh = &heap->lfh;
	struct nt_container container = {.addr = addr, .end = end};
	const unsigned char *bytes;

	if (end <= addr || end - addr < layout->data_bytes)
		return 0;
	bytes = nt_span_at(&heap->span, addr, layout->data_bytes);
	if (!bytes)
		return walk_missing(heap->nt->walk, addr, "possible LFH container");
	if (bytes_u32(bytes + layout->data_signature) != NT_LFH_SIGNATURE)
		return 0;
	container.subsegment = bytes_ptr(bytes + layout->data_sub, heap->layout->bits);
	if (layout->data_offsets)
		container.offsets = bytes_u32(bytes + layout->data_offsets);
	if (layout->data_room)
		container.room_bytes = room_of(bytes_u32(bytes + layout->data_room));
	if (array_try_grow((void **)&lfh->containers, &lfh->container_cap, lfh->container_count,
		    sizeof(*lfh->containers)))
		return -ERR_NOMEM;
	lfh->containers[lfh->container_count++] = container;
	return 0;
}

void nt_lfh_release(struct nt_lfh *lfh)
{
	extents_release(&lfh->own);
	free(lfh->listed);
	free(lfh->containers);
	*lfh = (struct nt_lfh){0};
}

bool nt_lfh_owns(const struct nt_lfh *lfh, uint64_t addr, uint64_t end)
{
	const struct extent *own = extents_above(&lfh->own, addr);

	return own && own->addr < end;
}

uint32_t nt_first_offset(const struct nt_heap *heap, const struct nt_container *container)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	uint32_t unit = heap->layout->common->unit;

	if (!layout->data_bitmap)
		return layout->data_bytes;
	return (layout->data_first + (container->block_count + 31) / 32 * 4 + unit - 1) / unit *
	       unit;
}
