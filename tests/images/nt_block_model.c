/* Blocks of an NT heap: the requested bytes, the prefix with the trace, the checked tail, and big
 * blocks with their own memory. Facts: sections 2.4, 2.5 and 5.3. */
#include "tests/images/nt_model.h"

#include "tests/images/image_inside.h"

/* Header bytes that count as overhead: on x64 only 8 of 16, because the block's last 8 bytes lie in
 * the next header. */
#define HEADER_OVERHEAD 8u

bool nt_block_has_prefix(const struct nt_heap *heap, const struct nt_block *block)
{
	return heap->has_prefix && !block->is_bare;
}

uint32_t nt_units_of(const struct nt_heap *heap, const struct nt_block *block)
{
	const struct made_nt_shape *shape = heap->shape;
	uint64_t bytes = block->requested + HEADER_OVERHEAD;
	if (nt_block_has_prefix(heap, block))
		bytes += shape->prefix_bytes;
	if (heap->has_tail) {
		/* The extra part is the block's last unit, so no byte of the block lies in the next
		 * header. */
		bytes += (uint64_t)shape->header_at + shape->tail_bytes + shape->extra_bytes;
	} else if (block->has_extra) {
		bytes += (uint64_t)shape->header_at + shape->extra_bytes;
	}
	uint64_t units = (bytes + shape->unit - 1) / shape->unit;
	return (uint32_t)(units < 2 ? 2 : units) + block->slack;
}

void nt_write_prefix(
	struct nt_heap *heap, uint64_t entry, const struct nt_block *block, uint64_t unused_bytes)
{
	struct image *image = heap->image;
	const struct made_nt_shape *shape = heap->shape;
	uint64_t header = entry + shape->prefix_header;
	uint64_t trace = block->stack == STACK_NOTHING ? block->trace :
							 image_stack_record(image, block->stack);
	image_write_ptr(image, entry + shape->prefix_trace, trace);
	image_write(image, header, 1, 2);
	image_write(image, header + 2, 0, 2);
	image_write(image, header + 4, unused_bytes, 2);
	image_write(image, header + 6, 2, 1);
	image_write(image, header + 7, NT_UNUSED_PREFIX, 1);
}

/* Fills both ends with a program's bytes, including the bytes in the next header. */
void nt_write_contents(struct nt_heap *heap, uint64_t user, const struct nt_block *block)
{
	uint64_t count = block->requested < 8 ? block->requested : 8;
	if (count > 0) {
		uint64_t word = image_hash(user);
		image_write(heap->image, user, word, count);
		image_write(heap->image, user + block->requested - count, word >> 3, count);
	}
}

static void write_tail(struct nt_heap *heap, uint64_t user, uint64_t requested, uint64_t end)
{
	struct image *image = heap->image;
	const struct made_nt_shape *shape = heap->shape;
	static const uint8_t fill[2] = {0xee, 0xfe};
	uint64_t at = user + requested;
	uint64_t extra = end - shape->extra_bytes;
	image_fill(image, at, 0xab, shape->tail_bytes);
	for (at += shape->tail_bytes; at < extra; at++)
		image_write(image, at, fill[at & 1], 1);
}

static unsigned tail_flags(const struct nt_heap *heap)
{
	return heap->has_tail ? NT_EXTRA | NT_FILL : 0;
}

uint64_t nt_place_block(struct nt_heap *heap, const struct nt_block *block, uint64_t *bytes)
{
	const struct made_nt_shape *shape = heap->shape;
	uint32_t units = nt_units_of(heap, block);
	if (units > shape->most_units)
		return nt_place_big(heap, block, bytes);
	uint64_t all = (uint64_t)units * shape->unit;
	uint64_t unused = all - block->requested;
	bool has_prefix = nt_block_has_prefix(heap, block);
	unsigned said = has_prefix		   ? heap->prefix_unused :
			unused < NT_UNUSED_IN_SLOT ? (unsigned)unused :
						     NT_UNUSED_IN_SLOT;
	unsigned flags = NT_BUSY | tail_flags(heap) | block->user_flags;
	flags |= block->has_extra ? NT_EXTRA : 0;
	uint64_t entry = nt_place_entry(heap, units, flags, said);
	image_mark(heap->image, "nt.block", entry);
	uint64_t user = entry + shape->unit + (has_prefix ? shape->prefix_bytes : 0);
	nt_write_contents(heap, user, block);
	if (heap->has_tail)
		write_tail(heap, user, block->requested, entry + all);
	if (block->has_extra && !heap->has_tail)
		image_write_ptr(heap->image, entry + all - image_ptr_bytes(heap->image), user);
	if (has_prefix)
		nt_write_prefix(heap, entry, block, unused);
	else if (said == NT_UNUSED_IN_SLOT)
		image_write_ptr(heap->image, entry + all - image_ptr_bytes(heap->image), unused);
	if (bytes)
		*bytes = all;
	return user;
}

uint64_t nt_place_big(struct nt_heap *heap, const struct nt_block *block, uint64_t *bytes)
{
	struct image *image = heap->image;
	const struct made_nt_shape *shape = heap->shape;
	bool has_prefix = nt_block_has_prefix(heap, block);
	uint64_t head = shape->big_bytes + (has_prefix ? shape->prefix_bytes : 0u);
	uint64_t tail = heap->has_tail ? shape->tail_bytes : 0u;
	uint64_t commit =
		(head + block->requested + tail + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	uint64_t place = image_reserve(image, commit, 0);
	image_commit(image, place, commit, IMAGE_READ | IMAGE_WRITE);
	image_list_add(image, heap->base + heap->layout->virtual_blocks, place);
	image_write_ptr(image, place + shape->big_commit, commit);
	image_write_ptr(image, place + shape->big_reserve, commit);
	heap->committed_bytes += commit;
	heap->reserved_bytes += commit;
	uint64_t unused = commit - block->requested;
	uint64_t entry = place + shape->big_entry;
	nt_write_header(heap, entry, (uint32_t)unused, NT_BUSY | NT_INTERNAL | tail_flags(heap), 0,
		0, NT_UNUSED_BIG);
	if (has_prefix) {
		nt_write_prefix(heap, entry, block, unused);
		image_mark(image, "nt.big prefix", entry);
	}
	nt_write_contents(heap, place + head, block);
	image_fill(image, place + head + block->requested, 0xab, tail);
	image_mark(image, "nt.big", place);
	if (bytes)
		*bytes = commit;
	return place + head;
}

uint64_t nt_add_block(struct nt_heap *heap, const struct nt_block *block)
{
	uint64_t bytes;
	uint64_t user = nt_place_block(heap, block, &bytes);
	bool has_stack = nt_block_has_prefix(heap, block);
	truth_block(heap->image, heap->base, user, block->requested, bytes - block->requested,
		has_stack ? block->stack : STACK_NOTHING);
	return user;
}

void nt_add_freed(struct nt_heap *heap, const struct nt_block *block)
{
	uint32_t units = nt_units_of(heap, block);
	nt_add_free(heap, units);
	/* The old contents, including the prefix, remain except for the list's links. */
	if (nt_block_has_prefix(heap, block) && !heap->has_tail) {
		nt_write_prefix(heap, heap->last_entry, block,
			(uint64_t)units * heap->shape->unit - block->requested);
	}
}
