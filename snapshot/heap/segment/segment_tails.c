/*
 * The unused bytes at the end of a block of a segment heap. The block's last two bytes contain
 * their number. If stacks are recorded, the unused bytes also contain a mark, followed by a pointer
 * to the record of the block's stack. Other unused bytes can look like a mark by chance, so a mark
 * with an invalid pointer is skipped. This file also adds live blocks, with that record.
 */
#include <string.h>

#include "snapshot/heap/segment/segment.h"

/* _HEAP_LFH_UNUSED_BYTES_INFO, _HEAP_VS_UNUSED_BYTES_INFO */
#define ONE_BYTE_UNUSED 0x8000u
#define EXTRA_PRESENT 0x4000u
#define VS_LFH_SUBSEGMENT 0x2000u
#define VS_UNUSED 0x1fffu
#define LFH_UNUSED 0x3fffu

#define RECORD_BYTES_MIN 16 /* smallest size of a record with at least one frame */
#define MARKS_MAX 4 /* maximum number of invalid marks to skip in one tail */

bool segment_tail_read(struct segment_heap *heap, uint64_t end, uint64_t bytes,
	enum segment_tail_kind kind, struct segment_tail *tail)
{
	bool is_vs = kind == SEGMENT_TAIL_VS;
	uint16_t word;
	uint64_t unused;

	if (bytes < sizeof(word) || memory_u16(heap->nt->memory, end - sizeof(word), &word))
		return false;
	unused = word & ONE_BYTE_UNUSED ? 1 : word & (is_vs ? VS_UNUSED : LFH_UNUSED);
	/* If only one byte is unused, it has room only for the topmost flag. If more bytes are
	 * unused, they contain the whole word. */
	if (unused > bytes || (!(word & ONE_BYTE_UNUSED) && unused < sizeof(word)))
		return false;
	*tail = (struct segment_tail){.unused_bytes = unused,
		.has_extra = !(word & ONE_BYTE_UNUSED) && (word & EXTRA_PRESENT),
		.is_lfh = is_vs && (word & VS_LFH_SUBSEGMENT)};
	return true;
}

/* ---------------------------------------------------------------- the record of a block's stack */

/* Returns the distance in bytes from the interceptor's index to the pointer after the
 * _SEGMENT_HEAP_EXTRA. */
static size_t mark_bytes(const struct segment_parts *parts)
{
	return (size_t)parts->extra_bytes - parts->extra_interceptor;
}

/* Returns true if the bytes are the mark of a stack: interceptor 1, an extra size of 1 unit, then
 * zeros. */
static bool is_mark(const struct segment_parts *parts, const unsigned char *bytes)
{
	size_t len = mark_bytes(parts);

	if (bytes[0] != 1 || bytes[1] != 1)
		return false;
	for (size_t i = 2; i < len; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

/* Returns true if the pointer to a record is aligned and points to readable memory. Caches the
 * readable range, because records are close together. */
static bool record_is_there(struct segment_heap *heap, uint64_t record)
{
	struct extent *known = &heap->records;
	size_t len;

	if (!record || record % (heap->parts->bits / 8))
		return false;
	if (record >= known->addr && record < known->end)
		return known->end - record >= RECORD_BYTES_MIN;
	if (!memory_from(heap->nt->memory, record, &len))
		return false;
	known->end =
		record < known->addr && len >= known->addr - record ? known->end : record + len;
	known->addr = record;
	return known->end - record >= RECORD_BYTES_MIN;
}

/* Finds the first mark at or after *i and reads the pointer after the mark. Moves *i past the start
 * of the mark. Returns false if there is no further mark. */
static bool mark_next(const struct segment_parts *parts, const unsigned char *bytes, size_t len,
	size_t *i, uint64_t *record)
{
	size_t need = mark_bytes(parts) + parts->bits / 8;

	while (*i + need <= len) {
		const unsigned char *found = memchr(bytes + *i, 1, len - need - *i + 1);

		if (!found)
			return false;
		*i = (size_t)(found - bytes) + 1;
		if (is_mark(parts, found)) {
			*record = bytes_ptr(found + mark_bytes(parts), parts->bits);
			return true;
		}
	}
	return false;
}

/* Returns a pointer to the readable bytes of a tail. The last pages of the tail may not be
 * committed; `*len` is then reduced. */
static const unsigned char *tail_bytes_at(struct memory *memory, uint64_t tail, size_t *len)
{
	const unsigned char *bytes = *len ? memory_at(memory, tail, *len) : NULL;
	size_t page_left = CLAIM_PAGE_BYTES - (size_t)(tail % CLAIM_PAGE_BYTES);

	if (bytes || *len <= page_left)
		return bytes;
	*len = page_left;
	return memory_at(memory, tail, *len);
}

static size_t looked_bytes(uint64_t tail_bytes)
{
	return tail_bytes < MEMORY_AT_MAX ? (size_t)tail_bytes : MEMORY_AT_MAX;
}

bool segment_mark_exists(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes)
{
	size_t len = looked_bytes(tail_bytes), i = 0;
	const unsigned char *bytes = tail_bytes_at(heap->nt->memory, tail, &len);
	uint64_t record;

	return bytes && mark_next(heap->parts, bytes, len, &i, &record);
}

static bool has_no_interceptor(struct segment_heap *heap, uint64_t extra)
{
	uint8_t index;

	return !memory_u8(heap->nt->memory, extra + heap->parts->extra_interceptor, &index) &&
	       !(index & 0xf);
}

/* Returns true if the tail does not need a mark. There are two reasons: the process does not record
 * stacks, or an extra stores a user-settable value and no stack. An extra is at the beginning or
 * end of the tail. */
static bool may_have_no_mark(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes)
{
	unsigned unit = heap->parts->unit;

	return !(heap->nt->process->global_flag & NT_FLAG_UST) ||
	       has_no_interceptor(heap, (tail + unit - 1) / unit * unit) ||
	       (tail_bytes >= 2 * unit && has_no_interceptor(heap, tail + tail_bytes - 2 * unit));
}

uint64_t segment_record_find(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes)
{
	size_t len = looked_bytes(tail_bytes), i = 0;
	unsigned wild_count = 0;
	bool has_null = false;

	while (wild_count < MARKS_MAX) {
		const unsigned char *bytes = tail_bytes_at(heap->nt->memory, tail, &len);
		uint64_t record;

		if (!bytes || !mark_next(heap->parts, bytes, len, &i, &record))
			break;
		if (record == heap->parts->no_record)
			return 0;
		if (!record)
			has_null = true;
		else if (record_is_there(heap, record))
			return record;
		else
			wild_count++;
	}
	if (!has_null && (wild_count || !may_have_no_mark(heap, tail, tail_bytes)))
		walk_broken(heap->nt->walk, tail, "block without the stack that its end announces");
	return 0;
}

int segment_block_list(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t requested = block->bytes - block->unused_bytes, record = 0;

	if (block->has_extra)
		record = segment_record_find(heap, block->addr + requested, block->unused_bytes);
	return walk_add_block(heap->nt->walk, block->addr, requested,
		block->header_bytes + block->unused_bytes, record);
}

int segment_block_add(struct segment_heap *heap, const struct segment_block *block)
{
	uint64_t requested = block->bytes - block->unused_bytes;
	int rc = claim_run_add(&heap->run, &heap->nt->claims, block->addr - block->header_bytes,
		block->header_bytes + (requested ? requested : 1));

	return rc ? rc : segment_block_list(heap, block);
}
