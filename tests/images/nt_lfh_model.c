/* The low fragmentation front end of an NT heap: facts, section 2.6. Its blocks lie in containers,
 * which are chunks of the back end. A subsegment describes each container. Subsegments lie in
 * zones, which are also chunks. */
#include "tests/images/nt_model.h"

#include <stdlib.h>

#include "tests/images/image_inside.h"

#define LFH_BLOCK 0x80u
#define LFH_PREFIX 0x40u
#define LFH_MOST_BYTES 0x4000u
#define HEADER_OVERHEAD 8u
#define ZONE_BYTES 0x800u
#define FRONT_END_LFH 2
#define NO_FREE_BLOCK 0xffffu

struct lfh {
	const struct made_lfh_layout *layout;
	uint64_t addr; /* address of the _LFH_HEAP */
	uint64_t zone, next, limit; /* place of the next subsegment */
	uint32_t used; /* number of used subsegments in the zone */
};

struct container {
	uint64_t blocks; /* address of the container's _HEAP_USERDATA_HEADER */
	uint64_t subsegment;
	uint32_t first, stride, units;
	unsigned size_index; /* the container has 2^size_index bytes */
	unsigned block_count, free_count;
	uint32_t last_free; /* units from the container's start */
};

uint32_t lfh_units_of(const struct nt_heap *heap, uint64_t requested)
{
	uint64_t bytes = requested + HEADER_OVERHEAD;
	bytes += heap->has_prefix ? heap->shape->prefix_bytes : 0;
	if (bytes > LFH_MOST_BYTES)
		return 0;
	uint64_t step = heap->shape->unit;
	for (uint64_t from = 16 * (uint64_t)heap->shape->unit; bytes > 2 * from; from *= 2)
		step *= 2;
	uint64_t units = (bytes + step - 1) / step * step / heap->shape->unit;
	return (uint32_t)(units < 2 ? 2 : units);
}

static void end_zone(struct nt_heap *heap)
{
	struct lfh *lfh = heap->lfh;
	if (!lfh->zone)
		return;
	uint64_t at = lfh->zone + lfh->layout->zone_end;
	if (lfh->layout->is_zone_end_index)
		image_write(heap->image, at, lfh->used, 4);
	else
		image_write_ptr(heap->image, at, lfh->next);
	if (lfh->layout->zone_limit)
		image_write_ptr(heap->image, lfh->zone + lfh->layout->zone_limit, lfh->limit);
}

/* Places a zone in a chunk of the heap, or, since Windows 8, sometimes in its own memory. */
static uint64_t place_zone(struct nt_heap *heap)
{
	struct image *image = heap->image;
	if (image_profile(image)->os_build < 9200 || !image_chance(image, "zones outside", 2))
		return nt_add_internal(heap, ZONE_BYTES);
	uint64_t zone = image_reserve(image, ZONE_BYTES, 0);
	image_commit(image, zone, ZONE_BYTES, IMAGE_READ | IMAGE_WRITE);
	return zone;
}

static void new_zone(struct nt_heap *heap)
{
	struct lfh *lfh = heap->lfh;
	end_zone(heap);
	lfh->zone = place_zone(heap);
	lfh->next = lfh->zone + lfh->layout->zone_first;
	lfh->limit = lfh->zone + ZONE_BYTES;
	lfh->used = 0;
	image_list_add(heap->image, lfh->addr + lfh->layout->zones, lfh->zone);
	image_mark(heap->image, "lfh.zone", lfh->zone);
}

static uint64_t take_slot(struct nt_heap *heap)
{
	struct lfh *lfh = heap->lfh;
	if (!lfh->zone || lfh->limit - lfh->next < lfh->layout->subsegment_bytes)
		new_zone(heap);
	uint64_t subsegment = lfh->next;
	lfh->next += lfh->layout->subsegment_bytes;
	lfh->used++;
	return subsegment;
}

/* Some slots of a zone are unused: they were never filled, or their containers were freed. */
static uint64_t new_subsegment(struct nt_heap *heap)
{
	if (image_random(heap->image, 10) == 0) {
		uint64_t unused = take_slot(heap);
		uint64_t size = image_random(heap->image, 2) * 4;
		image_write(heap->image, unused + heap->lfh->layout->block_size, size, 2);
	}
	return take_slot(heap);
}

