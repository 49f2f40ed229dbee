/*
 * The walker of Wine's heaps. The process heap is the head of a ring of all heaps. Each heap has a
 * list of subheaps, which are chains of blocks, and a list of large blocks. Since Wine 9, a block
 * may be a group: 31 blocks of one size, which are allocated and freed without holding the heap's
 * lock. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/wine_layout.h"

/* Limits for a damaged or hostile process: number of entries in all lists together, and number of
 * subheaps. */
#define ENTRIES_MAX ((size_t)1 << 20)
#define SUBHEAPS_MAX ((size_t)2 * HEAPS_MAX)
#define STRUCT_BYTES_MAX 0x100 /* largest structure that is read at once */

struct wine_range {
	uint64_t addr, end;
};

struct wine_walk {
	struct target *target;
	const struct wine_layout *layout;
	struct walk *walk;
	struct memory *memory; /* cache of the target's memory */
	uint64_t heap;
	size_t entry_count;
	uint64_t seen_bytes;
	struct wine_range *subheaps; /* sorted by address, without overlaps */
	size_t subheap_count, subheap_cap;
};

static bool is_heap(const struct wine_layout *layout, const unsigned char *bytes)
{
	return bytes_u32(bytes + layout->heap_signature) == WINE_HEAP_SIGNATURE &&
	       bytes_u32(bytes + layout->heap_magic) == WINE_HEAP_MAGIC;
}

static bool has_first_subheap(
	struct target *target, const struct wine_layout *layout, uint64_t addr)
{
	uint64_t subheap = addr + layout->heap_bytes - layout->subheap_bytes;
	unsigned char bytes[8];

	return !target_read(target, subheap + layout->subheap_heap, bytes, layout->bits / 8) &&
	       bytes_ptr(bytes, layout->bits) == addr;
}

/*
 * Returns the layout of the heap at `addr` in a process of the given bitness, or NULL. The
 * signature and the magic must be present, and the first subheap must point to the heap. If only
 * the first subheap is damaged, returns the layout that matches the magic.
 */
static const struct wine_layout *find_layout(struct target *target, uint64_t addr, unsigned bits)
{
	const struct wine_layout *damaged = NULL;
	unsigned char bytes[STRUCT_BYTES_MAX];

	for (size_t i = 0; i < WINE_LAYOUT_COUNT; i++) {
		const struct wine_layout *layout = &wine_layouts[i];

		if (layout->bits != bits ||
			target_read(target, addr, bytes, layout->heap_read_bytes) ||
			!is_heap(layout, bytes))
			continue;
		if (has_first_subheap(target, layout, addr))
			return layout;
		damaged = layout;
	}
	return damaged;
}

bool wine_heap_is_ring(struct target *target, uint64_t process_heap, unsigned bits)
{
	return find_layout(target, process_heap, bits);
}

static uint64_t pointer_at(const struct wine_walk *wine, const unsigned char *bytes)
{
	return bytes_ptr(bytes, wine->layout->bits);
}

/* Counts `bytes` bytes at `addr`. Returns false if they lie outside the address space, or if the
 * total exceeds its size. */
static bool claim(struct wine_walk *wine, uint64_t addr, uint64_t bytes)
{
	if (addr > TARGET_SPACE_BYTES || bytes > TARGET_SPACE_BYTES - addr ||
		bytes > TARGET_SPACE_BYTES - wine->seen_bytes)
		return false;
	wine->seen_bytes += bytes;
	return true;
}

struct wine_block {
	uint64_t bytes, tail_bytes;
	unsigned flags, index; /* index of a block in its group */
	bool is_live;
};

/* Parses a header's type and fields in the format of Wine 8.0. Returns false if the type is
 * unknown. */
static bool parse_8(const unsigned char *header, struct wine_block *block, bool *is_free)
{
	unsigned type = bytes_u16(header + 6);

	block->flags = header[2];
	block->tail_bytes = header[3];
	block->is_live = type == WINE_TYPE_USED_8;
	*is_free = type == WINE_TYPE_FREE_8;
	return block->is_live || *is_free || type == WINE_TYPE_PENDING_8;
}

