/* VS subsegments of segment heaps: adjacent chunks of different sizes, and the live blocks in them.
 * The last part counts the subsegments in the heap's lists, which are in its VS context or in
 * affinity slots. The walker compares that count with the number of subsegments found. */
#include <string.h>

#include "snapshot/heap/segment/segment.h"

#define SIGNATURE_BITS 0x7fffu /* bit 15 is FullCommit */
#define CHUNK_UNUSED 0x100u /* _HEAP_VS_CHUNK_HEADER.UnusedBytes */
#define CHUNK_SKIPPED 0x200u /* .SkipDuringWalk */
#define BROKEN_NO_END "VS chunks that do not fill their subsegment"

/* A chunk's sizes, in units. */
struct sizes {
	uint64_t units, previous_units;
	bool is_allocated;
};

/* _HEAP_VS_CHUNK_HEADER.Sizes. 64-bit: MemoryCost:16, UnsafeSize:16, UnsafePrevSize:16,
 * Allocated:8. 32-bit: MemoryCost:1, UnsafeSize:15, UnsafePrevSize:15, Allocated:1. */
static struct sizes sizes_decode(const unsigned char *header, unsigned bits, uint64_t key)
{
	if (bits == 64) {
		uint64_t word = bytes_u64(header) ^ key;

		return (struct sizes){
			word >> 16 & 0xffff, word >> 32 & 0xffff, (word >> 48 & 0xff) != 0};
	} else {
		uint32_t word = bytes_u32(header) ^ (uint32_t)key;

		return (struct sizes){word >> 1 & 0x7fff, word >> 16 & 0x7fff, word >> 31};
	}
}

bool vs_cursor_init(struct vs_cursor *cursor, struct segment_heap *heap, uint64_t key,
	uint64_t addr, uint64_t range_bytes)
{
	const struct segment_parts *parts = heap->parts;
	uint16_t units, signature;

	if (memory_u16(heap->nt->memory, addr + parts->vs_size, &units) ||
		memory_u16(heap->nt->memory, addr + parts->vs_signature, &signature) ||
		((signature ^ units ^ SEGMENT_VS_SIGNATURE) & SIGNATURE_BITS) ||
		(uint64_t)units * parts->unit > range_bytes ||
		(uint64_t)units * parts->unit < parts->vs_first_chunk)
		return false;
	*cursor = (struct vs_cursor){.heap = heap,
		.key = key,
		.next = addr + parts->vs_first_chunk,
		.end = addr + (uint64_t)units * parts->unit,
		.limit = addr + range_bytes};
	return true;
}

/*
 * Returns true if one more chunk follows the nominal end of the subsegment. Sources disagree on
 * whether the size of a subsegment includes the header before the first chunk. If it does not, one
 * more chunk follows. That chunk contains the size of the previous chunk and fills the rest.
 */
static bool is_last_chunk(const struct vs_cursor *cursor, const struct sizes *sizes)
{
	const struct segment_parts *parts = cursor->heap->parts;

	return sizes->previous_units == cursor->previous_units && sizes->units &&
	       cursor->next + sizes->units * parts->unit == cursor->end + parts->vs_first_chunk;
}

static bool sizes_read(struct vs_cursor *cursor, const unsigned char **header, struct sizes *sizes)
{
	const struct segment_parts *parts = cursor->heap->parts;

	*header = memory_at(cursor->heap->nt->memory, cursor->next, parts->vs_chunk_bytes);
	if (*header)
		*sizes = sizes_decode(*header, parts->bits, cursor->next ^ cursor->key);
	return *header != NULL;
}

static bool fail(struct vs_cursor *cursor, const char *what)
{
	cursor->broken = what;
	return false;
}

/* Returns the maximum number of bytes of the next chunk: up to the later of the two possible
 * ends. */
static uint64_t cursor_room(const struct vs_cursor *cursor)
{
	uint64_t end = cursor->end + cursor->heap->parts->vs_first_chunk;

	return (end <= cursor->limit ? end : cursor->end) - cursor->next;
}

