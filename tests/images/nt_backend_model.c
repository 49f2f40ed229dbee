/* The back end of an NT heap: segments, entries, free blocks, uncommitted ranges.
 * Facts: sections 2.2 to 2.4 and 7.2. */
#include "tests/images/nt_model.h"

#include <stdlib.h>
#include <string.h>

#include "tests/images/image_inside.h"

#define FIRST_SEGMENT_BYTES 0x100000u
#define MOST_SEGMENT_BYTES 0xfd0000u
/* Bytes kept free at a segment's end for its last entries. */
#define SEGMENT_TAIL_BYTES 0x3000u
#define MOST_LAST_FREE 0x20000u
#define OWN_BYTES 0x240u

static uint64_t ptr_of(const struct nt_heap *heap)
{
	return image_ptr_bytes(heap->image);
}

/* Returns 0 in a heap's first segment. In later segments the offset counts from 1: facts, section
 * 2.6a. */
static unsigned segment_offset(const struct nt_heap *heap, uint64_t entry)
{
	return heap->segment == heap->base ? 0 : 1 + (unsigned)((entry - heap->segment) >> 16);
}

static void commit_to(struct nt_heap *heap, uint64_t end)
{
	if (end > heap->committed) {
		uint64_t rounded = (end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
		image_commit(heap->image, heap->committed, rounded - heap->committed,
			IMAGE_READ | IMAGE_WRITE);
		heap->committed = rounded;
	}
}

void nt_write_header(struct nt_heap *heap, uint64_t entry, uint32_t units, unsigned flags,
	uint32_t previous_units, unsigned segment_offset, unsigned unused)
{
	uint8_t bytes[8] = {(uint8_t)units, (uint8_t)(units >> 8), (uint8_t)flags, 0,
		(uint8_t)previous_units, (uint8_t)(previous_units >> 8), (uint8_t)segment_offset,
		(uint8_t)unused};
	bytes[3] = heap->is_plain ? 0 : bytes[0] ^ bytes[1] ^ bytes[2];
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] ^= heap->key[i];
	image_write_bytes(heap->image, entry + heap->shape->header_at, bytes, sizeof(bytes));
}

/* ---- segments */

static void write_segment(struct nt_heap *heap, uint64_t bytes, uint64_t first_entry)
{
	struct image *image = heap->image;
	const struct made_nt_shape *shape = heap->shape;
	uint64_t segment = heap->segment;
	image_write(image, segment + shape->segment_signature, 0xffeeffee, 4);
	image_write_ptr(image, segment + shape->segment_heap, heap->base);
	image_write_ptr(image, segment + shape->segment_base, segment);
	image_write(image, segment + shape->segment_pages, bytes / PAGE_BYTES, 4);
	image_write_ptr(image, segment + shape->segment_first, first_entry);
	image_write_ptr(image, segment + shape->segment_last, segment + bytes);
	image_list_init(image, segment + shape->segment_ucr_list);
	image_list_add(
		image, heap->base + heap->layout->segment_list, segment + shape->segment_link);
	uint32_t units = (uint32_t)((first_entry - segment) / shape->unit);
	nt_write_header(heap, segment, units, NT_BUSY, 0, segment_offset(heap, segment), 1);
	heap->previous_units = units;
	heap->cursor = first_entry;
	heap->segment_end = segment + bytes;
	heap->run = segment;
	heap->hole_pages = 0;
	heap->hole_count = 0;
	heap->is_last_free = false;
	heap->segment_count++;
	heap->committed_bytes += bytes;
	heap->reserved_bytes += bytes;
	image_mark(image, "nt.segment", segment);
}

static void new_segment(struct nt_heap *heap)
{
	uint64_t bytes = heap->next_segment_bytes;
	heap->next_segment_bytes = 2 * bytes < MOST_SEGMENT_BYTES ? 2 * bytes : MOST_SEGMENT_BYTES;
	heap->segment = image_reserve(heap->image, bytes, 0);
	heap->committed = heap->segment;
	commit_to(heap, heap->segment + PAGE_BYTES);
	write_segment(heap, bytes, heap->segment + heap->shape->segment_bytes);
}

