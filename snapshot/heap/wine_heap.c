#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/wine_layout.h"

/* Bounds for a process that is damaged or wants to harm: of all lists together, of the subheaps. */
#define ENTRIES_MAX ((size_t)1 << 20)
#define SUBHEAPS_MAX ((size_t)2 * HEAPS_MAX)
#define STRUCT_BYTES_MAX 0x100 /* of what one read takes of any structure */

struct wine_range {
	uint64_t addr, end;
};

struct wine_walk {
	struct target *target;
	struct walk *walk;
	struct memory *memory; /* of the target */
	uint64_t heap; /* the one that is walked */
	size_t entry_count;
	uint64_t seen_bytes;
	struct wine_range *subheaps; /* by address; they do not overlap */
	size_t subheap_count, subheap_cap;
};

static const struct wine_layout *const layout = &wine_layout_8_0_x64;

static bool is_heap(const unsigned char *bytes)
{
	return bytes_u32(bytes + layout->heap_signature) == WINE_HEAP_SIGNATURE &&
	       bytes_u32(bytes + layout->heap_magic) == WINE_HEAP_MAGIC;
}

bool wine_heap_is_ring(struct target *target, uint64_t addr)
{
	unsigned char bytes[STRUCT_BYTES_MAX];

	return !target_read(target, addr, bytes, layout->heap_read_bytes) && is_heap(bytes);
}

/* True when a process can have that many more bytes there. */
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

	memory_within(wine->memory, addr, end);
	/* The last 8 bytes are no block: one starts at end - 16 at the latest. */
	while (!rc && addr <= end - layout->block_unit) {
		const unsigned char *header = memory_at(wine->memory, addr, layout->block_bytes);
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
				block.bytes - overhead, overhead, 0);
		}
		addr += block.bytes;
	}
	return rc;
}

/* Keeps the range of one more subheap: 0 and *is_fresh, false when a part of it was there. */
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

/* The first subheap lies behind its heap's other fields, the others begin a region. */
static uint64_t bytes_before_data(const struct wine_walk *wine, uint64_t addr)
{
	bool is_first = addr == wine->heap + layout->heap_bytes - layout->subheap_bytes;

	return is_first ? layout->heap_bytes : layout->subheap_bytes;
}

static int subheap(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes)
{
	struct heap *heap = &wine->walk->heaps[wine->walk->heap_count - 1];
	/* Reserved bytes are counted from the first block, committed ones from behind the head. */
	uint64_t blocks = layout->subheap_bytes - layout->subheap_first_block;
	uint64_t reserved = bytes_u64(bytes + layout->subheap_block_size) - blocks;
	uint64_t committed = bytes_u64(bytes + layout->subheap_data_size);
	uint64_t data = addr + layout->subheap_bytes, before = bytes_before_data(wine, addr);
	bool is_fresh;
	int rc;

	if (bytes_u64(bytes + layout->subheap_heap) != wine->heap)
		return walk_broken(wine->walk, addr, "subheap of another heap");
	if (committed > reserved || committed < layout->block_unit || data < addr ||
		!claim(wine, data, reserved))
		return walk_broken(wine->walk, addr, "subheap of no sound size");
	if (wine->subheap_count == SUBHEAPS_MAX)
		return walk_broken(wine->walk, addr, "too many subheaps");
	rc = add_subheap(wine, addr, data + reserved, &is_fresh);
	if (rc)
		return rc;
	if (!is_fresh)
		return walk_broken(wine->walk, addr, "subheap inside another");
	heap->committed_bytes += before + committed;
	heap->reserved_bytes += before + reserved;
	return walk_subheap(wine, data, data + committed, data + reserved);
}

static int large(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes)
{
	struct heap *heap = &wine->walk->heaps[wine->walk->heap_count - 1];
	uint64_t data_bytes = bytes_u64(bytes + layout->large_data_size);
	uint64_t block_bytes = bytes_u64(bytes + layout->large_block_size);

	if (bytes_u16(bytes + layout->large_block + 6) != WINE_TYPE_LARGE)
		return walk_broken(wine->walk, addr, "large block of no known type");
	if (block_bytes < layout->large_bytes || data_bytes > block_bytes - layout->large_bytes ||
		!claim(wine, addr, block_bytes))
		return walk_broken(wine->walk, addr, "large block of no sound size");
	heap->committed_bytes += block_bytes;
	heap->reserved_bytes += block_bytes;
	return walk_add_block(
		wine->walk, addr + layout->large_bytes, data_bytes, block_bytes - data_bytes, 0);
}