/* Parses a header's type and fields in the format of Wine 9.0 and later. */
static bool parse_9(const unsigned char *header, struct wine_block *block, bool *is_free)
{
	unsigned type = header[6];

	block->flags = header[7];
	block->tail_bytes = bytes_u16(header + 2);
	block->index = bytes_u16(header + 4);
	block->is_live = type == WINE_TYPE_USED_9;
	*is_free = type == WINE_TYPE_FREE_9;
	return block->is_live || *is_free || type == WINE_TYPE_PENDING_9;
}

/* Parses a block's header. Returns NULL, or the reason why the header is invalid. */
static const char *block_parse(
	const struct wine_layout *layout, const unsigned char *header, struct wine_block *block)
{
	bool is_free;
	bool is_known = layout->has_groups ? parse_9(header, block, &is_free) :
					     parse_8(header, block, &is_free);

	block->bytes = bytes_u16(header);
	if (block->flags & WINE_BLOCK_FREE) {
		if (!is_known || !is_free)
			return "free block of unknown type";
		block->bytes += block->tail_bytes << 16;
	} else if (!is_known || is_free) {
		return "block of unknown type";
	}
	block->bytes *= layout->block_unit;
	if (!block->bytes)
		return "block without a size";
	if (block->is_live && block->bytes < layout->block_bytes + block->tail_bytes)
		return "block smaller than its tail";
	return NULL;
}

/* ---------------------------------------------------------------- groups */

/* Parses the header of block number `index` in a group. Returns NULL, or the reason why the header
 * is invalid. */
static const char *group_block_parse(const struct wine_walk *wine, const unsigned char *header,
	unsigned number, uint64_t stride, struct wine_block *block)
{
	bool is_free;

	if (!parse_9(header, block, &is_free) || !(block->flags & WINE_BLOCK_GROUP) ||
		block->index != number)
		return "block of unknown type in a group";
	/* In a group, free blocks have the same size as all other blocks. */
	block->bytes = bytes_u16(header) * (uint64_t)wine->layout->block_unit;
	if (block->bytes != stride)
		return "block in a group for another size";
	if (block->is_live && block->bytes < wine->layout->block_bytes + block->tail_bytes)
		return "block smaller than its tail";
	return NULL;
}

/*
 * Adds the live blocks of the group at `addr`, which is in a block with `bytes` bytes of data.
 * While a thread is creating a group, only the headers at its beginning have been written, and all
 * of these blocks are free. Such a group is valid and has no live blocks. The type in a block's
 * header shows whether the block is live. The group also has a bit for each block, but this bit is
 * not used, because it changes earlier or later than the type.
 */
static int walk_group(struct wine_walk *wine, uint64_t addr, uint64_t bytes)
{
	const struct wine_layout *layout = wine->layout;
	const unsigned char *header =
		memory_at(wine->memory, addr + layout->group_first_block, layout->block_bytes);
	uint64_t stride = header ? bytes_u16(header) * (uint64_t)layout->block_unit : 0;
	const char *wrong = NULL;
	uint64_t wrong_addr = 0;
	unsigned live_count = 0;
	int rc;

	if (!stride || bytes < layout->group_first_block ||
		stride > (bytes - layout->group_first_block) / WINE_GROUP_BLOCKS)
		return walk_broken(wine->walk, addr, "group of an impossible size");
	rc = walk_add_container(wine->walk, addr, bytes, CONTAINER_LFH);
	for (unsigned i = 0; !rc && i < WINE_GROUP_BLOCKS; i++) {
		uint64_t at = addr + layout->group_first_block + i * stride;
		struct wine_block block;
		const char *fault;

		header = memory_at(wine->memory, at, layout->block_bytes);
		fault = header ? group_block_parse(wine, header, i, stride, &block) :
				 "unreadable block of a group";
		if (fault && !wrong) {
			wrong = fault;
			wrong_addr = at;
		}
		if (fault || !block.is_live)
			continue;
		live_count++;
		rc = walk_add_block(wine->walk, at + layout->block_bytes,
			stride - layout->block_bytes - block.tail_bytes,
			layout->block_bytes + block.tail_bytes, 0);
	}
	if (!rc && wrong && live_count)
		return walk_broken(wine->walk, wrong_addr, wrong);
	return rc;
}