bool vs_cursor_next(struct vs_cursor *cursor, struct vs_chunk *chunk)
{
	const struct segment_parts *parts = cursor->heap->parts;
	const unsigned char *header;
	struct sizes sizes;
	uint32_t bits;

	if (cursor->broken || cursor->next > cursor->end)
		return false;
	if (cursor->limit - cursor->next < parts->vs_chunk_bytes)
		return false;
	if (!sizes_read(cursor, &header, &sizes))
		return cursor->next < cursor->end && fail(cursor, "unreadable VS chunk");
	if (cursor->next == cursor->end && !is_last_chunk(cursor, &sizes))
		return false;
	if (!sizes.units)
		return fail(cursor, "VS chunk without a size");
	if (sizes.units * parts->unit > cursor_room(cursor))
		return fail(cursor, BROKEN_NO_END);
	if (cursor->previous_units && sizes.previous_units != cursor->previous_units)
		return fail(cursor, "VS chunk that does not fit the previous one");
	bits = bytes_u32(header + parts->vs_chunk_bits);
	*chunk = (struct vs_chunk){.addr = cursor->next,
		.bytes = sizes.units * parts->unit,
		.is_allocated = sizes.is_allocated,
		.has_unused = sizes.is_allocated && (bits & CHUNK_UNUSED),
		.is_skipped = sizes.is_allocated && (bits & CHUNK_SKIPPED)};
	cursor->next += chunk->bytes;
	cursor->previous_units = sizes.units;
	return true;
}

/* ---------------------------------------------------------------- live chunks */

/* Finds the number of bytes that the user of a chunk can use, and the unused tail of the chunk.
 * Returns false if the two are inconsistent. */
static bool chunk_tail(struct segment_heap *heap, const struct vs_chunk *chunk, uint64_t *bytes,
	struct segment_tail *tail)
{
	*bytes = chunk->bytes - heap->parts->vs_chunk_bytes;
	*tail = (struct segment_tail){0};
	return chunk->bytes > heap->parts->vs_chunk_bytes &&
	       (!chunk->has_unused || segment_tail_read(heap, chunk->addr + chunk->bytes, *bytes,
					      SEGMENT_TAIL_VS, tail));
}

int vs_chunk_lfh(
	struct segment_heap *heap, const struct vs_chunk *chunk, uint64_t *addr, uint64_t *bytes)
{
	struct segment_tail tail;

	if (!chunk->has_unused || !chunk_tail(heap, chunk, bytes, &tail) || !tail.is_lfh)
		return 0;
	*addr = chunk->addr + heap->parts->vs_chunk_bytes;
	*bytes -= tail.unused_bytes;
	return 1;
}

static int allocated_chunk(struct segment_heap *heap, const struct vs_chunk *chunk)
{
	unsigned header = heap->parts->vs_chunk_bytes;
	uint64_t addr = chunk->addr + header, bytes;
	struct segment_block block = {.addr = addr, .header_bytes = header};
	struct segment_tail tail;
	int rc;

	if (!chunk_tail(heap, chunk, &bytes, &tail)) {
		if (chunk->bytes <= header)
			return walk_broken(heap->nt->walk, chunk->addr, "VS block without a size");
		walk_broken(heap->nt->walk, chunk->addr,
			"VS block with more unused bytes than its size");
	}
	if (tail.is_lfh)
		return segment_lfh_walk(heap, addr, bytes - tail.unused_bytes);
	if (chunk->is_skipped)
		return 0;
	/* A chunk that contains an LFH subsegment always has an unused tail. If the bit that marks
	 * the tail is damaged, the chunk looks like an ordinary block. So check for a
	 * subsegment. */
	rc = chunk->has_unused ? 0 : segment_lfh_notice(heap, addr, bytes);
	if (rc)
		return rc;
	block.bytes = bytes;
	block.unused_bytes = tail.unused_bytes;
	block.has_extra = tail.has_extra;
	return segment_block_add(heap, &block);
}

static void slot_add(struct vs_slots *slots, uint16_t ref)
{
	slots->refs[ref / 64] |= (uint64_t)1 << ref % 64;
}