static uint64_t write_entry(struct nt_heap *heap, uint32_t units, unsigned flags, unsigned unused)
{
	uint64_t entry = heap->cursor;
	uint64_t bytes = (uint64_t)units * heap->shape->unit;
	commit_to(heap, entry + bytes);
	nt_write_header(heap, entry, units, flags, heap->previous_units,
		segment_offset(heap, entry), unused);
	heap->units_before = heap->previous_units;
	heap->previous_units = units;
	heap->last_entry = entry;
	heap->is_last_free = false;
	heap->cursor += bytes;
	return entry;
}

static void write_free(struct nt_heap *heap, uint32_t units)
{
	uint64_t entry = write_entry(heap, units, 0, 0);
	uint64_t bytes = (uint64_t)units * heap->shape->unit;
	uint64_t links = 2 * ptr_of(heap);
	heap->frees = image_grow(
		heap->frees, &heap->free_capacity, heap->free_count, sizeof(*heap->frees));
	heap->frees[heap->free_count++] = (struct nt_place){entry, bytes};
	heap->is_last_free = true;
	if (heap->has_tail) {
		/* If free checking is on, FEEEFEEE follows the list's links. */
		uint64_t body = entry + heap->shape->unit + links;
		for (uint64_t at = body; at + 4 <= entry + bytes; at += 4)
			image_write(heap->image, at, 0xfeeefeee, 4);
	}
}

/* Takes back the last free block in order to enlarge it: two free blocks are never adjacent. */
static void take_back_free(struct nt_heap *heap)
{
	if (heap->is_last_free) {
		heap->free_count--;
		heap->cursor = heap->last_entry;
		heap->previous_units = heap->units_before;
		heap->is_last_free = false;
	}
}

/* Writes the entry before an uncommitted range. The entry's body is the range's descriptor. A fully
 * committed segment has a descriptor of 0 bytes at its end, which is not in the heap's list (facts,
 * section 2.3). */
static void write_marker(struct nt_heap *heap, uint64_t hole, uint64_t hole_bytes)
{
	struct image *image = heap->image;
	const struct made_nt_shape *shape = heap->shape;
	uint32_t units = (uint32_t)(shape->unit + shape->ucr_bytes) / shape->unit;
	write_entry(heap, units, NT_BUSY, NT_UNUSED_LAST);
	uint64_t descriptor = hole - shape->ucr_bytes;
	image_write_ptr(image, descriptor + shape->ucr_address, hole);
	image_write_ptr(image, descriptor + shape->ucr_size, hole_bytes);
	if (hole_bytes > 0) {
		image_list_add(
			image, heap->base + heap->layout->ucr_list, descriptor + shape->ucr_link);
	}
	image_list_add(image, heap->segment + shape->segment_ucr_list,
		descriptor + shape->ucr_segment_link);
	image_mark(image, "nt.ucr", descriptor);
	truth_container(image, heap->base, "segment", heap->run, hole - heap->run);
	heap->run = hole + hole_bytes;
	heap->hole_count++;
	heap->hole_pages += (uint32_t)(hole_bytes / PAGE_BYTES);
	heap->committed_bytes -= hole_bytes;
}

static uint64_t marker_bytes(const struct nt_heap *heap)
{
	return heap->shape->unit + heap->shape->ucr_bytes;
}