/* ---------------------------------------------------------------- subheaps and large blocks */

/* Walks the blocks of a subheap. A live block must be in the committed part, below `end`. A free
 * block may extend to reserved_end. */
static int walk_subheap(struct wine_walk *wine, uint64_t data, uint64_t end, uint64_t reserved_end)
{
	const struct wine_layout *layout = wine->layout;
	uint64_t addr = data - (layout->subheap_bytes - layout->subheap_first_block);
	int rc = 0;

	memory_within(wine->memory, addr, end);
	while (!rc && addr <= end - WINE_BLOCKS_END) {
		const unsigned char *header = memory_at(wine->memory, addr, layout->block_bytes);
		struct wine_block block;
		const char *wrong;
		uint64_t overhead;

		if (!header)
			return walk_broken(wine->walk, addr, "unreadable block");
		wrong = block_parse(layout, header, &block);
		if (!wrong && block.bytes > (block.is_live ? end : reserved_end) - addr)
			wrong = "block beyond its heap's end";
		if (wrong)
			return walk_broken(wine->walk, addr, wrong);
		overhead = layout->block_bytes + block.tail_bytes;
		if (block.is_live && layout->has_groups && block.flags & WINE_BLOCK_GROUP)
			rc = walk_group(wine, addr + layout->block_bytes, block.bytes - overhead);
		else if (block.is_live)
			rc = walk_add_block(wine->walk, addr + layout->block_bytes,
				block.bytes - overhead, overhead, 0);
		addr += block.bytes;
	}
	return rc;
}

/* Adds the range of a subheap. Sets *is_fresh to false if the range overlaps an earlier one.
 * Returns 0 or -ERR_NOMEM. */
