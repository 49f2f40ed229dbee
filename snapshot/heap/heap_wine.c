#include <string.h>

#include "snapshot/heap/heap.h"
#include "snapshot/heap/wine_layout.h"

#define LIST_MAX 10000000 /* entries of one list; more is a cycle */

struct wine_walk {
	struct target *target;
	struct walk *walk;
	struct target_window window;
	uint64_t heap;
};

static const struct wine_layout *const layout = &wine_layout_8_0_x64;

static bool probe(struct target *target, uint64_t addr)
{
	uint32_t signature = 0, magic = 0;

	return !target_u32(target, addr + layout->heap_signature, &signature) &&
	       !target_u32(target, addr + layout->heap_magic, &magic) &&
	       signature == WINE_HEAP_SIGNATURE && magic == WINE_HEAP_MAGIC;
}

struct wine_block {
	uint64_t bytes, tail_bytes;
	bool is_live;
};

/* Takes a block's header apart; NULL or what is wrong with it. */
static const char *block_parse(const unsigned char *header, struct wine_block *block)
{
	unsigned flags = header[2], type = bytes_u16(header + 6);

	block->is_live = false;
	block->bytes = bytes_u16(header);
	block->tail_bytes = header[3];
	if (flags & WINE_BLOCK_FREE) {
		if (type != WINE_TYPE_FREE)
			return "free block of no known type";
		block->bytes += block->tail_bytes << 16;
	} else {
		if (type != WINE_TYPE_USED && type != WINE_TYPE_PENDING)
			return "block of no known type";
		block->is_live = type == WINE_TYPE_USED;
	}
	block->bytes *= layout->block_unit;
	if (!block->bytes)
		return "block of no size";
	if (block->is_live && block->bytes < layout->block_bytes + block->tail_bytes)
		return "block smaller than its tail";
	return NULL;
}

/* A live block lies in [.., end), the committed part; a free one may reach to the reserved end. */
static int walk_subheap(struct wine_walk *wine, uint64_t data, uint64_t end, uint64_t reserved_end)
{
	uint64_t addr = data - (layout->subheap_bytes - layout->subheap_first_block);
	int rc = 0;

	window_range(&wine->window, end);
	/* The last 8 bytes are no block: one starts at end - 16 at the latest. */
	while (!rc && addr <= end - layout->block_unit) {
		const unsigned char *header = window_at(&wine->window, addr, layout->block_bytes);
		struct wine_block block;
		const char *wrong;

		if (!header)
			return walk_broken(wine->walk, addr, "unreadable block");
		wrong = block_parse(header, &block);
		if (!wrong && block.bytes > (block.is_live ? end : reserved_end) - addr)
			wrong = "block beyond its heap's end";
		if (wrong)
			return walk_broken(wine->walk, addr, wrong);
		if (block.is_live) {
			uint64_t overhead = layout->block_bytes + block.tail_bytes;

			rc = walk_add_block(wine->walk, addr + layout->block_bytes,
				block.bytes - overhead, overhead);
		}
		addr += block.bytes;
	}
	return rc;
}

static int subheap(struct wine_walk *wine, uint64_t entry)
{
	struct heap *heap = &wine->walk->heaps[wine->walk->heap_count - 1];
	uint64_t addr = entry - layout->subheap_entry, reserved, data_bytes, owner;
	unsigned char bytes[0x40];

	if (target_read(wine->target, addr, bytes, sizeof(bytes)))
		return walk_broken(wine->walk, addr, "unreadable subheap");
	reserved = bytes_u64(bytes + layout->subheap_block_size);
	data_bytes = bytes_u64(bytes + layout->subheap_data_size);
	owner = bytes_u64(bytes + layout->subheap_heap);
	if (owner != wine->heap)
		return walk_broken(wine->walk, addr, "subheap of another heap");
	if (reserved > UINT64_MAX / 4 || addr > UINT64_MAX / 4 || data_bytes > reserved ||
		data_bytes < layout->block_unit)
		return walk_broken(wine->walk, addr, "subheap of no sound size");
	heap->committed_bytes += layout->subheap_bytes + data_bytes;
	heap->reserved_bytes += layout->subheap_bytes + reserved;
	addr += layout->subheap_bytes;
	return walk_subheap(wine, addr, addr + data_bytes, addr + reserved);
}