struct lfh *lfh_new(struct nt_heap *heap)
{
	struct image *image = heap->image;
	struct lfh *lfh = calloc(1, sizeof(*lfh));
	if (!lfh)
		image_die("out of memory");
	const struct profile *profile = image_profile(image);
	lfh->layout = made_lfh_layout(profile->bits, profile->os_build);
	if (profile->os_build < 9200) {
		lfh->addr = nt_add_internal(heap, lfh->layout->heap_bytes);
	} else {
		lfh->addr = image_reserve(image, lfh->layout->heap_bytes, 0);
		image_commit(image, lfh->addr, lfh->layout->heap_bytes, IMAGE_READ | IMAGE_WRITE);
	}
	image_list_init(image, lfh->addr + lfh->layout->zones);
	image_write_ptr(image, lfh->addr + lfh->layout->heap, heap->base);
	image_write_ptr(image, heap->base + heap->layout->front_end, lfh->addr);
	image_write(image, heap->base + heap->layout->front_end_type, FRONT_END_LFH, 1);
	image_mark(image, "lfh.heap", lfh->addr);
	return lfh;
}

void lfh_finish(struct nt_heap *heap)
{
	end_zone(heap);
	free(heap->lfh);
	heap->lfh = NULL;
}

/* Returns the offset of the first of block_count blocks: facts, section 2.6. */
static uint32_t first_offset(const struct nt_heap *heap, unsigned block_count)
{
	const struct made_lfh_layout *layout = heap->lfh->layout;
	uint32_t unit = heap->shape->unit;
	if (!layout->bitmap)
		return layout->blocks_bytes;
	uint32_t head = unit == 16 ? 0x34 : 0x1c;
	return (head + (block_count + 31) / 32 * 4 + unit - 1) / unit * unit;
}

static void write_bitmap(struct nt_heap *heap, const struct container *container)
{
	const struct made_lfh_layout *layout = heap->lfh->layout;
	if (layout->bitmap) {
		uint64_t at = container->blocks + layout->bitmap;
		image_write(heap->image, at, container->block_count, 4);
		image_write_ptr(heap->image, container->blocks + layout->bitmap_buffer,
			container->blocks + layout->bitmap_data);
	}
}

static void write_container(struct nt_heap *heap, const struct container *container)
{
	struct image *image = heap->image;
	const struct made_lfh_layout *layout = heap->lfh->layout;
	uint64_t blocks = container->blocks;
	image_write_ptr(image, blocks, container->subsegment);
	image_write(image, blocks + layout->blocks_size_index, container->size_index, 1);
	image_write(image, blocks + layout->blocks_signature, 0xf0e0d0c0, 4);
	if (layout->offsets) {
		uint32_t offsets = container->first | container->stride << 16;
		if (layout->are_offsets_coded) {
			offsets ^=
				(uint32_t)blocks ^ (uint32_t)heap->lfh->addr ^ image_lfh_key(image);
		}
		image_write(image, blocks + layout->offsets, offsets, 4);
	}
	write_bitmap(heap, container);
	image_mark(image, "lfh.container", blocks);
}

static void write_subsegment(struct nt_heap *heap, const struct container *container)
{
	struct image *image = heap->image;
	const struct made_lfh_layout *layout = heap->lfh->layout;
	uint64_t at = container->subsegment;
	image_write_ptr(
		image, at, heap->lfh->addr + 0x400 + 8 * (uint64_t)(container->units & 0x7f));
	image_write_ptr(image, at + layout->user_blocks, container->blocks);
	image_write(image, at + layout->exchange, container->free_count, 2);
	/* On Windows 7 the first free block. On later versions the block where the search for a
	 * free block starts. */
	image_write(image, at + layout->exchange + 2, container->last_free & 0x7fff, 2);
	image_write(image, at + layout->block_size, container->units, 2);
	image_write(image, at + layout->block_count, container->block_count, 2);
	image_write(image, at + layout->size_index, container->units & 0x7f, 1);
	image_mark(image, "lfh.subsegment", at);
}

static void write_block_header(struct nt_heap *heap, const struct container *container,
	unsigned number, uint64_t entry, unsigned unused)
{
	struct image *image = heap->image;
	unsigned shift = heap->shape->unit == 16 ? 4 : 3;
	uint32_t code = (uint32_t)heap->base ^ image_lfh_key(image) ^ (uint32_t)(entry >> shift);
	if (heap->lfh->layout->is_header_coded)
		code ^= (uint32_t)((entry - container->blocks) >> shift << 16);
	else
		code ^= (uint32_t)container->subsegment;
	uint64_t at = entry + heap->shape->header_at;
	image_write(image, at, code, 4);
	image_write(image, at + 4, (number & 0xff) << 8, 2);
	image_write(image, at + 6, 0, 1);
	image_write(image, at + 7, unused, 1);
}