static int add_subheap(struct wine_walk *wine, uint64_t addr, uint64_t end, bool *is_fresh)
{
	size_t low = 0, high = wine->subheap_count;

	if (array_try_grow((void **)&wine->subheaps, &wine->subheap_cap, wine->subheap_count,
		    sizeof(*wine->subheaps)))
		return -ERR_NOMEM;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (wine->subheaps[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	*is_fresh = low == wine->subheap_count || wine->subheaps[low].addr >= end;
	if (!*is_fresh)
		return 0;
	memmove(&wine->subheaps[low + 1], &wine->subheaps[low],
		(wine->subheap_count++ - low) * sizeof(*wine->subheaps));
	wine->subheaps[low] = (struct wine_range){addr, end};
	return 0;
}

/* Returns the number of bytes between the start of the region and a subheap's data. The first
 * subheap follows the other fields of its heap; every other subheap begins a region. */
static uint64_t bytes_before_data(const struct wine_walk *wine, uint64_t addr)
{
	const struct wine_layout *layout = wine->layout;
	bool is_first = addr == wine->heap + layout->heap_bytes - layout->subheap_bytes;

	return is_first ? layout->heap_bytes : layout->subheap_bytes;
}

static int subheap(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes)
{
	const struct wine_layout *layout = wine->layout;
	struct heap *heap = &wine->walk->heaps[wine->walk->heap_count - 1];
	/* The two stored sizes have different origins: the reserved bytes are counted from the
	 * first block, the committed bytes from the end of SUBHEAP. */
	uint64_t blocks = layout->subheap_bytes - layout->subheap_first_block;
	uint64_t reserved = pointer_at(wine, bytes + layout->subheap_block_size) - blocks;
	uint64_t committed = pointer_at(wine, bytes + layout->subheap_data_size);
	uint64_t data = addr + layout->subheap_bytes, before = bytes_before_data(wine, addr);
	bool is_fresh;
	int rc;

	if (pointer_at(wine, bytes + layout->subheap_heap) != wine->heap)
		return walk_broken(wine->walk, addr, "subheap of another heap");
	if (committed > reserved || committed < WINE_BLOCKS_END || data < addr ||
		!claim(wine, data, reserved))
		return walk_broken(wine->walk, addr, "subheap of an invalid size");
	if (wine->subheap_count == SUBHEAPS_MAX)
		return walk_broken(wine->walk, addr, "too many subheaps");
	rc = walk_add_own(wine->walk, addr);
	rc = rc ? rc : add_subheap(wine, addr, data + reserved, &is_fresh);
	if (rc)
		return rc;
	if (!is_fresh)
		return walk_broken(wine->walk, addr, "subheap inside another");
	heap->committed_bytes += before + committed;
	heap->reserved_bytes += before + reserved;
	rc = walk_add_container(wine->walk, data - before, before + committed, CONTAINER_SEGMENT);
	return rc ? rc : walk_subheap(wine, data, data + committed, data + reserved);
}

static int large(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes)
{
	const struct wine_layout *layout = wine->layout;
	struct heap *heap = &wine->walk->heaps[wine->walk->heap_count - 1];
	const unsigned char *header = bytes + layout->large_block;
	bool is_large = layout->has_groups ? header[6] == WINE_TYPE_LARGE_9 :
					     bytes_u16(header + 6) == WINE_TYPE_LARGE_8;
	uint64_t data_bytes = pointer_at(wine, bytes + layout->large_data_size);
	/* The stored size is counted from the block's header, not from the start of the block's
	 * region. */
	uint64_t block_bytes = pointer_at(wine, bytes + layout->large_block_size);
	uint64_t region_bytes = layout->large_block + block_bytes;

	if (!is_large)
		return walk_broken(wine->walk, addr, "large block of unknown type");
	if (block_bytes < layout->block_bytes || block_bytes > TARGET_SPACE_BYTES ||
		data_bytes > block_bytes - layout->block_bytes || !claim(wine, addr, region_bytes))
		return walk_broken(wine->walk, addr, "large block of an impossible size");
	heap->committed_bytes += region_bytes;
	heap->reserved_bytes += region_bytes;
	if (layout->has_groups && header[7] & WINE_BLOCK_GROUP) {
		memory_within(wine->memory, addr, addr + region_bytes);
		return walk_group(wine, addr + layout->large_bytes, data_bytes);
	}
	return walk_add_block(
		wine->walk, addr + layout->large_bytes, data_bytes, region_bytes - data_bytes, 0);
}

/* A doubly linked list that connects structures. */
struct list {
	uint64_t head; /* address */
	uint64_t next, back; /* links of the head */
	uint32_t entry; /* offset of the links in a structure */
	uint32_t bytes;
	int (*each)(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes);
};

/* Calls each() for every structure in the list. Each back link must point to the previous entry, so
 * no entry is visited twice. */
static int walk_list(struct wine_walk *wine, const struct list *list)
{
	unsigned char bytes[STRUCT_BYTES_MAX];
	uint64_t next = list->next, previous = list->head;
	int rc = 0;

	while (!rc && next != list->head) {
		uint64_t entry = next, addr = entry - list->entry;

		if (wine->entry_count++ == ENTRIES_MAX)
			return walk_broken(wine->walk, entry, "endless lists");
		if (target_read(wine->target, addr, bytes, list->bytes))
			return walk_broken(wine->walk, entry, "unreadable list");
		if (pointer_at(wine, bytes + list->entry + wine->layout->bits / 8) != previous)
			return walk_broken(wine->walk, entry, "broken list");
		next = pointer_at(wine, bytes + list->entry);
		previous = entry;
		rc = list->each(wine, addr, bytes);
	}
	if (!rc && list->back != previous)
		return walk_broken(wine->walk, list->head, "list that ends too early");
	return rc;
}

static bool is_locked(const struct wine_walk *wine, uint64_t addr, const unsigned char *heap_bytes)
{
	const struct wine_layout *layout = wine->layout;
	unsigned char owner[8];

	if (bytes_u32(heap_bytes + layout->heap_lock_count) == UINT32_MAX)
		return false;
	return !wine->target->exit_thread ||
	       target_read(wine->target, addr + layout->heap_lock_owner, owner, layout->bits / 8) ||
	       target_lock_is_held(wine->target, bytes_ptr(owner, layout->bits));
}

static struct list list_at(const struct wine_walk *wine, uint64_t addr,
	const unsigned char *heap_bytes, uint32_t offset)
{
	return (struct list){.head = addr + offset,
		.next = pointer_at(wine, heap_bytes + offset),
		.back = pointer_at(wine, heap_bytes + offset + wine->layout->bits / 8)};
}

static int walk_heap(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes)
{
	const struct wine_layout *layout = wine->layout;
	struct heap heap = {.addr = addr,
		.bits = layout->bits,
		.kind = "wine",
		.layout = layout->name,
		.has_loose_sizes = layout->has_groups};
	struct list subheaps = list_at(wine, addr, bytes, layout->heap_subheaps);
	struct list larges = list_at(wine, addr, bytes, layout->heap_larges);
	int rc;

	if (!is_heap(layout, bytes))
		return walk_broken(wine->walk, addr, "not a heap");
	if (wine->walk->heap_count >= HEAPS_MAX)
		return walk_broken(wine->walk, addr, "too many heaps");
	wine->walk->busy_count += is_locked(wine, addr, bytes);
	wine->heap = addr;
	subheaps.entry = layout->subheap_entry;
	subheaps.bytes = layout->subheap_bytes;
	subheaps.each = subheap;
	larges.entry = layout->large_entry;
	larges.bytes = layout->large_bytes;
	larges.each = large;
	rc = walk_add_heap(wine->walk, &heap);
	if (!rc)
		rc = walk_list(wine, &subheaps);
	if (!rc)
		rc = walk_list(wine, &larges);
	return rc;
}

static int count_busy(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes)
{
	wine->walk->busy_count += is_locked(wine, addr, bytes);
	return 0;
}

/* Calls each() for the process heap, then for the other heaps in the ring. The head of the ring is
 * the process heap's entry. */
static int for_each_heap(struct wine_walk *wine, uint64_t process_heap,
	int (*each)(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes))
{
	const struct wine_layout *layout = wine->layout;
	unsigned char bytes[STRUCT_BYTES_MAX];
	struct list ring;
	int rc;

	if (!layout || target_read(wine->target, process_heap, bytes, layout->heap_read_bytes))
		return walk_broken(wine->walk, process_heap, "unreadable heap");
	ring = list_at(wine, process_heap, bytes, layout->heap_entry);
	ring.entry = layout->heap_entry;
	ring.bytes = layout->heap_read_bytes;
	ring.each = each;
	rc = each(wine, process_heap, bytes);
	return rc ? rc : walk_list(wine, &ring);
}

bool wine_heaps_are_busy(struct target *target, uint64_t process_heap, unsigned bits)
{
	struct walk walk = {0};
	struct wine_walk wine = {
		.target = target, .walk = &walk, .layout = find_layout(target, process_heap, bits)};

	for_each_heap(&wine, process_heap, count_busy);
	return walk.busy_count > 0;
}

int64_t wine_heap_count(struct target *target, uint64_t process_heap, unsigned bits)
{
	const struct wine_layout *layout = find_layout(target, process_heap, bits);
	uint64_t at = layout ? process_heap + layout->heap_entry : 0;
	const uint64_t head = at;
	unsigned char bytes[8];

	for (int64_t count = 1; layout && count <= HEAPS_MAX; count++) {
		if (target_read(target, at, bytes, bits / 8))
			return -1;
		at = bytes_ptr(bytes, bits);
		if (at == head)
			return count;
	}
	return -1;
}

int wine_heaps_walk(struct memory *memory, uint64_t process_heap, unsigned bits, struct walk *walk)
{
	struct wine_walk wine = {.target = memory->target,
		.walk = walk,
		.memory = memory,
		.layout = find_layout(memory->target, process_heap, bits)};
	int rc = for_each_heap(&wine, process_heap, walk_heap);

	free(wine.subheaps);
	return rc;
}