/* A doubly linked list and the structures on it. */
struct list {
	uint64_t head; /* address */
	uint64_t next, back; /* of the head */
	uint32_t entry; /* where a structure has its links */
	uint32_t bytes; /* of each structure, to be read */
	int (*each)(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes);
};

/* Calls each() for every structure on the list. One back link cannot fit two entries before it, so
 * the walk never comes to an entry again. */
static int walk_list(struct wine_walk *wine, const struct list *list)
{
	unsigned char bytes[STRUCT_BYTES_MAX];
	uint64_t next = list->next, previous = list->head;
	int rc = 0;

	while (!rc && next != list->head) {
		uint64_t entry = next, addr = entry - list->entry;

		if (wine->entry_count++ == ENTRIES_MAX)
			return walk_broken(wine->walk, entry, "lists of no end");
		if (target_read(wine->target, addr, bytes, list->bytes))
			return walk_broken(wine->walk, entry, "unreadable list");
		if (bytes_u64(bytes + list->entry + 8) != previous)
			return walk_broken(wine->walk, entry, "broken list");
		next = bytes_u64(bytes + list->entry);
		previous = entry;
		rc = list->each(wine, addr, bytes);
	}
	if (!rc && list->back != previous)
		return walk_broken(wine->walk, list->head, "list that ends too early");
	return rc;
}

static bool is_locked(const unsigned char *heap_bytes)
{
	return bytes_u32(heap_bytes + layout->heap_lock_count) != UINT32_MAX;
}

/* The list whose head is at offset in the heap at addr. */
static struct list list_at(uint64_t addr, const unsigned char *heap_bytes, uint32_t offset)
{
	return (struct list){.head = addr + offset,
		.next = bytes_u64(heap_bytes + offset),
		.back = bytes_u64(heap_bytes + offset + 8)};
}

static int walk_heap(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes)
{
	struct heap heap = {.addr = addr, .bits = 64, .kind = "wine", .layout = layout->name};
	struct list subheaps = list_at(addr, bytes, layout->heap_subheaps);
	struct list larges = list_at(addr, bytes, layout->heap_larges);
	int rc;

	if (!is_heap(bytes))
		return walk_broken(wine->walk, addr, "no heap");
	if (wine->walk->heap_count >= HEAPS_MAX)
		return walk_broken(wine->walk, addr, "too many heaps");
	wine->walk->busy_count += is_locked(bytes);
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
	(void)addr;
	wine->walk->busy_count += is_locked(bytes);
	return 0;
}

/* The process heap, then the others: its entry in their ring is the ring's head. */
static int for_each_heap(struct wine_walk *wine, uint64_t process_heap,
	int (*each)(struct wine_walk *wine, uint64_t addr, const unsigned char *bytes))
{
	unsigned char bytes[STRUCT_BYTES_MAX];
	struct list ring;
	int rc;

	if (target_read(wine->target, process_heap, bytes, layout->heap_read_bytes))
		return walk_broken(wine->walk, process_heap, "unreadable heap");
	ring = list_at(process_heap, bytes, layout->heap_entry);
	ring.entry = layout->heap_entry;
	ring.bytes = layout->heap_read_bytes;
	ring.each = each;
	rc = each(wine, process_heap, bytes);
	return rc ? rc : walk_list(wine, &ring);
}

bool wine_heaps_are_busy(struct target *target, uint64_t process_heap)
{
	struct walk walk = {0};
	struct wine_walk wine = {.target = target, .walk = &walk};

	for_each_heap(&wine, process_heap, count_busy);
	return walk.busy_count > 0;
}

int wine_heaps_walk(struct memory *memory, uint64_t process_heap, struct walk *walk)
{
	struct wine_walk wine = {.target = memory->target, .walk = walk, .memory = memory};
	int rc = for_each_heap(&wine, process_heap, walk_heap);

	free(wine.subheaps);
	return rc;
}