int segment_vs_walk(struct segment_heap *heap, uint64_t addr, uint64_t range_bytes)
{
	struct vs_cursor cursor;
	struct vs_chunk chunk;
	uint16_t slot;
	int rc;

	if (!vs_cursor_init(&cursor, heap, heap->nt->segment_keys.heap, addr, range_bytes))
		return segment_fault(heap, addr, "broken VS subsegment");
	if (heap->parts->slot_list &&
		!memory_u16(heap->nt->memory, addr + heap->parts->vs_owner, &slot))
		slot_add(&heap->slots, slot);
	rc = walk_add_container(heap->nt->walk, addr, range_bytes, CONTAINER_VS);
	while (!rc && vs_cursor_next(&cursor, &chunk)) {
		memory_fetch(&heap->nt->memory->last, cursor.next, MEMORY_AHEAD_BYTES);
		if (chunk.is_allocated)
			rc = allocated_chunk(heap, &chunk);
	}
	if (!rc && !cursor.broken && cursor.next < cursor.end)
		cursor.broken = BROKEN_NO_END;
	if (cursor.broken)
		segment_fault(heap, cursor.next, cursor.broken);
	return rc;
}

/* ---------------------------------------------------------------- lists */

static int count_link(void *ctx, uint64_t link)
{
	(void)link;
	++*(uint64_t *)ctx;
	return 0;
}

static uint64_t list_count(struct segment_heap *heap, uint64_t head, bool is_coded)
{
	uint64_t count = 0;
	const struct nt_list list = {
		.head = head, .each = count_link, .ctx = &count, .is_coded = is_coded};

	nt_list_walk(heap->nt, &list);
	return count;
}

/* ---------------------------------------------------------------- affinity slots */

/* Returns true if the slot at `addr` points back to its context. In builds of 26100, the slot
 * contains either a pointer to the context or the distance to it. */
static bool is_slot(
	struct nt_walk *nt, const struct segment_parts *parts, uint64_t context, uint64_t addr)
{
	uint64_t value;

	return !memory_ptr(nt->memory, parts->bits, addr + parts->slot_context, &value) &&
	       (value == context || value == addr - context);
}

/* Adds the slots in the context's map to `slots`. Returns false if the map is unreadable. */
static bool slots_read(struct nt_walk *nt, const struct segment_parts *parts, uint64_t context,
	struct vs_slots *slots)
{
	uint16_t map, ref;
	uint8_t mask;

	if (memory_u16(nt->memory, context + parts->slot_map, &map) ||
		memory_u8(nt->memory, context + parts->slot_mask, &mask))
		return false;
	for (unsigned i = 0; i <= mask; i++) {
		if (memory_u16(nt->memory,
			    context + ((uint64_t)map << parts->slot_shift) +
				    (uint64_t)i * parts->slot_map_entry,
			    &ref))
			return false;
		slot_add(slots, ref);
	}
	return true;
}

bool segment_vs_has_slots(struct nt_walk *nt, const struct segment_layout *layout, uint64_t addr)
{
	const struct segment_parts *parts = layout->parts;
	const uint64_t context = addr + layout->vs_context;
	uint16_t map, ref;

	return !memory_u16(nt->memory, context + parts->slot_map, &map) && map &&
	       !memory_u16(nt->memory, context + ((uint64_t)map << parts->slot_shift), &ref) &&
	       ref && is_slot(nt, parts, context, context + ((uint64_t)ref << parts->slot_shift));
}

/* Counts the subsegments in the lists of all slots. Slots are found through the map and through
 * references in subsegments. */
static uint64_t slots_listed(struct segment_heap *heap)
{
	const struct segment_parts *parts = heap->parts;
	const uint64_t context = heap->addr + heap->layout->vs_context;
	uint64_t count = 0;

	if (!slots_read(heap->nt, parts, context, &heap->slots))
		walk_missing(heap->nt->walk, context, "unreadable map of VS slots");
	for (unsigned ref = 0; ref <= UINT16_MAX; ref++) {
		const uint64_t slot = context + ((uint64_t)ref << parts->slot_shift);
		const uint64_t head = slot + parts->slot_list;

		if (!(heap->slots.refs[ref / 64] >> ref % 64 & 1))
			continue;
		if (is_slot(heap->nt, parts, context, slot))
			count += list_count(heap, head, !segment_list_fits(heap->nt, head, false));
		else
			segment_fault(heap, slot, "VS slot of another context");
	}
	return count;
}

uint64_t segment_vs_listed(struct segment_heap *heap)
{
	return heap->parts->slot_list ?
		       slots_listed(heap) :
		       list_count(heap,
			       heap->addr + heap->layout->vs_context + heap->layout->vs_list, true);
}
