#include <string.h>

#include "snapshot/heap/segment/segment_heap.h"

/* _HEAP_LFH_UNUSED_BYTES_INFO, _HEAP_VS_UNUSED_BYTES_INFO */
#define ONE_BYTE_UNUSED 0x8000u
#define EXTRA_PRESENT 0x4000u
#define VS_LFH_SUBSEGMENT 0x2000u
#define VS_UNUSED 0x1fffu
#define LFH_UNUSED 0x3fffu

#define RECORD_BYTES_MIN 16 /* of any record with a frame */
#define MARKS_MAX 4 /* that lead nowhere, in one tail */

bool segment_tail_read(struct segment_heap *heap, uint64_t end, uint64_t bytes,
	enum segment_tail_kind kind, struct segment_tail *tail)
{
	bool is_vs = kind == SEGMENT_TAIL_VS;
	uint16_t word;
	uint64_t unused;

	if (bytes < sizeof(word) || memory_u16(heap->nt->memory, end - sizeof(word), &word))
		return false;
	unused = word & ONE_BYTE_UNUSED ? 1 : word & (is_vs ? VS_UNUSED : LFH_UNUSED);
	/* One byte cannot hold the word's flags below the topmost; more than one holds the word. */
	if (unused > bytes || (!(word & ONE_BYTE_UNUSED) && unused < sizeof(word)))
		return false;
	*tail = (struct segment_tail){.unused_bytes = unused,
		.has_extra = !(word & ONE_BYTE_UNUSED) && (word & EXTRA_PRESENT),
		.is_lfh = is_vs && (word & VS_LFH_SUBSEGMENT)};
	return true;
}

/* ---------------------------------------------------------------- the record of a block's stack */

/* Bytes from the interceptor's index to the pointer behind the _SEGMENT_HEAP_EXTRA. */
static size_t mark_bytes(const struct segment_parts *parts)
{
	return (size_t)parts->extra_bytes - parts->extra_interceptor;
}

/* The first interceptor, one unit of its own, and nothing else set. */
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

/* A pointer to a record is aligned, and leads to memory that is there. Records lie close together. */
static bool record_is_there(struct segment_heap *heap, uint64_t record)
{
	struct claim *known = &heap->records;
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

/* The pointer behind a mark at bytes[i], or 0. */
static uint64_t record_at(struct segment_heap *heap, const unsigned char *bytes, size_t i)
{
	const struct segment_parts *parts = heap->parts;

	if (!is_mark(parts, bytes + i))
		return 0;
	return bytes_ptr(bytes + i + mark_bytes(parts), parts->bits);
}

/* Looks for a mark from *i on, and moves *i behind it. Returns the pointer that follows it, or 0. */
static uint64_t mark_search(
	struct segment_heap *heap, const unsigned char *bytes, size_t len, size_t *i)
{
	size_t need = mark_bytes(heap->parts) + heap->parts->bits / 8;
	uint64_t record = 0;

	while (!record && *i + need <= len) {
		const unsigned char *found = memchr(bytes + *i, 1, len - need - *i + 1);

		if (!found)
			return 0;
		*i = (size_t)(found - bytes);
		record = record_at(heap, bytes, (*i)++);
	}
	return record;
}

/* The bytes of a tail that are there: its last pages may not be committed. */
static const unsigned char *tail_bytes_at(struct memory *memory, uint64_t tail, size_t *len)
{
	const unsigned char *bytes = memory_at(memory, tail, *len);
	size_t page_left = CLAIM_PAGE_BYTES - (size_t)(tail % CLAIM_PAGE_BYTES);

	if (bytes || *len <= page_left)
		return bytes;
	*len = page_left;
	return memory_at(memory, tail, *len);
}

uint64_t segment_record_find(struct segment_heap *heap, uint64_t tail, uint64_t tail_bytes)
{
	size_t len = tail_bytes < MEMORY_AT_MAX ? (size_t)tail_bytes : MEMORY_AT_MAX, i = 0;

	for (unsigned tries = 0; len && tries < MARKS_MAX; tries++) {
		const unsigned char *bytes = tail_bytes_at(heap->nt->memory, tail, &len);
		uint64_t record = bytes ? mark_search(heap, bytes, len, &i) : 0;

		if (!record)
			return 0;
		if (record_is_there(heap, record))
			return record;
	}
	return 0;
}