static int large(struct wine_walk *wine, uint64_t entry)
{
	struct heap *heap = &wine->walk->heaps[wine->walk->heap_count - 1];
	uint64_t addr = entry - layout->large_entry, data_bytes, block_bytes;
	unsigned char bytes[0x40];

	if (target_read(wine->target, addr, bytes, sizeof(bytes)))
		return walk_broken(wine->walk, addr, "unreadable large block");
	data_bytes = bytes_u64(bytes + layout->large_data_size);
	block_bytes = bytes_u64(bytes + layout->large_block_size);
	if (bytes_u16(bytes + layout->large_block + 6) != WINE_TYPE_LARGE)
		return walk_broken(wine->walk, addr, "large block of no known type");
	if (block_bytes < layout->large_bytes || data_bytes > block_bytes - layout->large_bytes)
		return walk_broken(wine->walk, addr, "large block of no sound size");
	heap->committed_bytes += block_bytes;
	heap->reserved_bytes += block_bytes;
	return walk_add_block(
		wine->walk, addr + layout->large_bytes, data_bytes, block_bytes - data_bytes);
}

/* Calls each() for every entry of a doubly linked list whose head is in the target. */
static int walk_list(
	struct wine_walk *wine, uint64_t head, int (*each)(struct wine_walk *wine, uint64_t entry))
{
	uint64_t entry = head, previous = head, back;
	int rc = 0;

	for (unsigned count = 0; !rc; count++) {
		if (target_u64(wine->target, entry, &entry))
			return walk_broken(wine->walk, entry, "unreadable list");
		if (entry == head)
			return 0;
		if (count == LIST_MAX || target_u64(wine->target, entry + 8, &back) ||
			back != previous)
			return walk_broken(wine->walk, entry, "broken list");
		previous = entry;
		rc = each(wine, entry);
	}
	return rc;
}

static int walk_heap(struct wine_walk *wine, uint64_t addr)
{
	struct heap heap = {.addr = addr, .kind = heap_walker_wine.kind};
	uint64_t lock_owner = 0;
	int rc;

	if (!probe(wine->target, addr))
		return walk_broken(wine->walk, addr, "no heap");
	if (!target_u64(wine->target, addr + layout->heap_lock_owner, &lock_owner) && lock_owner)
		wine->walk->busy_count++;
	rc = walk_add_heap(wine->walk, &heap);
	wine->heap = addr;
	if (!rc)
		rc = walk_list(wine, addr + layout->heap_subheaps, subheap);
	if (!rc)
		rc = walk_list(wine, addr + layout->heap_larges, large);
	return rc;
}

static int next_heap(struct wine_walk *wine, uint64_t entry)
{
	if (wine->walk->heap_count >= HEAPS_MAX)
		return walk_broken(wine->walk, entry, "too many heaps");
	return walk_heap(wine, entry - layout->heap_entry);
}

static int walk_all(struct target *target, uint64_t first_heap, struct walk *walk, struct err *err)
{
	struct wine_walk wine = {.target = target, .walk = walk};
	int rc = window_init(&wine.window, target);

	(void)err;
	if (!rc)
		rc = walk_heap(&wine, first_heap);
	if (!rc)
		rc = walk_list(&wine, first_heap + layout->heap_entry, next_heap);
	window_release(&wine.window);
	return rc;
}

const struct heap_walker heap_walker_wine = {
	.kind = "wine",
	.probe = probe,
	.walk = walk_all,
};
