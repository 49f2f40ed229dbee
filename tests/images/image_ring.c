/*
 * The ring of heaps, which exists since build 26100, where the PEB lists only the process heap.
 * Facts: windows-2026, section A. The ring's head lies in ntdll's data and has no heap. Each heap
 * has an entry, a _RTLP_PROCESS_HEAP_DESCRIPTOR, in a block of the process heap. The heap's
 * UserContext points to the entry. Models provide blocks for entries and add their heaps;
 * image_make_rings() links all heaps at the end.
 *
 * Inferred: the offsets on x86; the values of Flags and of the lock, which are 0; the order of the
 * entries, which is the order of creation.
 */
#include "tests/images/image_inside.h"

#define FIRST_BUILD 26100
#define DATA_RING 0x1000u /* free space in ntdll's data between the PEB's list and the globals */
#define RING_PLACES 16

/* Two links, Heap, Flags, and PseudoGlobalLock {Count, Owner, SRWLOCK}. */
static unsigned entry_bytes(const struct image *image)
{
	return image->bits == 64 ? 0x30 : 0x1c;
}

void image_place_ring(struct image *image, uint64_t ntdll_data)
{
	struct heap_ring *ring = &image_at_side(image)->ring;
	if (image->profile->os_build < FIRST_BUILD)
		return;
	ring->head = ntdll_data + DATA_RING + 0x40 * image_chance(image, "ring head", RING_PLACES);
	image_list_init(image, ring->head);
}

struct ring_wish image_ring_wish(struct image *image)
{
	const struct heap_ring *ring = &image_at_side(image)->ring;
	if (!ring->head || ring->block_count)
		return (struct ring_wish){0};
	/* Includes a spare block, which looks like the entry of a destroyed heap. */
	return (struct ring_wish){image->options.most_heaps + 1, entry_bytes(image)};
}

void image_ring_offer(struct image *image, uint64_t block)
{
	struct heap_ring *ring = &image_at_side(image)->ring;
	ring->blocks = image_grow(
		ring->blocks, &ring->block_capacity, ring->block_count, sizeof(*ring->blocks));
	ring->blocks[ring->block_count++] = block;
}

void image_ring_add(struct image *image, uint64_t heap, uint64_t user_context)
{
	struct heap_ring *ring = &image_at_side(image)->ring;
	if (!ring->head)
		return;
	ring->heaps = image_grow(
		ring->heaps, &ring->heap_capacity, ring->heap_count, sizeof(*ring->heaps));
	ring->heaps[ring->heap_count++] = (struct ring_heap){heap, user_context};
}

static void write_entry(struct image *image, uint64_t entry, const struct ring_heap *heap)
{
	const struct heap_ring *ring = &image_at_side(image)->ring;
	image_fill(image, entry, 0, entry_bytes(image));
	image_list_add(image, ring->head, entry);
	image_write_ptr(image, entry + 2ull * image_ptr_bytes(image), heap->heap);
	if (heap->user_context)
		image_write_ptr(image, heap->user_context, entry);
}

/* Marks the places that the breaks damage. Breaks apply only to the process's own side. */
static void mark_entry(struct image *image, uint64_t entry, const struct ring_heap *heap)
{
	if (image_is_other_side(image))
		return;
	image_mark(image, "ring entry", entry);
	image_mark(image, "ring context", heap->user_context);
	if (heap->heap == image_process_heap(image))
		image_mark(image, "ring process context", heap->user_context);
}

static void make_ring(struct image *image)
{
	const struct heap_ring *ring = &image_at_side(image)->ring;
	/* On x86, if no NT heap exists, no block is available, and the ring stays empty. */
	if (!ring->block_count)
		return;
	if (ring->heap_count >= ring->block_count)
		image_die("too few blocks for the ring of heaps");
	for (size_t i = 0; i < ring->heap_count; i++) {
		write_entry(image, ring->blocks[i], &ring->heaps[i]);
		mark_entry(image, ring->blocks[i], &ring->heaps[i]);
	}
	if (!image_is_other_side(image))
		image_mark(image, "ring spare block", ring->blocks[ring->heap_count]);
}

void image_make_rings(struct image *image)
{
	unsigned bits = image->bits;
	for (unsigned side = 32; side <= 64; side += 32) {
		image_side(image, side);
		if (image_at_side(image)->ring.head)
			make_ring(image);
	}
	image_side(image, bits);
}