static void write_free_block(
	struct nt_heap *heap, struct container *container, unsigned number, uint64_t entry)
{
	write_block_header(heap, container, number, entry, LFH_BLOCK);
	/* A freed block usually keeps its old contents, including a prefix. */
	if (heap->has_prefix && number % 3 == 0) {
		nt_write_prefix(
			heap, entry, &(struct nt_block){.stack = 0}, heap->shape->prefix_header);
	}
	if (!heap->lfh->layout->bitmap) {
		image_write(heap->image, entry + heap->shape->unit,
			container->free_count ? container->last_free : NO_FREE_BLOCK, 2);
	}
	container->last_free = (uint32_t)(entry - container->blocks) / heap->shape->unit;
	container->free_count++;
}

static void write_busy_block(struct nt_heap *heap, const struct container *container,
	unsigned number, uint64_t entry, const struct nt_block *block)
{
	struct image *image = heap->image;
	const struct made_nt_shape *shape = heap->shape;
	bool has_prefix = nt_block_has_prefix(heap, block);
	uint32_t unused = container->stride - (uint32_t)block->requested;
	unsigned said = has_prefix		   ? LFH_PREFIX | 2 :
			unused < NT_UNUSED_IN_SLOT ? unused :
						     NT_UNUSED_IN_SLOT;
	uint64_t user = entry + shape->unit + (has_prefix ? shape->prefix_bytes : 0);
	write_block_header(heap, container, number, entry, LFH_BLOCK | said);
	nt_write_contents(heap, user, block);
	if (has_prefix)
		nt_write_prefix(heap, entry, block, unused);
	else if (said == NT_UNUSED_IN_SLOT)
		image_write_ptr(image, entry + container->stride - image_ptr_bytes(image), unused);
	uint16_t bitmap = heap->lfh->layout->bitmap_data;
	if (bitmap) {
		uint64_t at = container->blocks + bitmap + number / 8;
		image_write(image, at, image_get(image, at, 1) | 1u << number % 8, 1);
	}
	truth_block(image, heap->base, user, block->requested, unused,
		has_prefix ? block->stack : STACK_NOTHING);
}

/* Places a container's chunk; returns its bytes. Sometimes an inaccessible page follows. The
 * padding before that page is also usable. */
static uint64_t place_container(struct nt_heap *heap, struct container *container)
{
	uint64_t room = (uint64_t)1 << container->size_index;
	uint16_t guard = heap->lfh->layout->guard;
	bool has_guard = image_random(heap->image, 6) == 0 && guard;
	if (!has_guard) {
		container->blocks = nt_add_internal(heap, room);
		return room;
	}
	uint64_t blocks = nt_next_entry(heap, room + 4 * PAGE_BYTES) + heap->shape->unit;
	uint64_t end = (blocks + room + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (nt_add_internal(heap, end + PAGE_BYTES - blocks) != blocks)
		image_die("a container is not where it was to be");
	image_write(heap->image, blocks + guard, 1, 1);
	image_write(heap->image, blocks + guard + 1, end - (blocks + room), 2);
	nt_add_guard(heap, end);
	container->blocks = blocks;
	return end - blocks;
}

/* On x64 the last 10h bytes are not used. */
static unsigned blocks_that_fit(const struct nt_heap *heap, uint32_t stride, uint64_t room)
{
	room -= heap->shape->unit == 16 ? 16 : 0;
	unsigned count = (unsigned)(room / stride);
	while (first_offset(heap, count) + (uint64_t)count * stride > room)
		count--;
	return count;
}

void lfh_add_container(
	struct nt_heap *heap, uint32_t units, unsigned size_index, lfh_fill *fill, void *context)
{
	struct container container = {.units = units,
		.stride = units * heap->shape->unit,
		.size_index = size_index,
		.subsegment = new_subsegment(heap)};
	uint64_t room = place_container(heap, &container);
	truth_container(
		heap->image, heap->base, "lfh", container.blocks, heap->cursor - container.blocks);
	container.block_count = blocks_that_fit(heap, container.stride, room);
	container.first = first_offset(heap, container.block_count);
	write_container(heap, &container);
	uint32_t overhead =
		heap->has_prefix ? heap->shape->prefix_bytes + HEADER_OVERHEAD : HEADER_OVERHEAD;
	for (unsigned i = 0; i < container.block_count; i++) {
		uint64_t entry =
			container.blocks + container.first + (uint64_t)i * container.stride;
		struct nt_block block = {.stack = STACK_NOTHING};
		if (fill(context, i, container.stride - overhead, &block))
			write_busy_block(heap, &container, i, entry, &block);
		else
			write_free_block(heap, &container, i, entry);
	}
	write_subsegment(heap, &container);
}