/* Returns the end of the next page that has room for a marker. */
static uint64_t marker_end(struct nt_heap *heap)
{
	take_back_free(heap);
	uint64_t least = heap->cursor + marker_bytes(heap);
	uint64_t end = (least + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	/* A free block has at least two units. */
	return end - least == heap->shape->unit ? end + PAGE_BYTES : end;
}

static void fill_to_marker(struct nt_heap *heap, uint64_t end)
{
	uint32_t gap = (uint32_t)((end - marker_bytes(heap) - heap->cursor) / heap->shape->unit);
	if (gap > 0)
		write_free(heap, gap);
}

static void write_hole_counts(struct nt_heap *heap)
{
	const struct made_nt_shape *shape = heap->shape;
	image_write(heap->image, heap->segment + shape->segment_holes_pages, heap->hole_pages, 4);
	image_write(heap->image, heap->segment + shape->segment_holes, heap->hole_count, 4);
}

/* Leaves the rest of a segment uncommitted, or makes a free block of it if it is small. The choice
 * does not depend on the growth state. */
static void close_segment(struct nt_heap *heap)
{
	uint64_t end = marker_end(heap);
	if (image_hash(heap->segment) % 2 && heap->segment_end - heap->cursor <= MOST_LAST_FREE)
		end = heap->segment_end;
	fill_to_marker(heap, end);
	write_marker(heap, end, heap->segment_end - end);
	write_hole_counts(heap);
}

static void make_room(struct nt_heap *heap, uint64_t bytes)
{
	if (heap->segment_end - heap->cursor < bytes + SEGMENT_TAIL_BYTES) {
		close_segment(heap);
		new_segment(heap);
	}
}

uint64_t nt_next_entry(struct nt_heap *heap, uint64_t bytes)
{
	make_room(heap, bytes);
	return heap->cursor;
}

uint64_t nt_place_entry(struct nt_heap *heap, uint32_t units, unsigned flags, unsigned unused)
{
	make_room(heap, (uint64_t)units * heap->shape->unit);
	uint64_t entry = write_entry(heap, units, flags, unused);
	/* A block's last bytes may lie in the next header, which has not been written yet. */
	commit_to(heap, heap->cursor + heap->shape->unit);
	return entry;
}

void nt_add_hole(struct nt_heap *heap, unsigned pages)
{
	make_room(heap, (uint64_t)(pages + 4) * PAGE_BYTES);
	uint64_t hole = marker_end(heap);
	fill_to_marker(heap, hole);
	write_marker(heap, hole, (uint64_t)pages * PAGE_BYTES);
	heap->cursor = hole + (uint64_t)pages * PAGE_BYTES;
	heap->committed = heap->cursor;
	/* The facts do not define which size an entry stores for the previous entry. */
	heap->previous_units = image_random(heap->image, 2) ? heap->previous_units : 0;
}

void nt_add_free(struct nt_heap *heap, unsigned units)
{
	make_room(heap, (uint64_t)units * heap->shape->unit);
	if (!heap->is_last_free)
		write_free(heap, units < 2 ? 2 : units);
}

void nt_add_guard(struct nt_heap *heap, uint64_t addr)
{
	image_commit(heap->image, addr, PAGE_BYTES, IMAGE_GUARD);
}

uint64_t nt_add_internal(struct nt_heap *heap, uint64_t bytes)
{
	uint32_t unit = heap->shape->unit;
	uint64_t all = (bytes + unit + unit - 1) / unit * unit;
	uint64_t entry = nt_place_entry(heap, (uint32_t)(all / unit), NT_BUSY | NT_INTERNAL,
		(unsigned)(all - bytes) & 0x3f);
	return entry + unit;
}

/* ---- the heap */

static void write_encoding(struct nt_heap *heap)
{
	struct image *image = heap->image;
	if (heap->is_plain)
		return;
	/* The last two bytes are zero: SegmentOffset and UnusedBytes stay clear (facts, 2.4). */
	for (unsigned i = 0; i < 6; i++)
		heap->key[i] = (uint8_t)image_random(image, 256);
	image_write(image, heap->base + heap->shape->encode_mask, 0x100000, 4);
	image_write_bytes(image, heap->base + heap->shape->encoding + heap->shape->header_at,
		heap->key, sizeof(heap->key));
}

static void write_flags(struct nt_heap *heap, bool is_process_heap)
{
	uint32_t flags = is_process_heap ? 0x2 : 0x1002;
	uint32_t forced = heap->has_tail ? 0x40000060 : 0;
	if (heap->has_prefix) {
		forced |= 0x08000000;
		image_write(heap->image, heap->base + heap->layout->interceptor,
			1 + image_random(heap->image, 0xfffffff), 4);
	}
	image_write(heap->image, heap->base + heap->shape->flags, flags | forced, 4);
	image_write(heap->image, heap->base + heap->shape->force_flags, forced, 4);
}

static void write_heap(struct nt_heap *heap)
{
	struct image *image = heap->image;
	const struct made_heap_layout *layout = heap->layout;
	uint64_t base = heap->base;
	image_write(image, base + layout->signature, 0xeeffeeff, 4);
	image_write(image, base + layout->threshold, heap->shape->most_units, 4);
	image_write_ptr(image, base + layout->segment_reserve, FIRST_SEGMENT_BYTES);
	/* HeaderValidateLength follows MaximumAllocationSize and ProcessHeapsListIndex. */
	image_write(image, base + layout->total_free + 2 * ptr_of(heap) + 2, layout->bytes, 2);
	image_write_ptr(image, base + layout->align_round, heap->shape->unit + 7u);
	image_write_ptr(image, base + layout->align_round + ptr_of(heap),
		~(uint64_t)(heap->shape->unit - 1u));
	image_write_ptr(image, base + layout->blocks_index, base + layout->bytes);
	image_write_ptr(image, base + layout->lock, base + layout->bytes + 0x60);
	image_write_ptr(image, base + layout->commit_routine, image_random(image, UINT64_MAX));
	if (layout->pointer_key)
		image_write_ptr(image, base + layout->pointer_key, image_random(image, UINT64_MAX));
	image_list_init(image, base + layout->ucr_list);
	image_list_init(image, base + layout->virtual_blocks);
	image_list_init(image, base + layout->segment_list);
	image_list_init(image, base + layout->free_lists);
}

struct nt_heap *nt_heap_new(struct image *image, bool is_process_heap)
{
	struct nt_heap *heap = calloc(1, sizeof(*heap));
	if (!heap)
		image_die("out of memory");
	const struct profile *profile = image_profile(image);
	heap->image = image;
	heap->layout = made_heap_layout(profile->bits, profile->os_build);
	heap->shape = made_nt_shape(profile->bits);
	heap->has_prefix =
		image_has_ust(image) && !(image_options(image)->nt_global_flag & FLAG_PAGE_HEAP);
	heap->has_tail = !image_is_other_side(image) &&
			 (image_options(image)->nt_global_flag & FLAG_HEAP_TAIL_CHECK);
	heap->is_plain = image_options(image)->is_plain;
	/* The facts do not define the unused byte of an entry before a prefix. */
	heap->prefix_unused = is_process_heap ? NT_UNUSED_PREFIX : 0x42;
	/* HeapCreate's default reservation. */
	uint64_t first_bytes = is_process_heap ? FIRST_SEGMENT_BYTES : GRANULE_BYTES;
	heap->next_segment_bytes = 2 * FIRST_SEGMENT_BYTES;
	heap->base = image_reserve(image, first_bytes, 0);
	heap->segment = heap->base;
	heap->committed = heap->base;
	commit_to(heap, heap->base + heap->layout->first_entry);
	write_heap(heap);
	write_encoding(heap);
	write_flags(heap, is_process_heap);
	write_segment(heap, first_bytes, heap->base + heap->layout->first_entry);
	if (image_chance(image, "own entry", 2)) {
		/* One of Windows' own blocks: in a program's block at least the header's bytes are
		 * unused. */
		write_entry(heap, OWN_BYTES / heap->shape->unit, NT_BUSY, 1);
	}
	image_mark(image, "nt.heap", heap->base);
	return heap;
}

static int by_size(const void *left, const void *right)
{
	const struct nt_place *a = left;
	const struct nt_place *b = right;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

/* Links the free blocks in one list, smallest first. */
static void link_frees(struct nt_heap *heap)
{
	uint64_t units = 0;
	if (heap->free_count > 0)
		qsort(heap->frees, heap->free_count, sizeof(*heap->frees), by_size);
	for (size_t i = 0; i < heap->free_count; i++) {
		image_list_add(heap->image, heap->base + heap->layout->free_lists,
			heap->frees[i].addr + heap->shape->unit);
		units += heap->frees[i].bytes / heap->shape->unit;
	}
	image_write_ptr(heap->image, heap->base + heap->layout->total_free, units);
}

void nt_heap_finish(struct nt_heap *heap)
{
	if (heap->lfh)
		lfh_finish(heap);
	close_segment(heap);
	if (image_chance(heap->image, "segment without blocks", 2)) {
		new_segment(heap);
		close_segment(heap);
	}
	link_frees(heap);
	truth_heap_bytes(heap->image, heap->base, heap->committed_bytes, heap->reserved_bytes);
	free(heap->frees);
	free(heap);
}
