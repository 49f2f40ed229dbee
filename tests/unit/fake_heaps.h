/* Heaps placed in a made process. Their layout follows the known facts about Wine 8.0 and 9.0 to
 * 11, on x64 and x86, not the program's own table. struct truth records each placed block. */
#ifndef TESTS_UNIT_FAKE_HEAPS_H
#define TESTS_UNIT_FAKE_HEAPS_H

#include "tests/unit/fake_target.h"

#include "snapshot/heap/heap.h"

/* Layout of struct heap, and of the structures to which it points, in one version and bitness. */
static const struct heap_shape {
	const char *name;
	unsigned pointer, unit;
	bool has_groups;
	unsigned signature, ring, subheaps, larges, magic, lock_count, first_subheap;
	unsigned subheap_block_size, subheap_data_size, subheap_links, subheap_heap,
		subheap_first_block, subheap_data;
	unsigned large_links, large_data_size, large_block_size, large_block, large_data;
	unsigned group_bits, group_first;
} shapes[] = {
#define SHAPE_X64 0x10, 0x18, 0x20, 0x30, 0x38, 0x40, 0x10, 0x20, 0x28, 0x38, 0x40, 0x10, 0x18
#define SHAPE_X86 0x04, 0x08, 0x0c, 0x14, 0x18, 0x20, 0x04, 0x0c, 0x10, 0x18, 0x20, 0x04, 0x10
	{"wine 8.0 x64", 8, 16, false, 0x10, 0x78, 0x88, 0x98, 0xb8, 0xd0, 0x330, SHAPE_X64},
	{"wine 8.0 x86", 4, 8, false, 0x08, 0x48, 0x50, 0x58, 0x68, 0x78, 0x2b0, SHAPE_X86},
	{"wine 9.0 x64", 8, 16, true, 0x10, 0x80, 0x90, 0xa0, 0xc0, 0xd8, 0x8b0, SHAPE_X64},
	{"wine 9.0 x86", 4, 8, true, 0x08, 0x4c, 0x54, 0x5c, 0x6c, 0x7c, 0x468, SHAPE_X86},
};

#define SHAPE_COUNT (sizeof(shapes) / sizeof(*shapes))
static const struct heap_shape *shape = shapes; /* shape of the next process to be made */

#define POINTER (shape->pointer)
#define UNIT (shape->unit)
#define HEAP_SIGNATURE (shape->signature)
#define HEAP_RING (shape->ring)
#define HEAP_SUBHEAPS (shape->subheaps)
#define HEAP_LARGES (shape->larges)
#define HEAP_MAGIC (shape->magic)
#define HEAP_LOCK_COUNT (shape->lock_count)
#define HEAP_FIRST_SUBHEAP (shape->first_subheap)
#define SUBHEAP_BLOCK_SIZE (shape->subheap_block_size)
#define SUBHEAP_DATA_SIZE (shape->subheap_data_size)
#define SUBHEAP_LINKS (shape->subheap_links)
#define SUBHEAP_HEAP (shape->subheap_heap)
#define SUBHEAP_FIRST_BLOCK (shape->subheap_first_block)
#define SUBHEAP_DATA (shape->subheap_data)
#define LARGE_LINKS (shape->large_links)
#define LARGE_DATA_SIZE (shape->large_data_size)
#define LARGE_BLOCK_SIZE (shape->large_block_size)
#define LARGE_BLOCK (shape->large_block)
#define LARGE_DATA (shape->large_data)

enum {
	FLAG_FREE = 1,
	FLAG_PREV_FREE = 2,
	FLAG_LARGE = 4,
	FLAG_GROUP = 0x80,
	TYPE_USED = 0x5355,
	TYPE_PENDING = 0xdead,
	TYPE_FREE = 0x5246,
	TYPE_LARGE = 0x614c,
	GROUP_BLOCKS = 31,
};

struct placed {
	uint64_t addr, requested_bytes, overhead_bytes, heap;
	uint64_t part; /* address of the containing subheap or large block */
	bool is_lost; /* the test has damaged the heap so that a walk cannot find the block */
};

struct placed_heap {
	uint64_t addr, committed_bytes, reserved_bytes;
};

static struct truth {
	struct placed blocks[16384];
	size_t block_count;
	struct placed_heap heaps[16];
	size_t heap_count;
} truth; /* contents of the made process */

/* Subheap while the test fills it. at: address of the next block's header. */
struct filling {
	uint64_t heap, part, at, end, reserved_end;
	bool after_free;
};

static inline void fake_list_init(uint64_t head)
{
	fake_write(head, head, POINTER);
	fake_write(head + POINTER, head, POINTER);
}

static inline void fake_list_add(uint64_t head, uint64_t entry)
{
	uint64_t last = fake_get(head + POINTER, POINTER);

	fake_write(entry, head, POINTER);
	fake_write(entry + POINTER, last, POINTER);
	fake_write(last, entry, POINTER);
	fake_write(head + POINTER, entry, POINTER);
}

static inline struct placed_heap *truth_heap(uint64_t addr)
{
	for (size_t i = 0; i < truth.heap_count; i++) {
		if (truth.heaps[i].addr == addr)
			return &truth.heaps[i];
	}
	return NULL;
}

static inline void truth_add(const struct placed *block)
{
	assert_true(truth.block_count < sizeof(truth.blocks) / sizeof(*truth.blocks));
	truth.blocks[truth.block_count++] = *block;
}

/* Places a subheap at the end of the region at `region`. The byte counts are the region's. */
static inline struct filling subheap_place(uint64_t heap, uint64_t region, uint64_t part,
	uint64_t committed_bytes, uint64_t reserved_bytes)
{
	uint64_t before = part + SUBHEAP_DATA - region;
	struct placed_heap *owner = truth_heap(heap);

	/* Like Wine, count the subheap's bytes from its first block. */
	fake_write(part + SUBHEAP_BLOCK_SIZE,
		region + reserved_bytes - (part + SUBHEAP_FIRST_BLOCK), POINTER);
	fake_write(part + SUBHEAP_DATA_SIZE, committed_bytes - before, POINTER);
	fake_write(part + SUBHEAP_HEAP, heap, POINTER);
	fake_list_add(heap + HEAP_SUBHEAPS, part + SUBHEAP_LINKS);
	owner->committed_bytes += committed_bytes;
	owner->reserved_bytes += reserved_bytes;
	return (struct filling){.heap = heap,
		.part = part,
		.at = part + SUBHEAP_FIRST_BLOCK,
		.end = region + committed_bytes,
		.reserved_end = region + reserved_bytes};
}

/* Places a heap and returns its embedded subheap, which the caller fills. The first heap is the
 * process heap. */
static inline struct filling heap_place(
	uint64_t addr, uint64_t committed_bytes, uint64_t reserved_bytes)
{
	fake_map(addr, committed_bytes)->needs_hold = true;
	fake_write(addr + HEAP_SIGNATURE, 0xffeeffee, 4);
	fake_write(addr + HEAP_MAGIC, 0x50414548, 4);
	fake_write(addr + HEAP_LOCK_COUNT, UINT32_MAX, 4);
	fake_list_init(addr + HEAP_SUBHEAPS);
	fake_list_init(addr + HEAP_LARGES);
	if (truth.heap_count) {
		fake_list_add(truth.heaps[0].addr + HEAP_RING, addr + HEAP_RING);
	} else {
		fake_list_init(addr + HEAP_RING);
		fake_write(FAKE_PEB + (POINTER == 8 ? FAKE_PEB_HEAP : FAKE_PEB_HEAP_32), addr,
			POINTER);
	}
	truth.heaps[truth.heap_count++] = (struct placed_heap){.addr = addr};
	return subheap_place(
		addr, addr, addr + HEAP_FIRST_SUBHEAP, committed_bytes, reserved_bytes);
}

static inline struct filling heap_extend(
	uint64_t heap, uint64_t addr, uint64_t committed_bytes, uint64_t reserved_bytes)
{
	fake_map(addr, committed_bytes)->needs_hold = true;
	return subheap_place(heap, addr, addr, committed_bytes, reserved_bytes);
}

/* Writes a block's header in the version's form. index: the block's number in its group. */
static inline void header_write(
	uint64_t addr, uint64_t units, unsigned flags, unsigned tail, unsigned index, unsigned type)
{
	fake_write(addr, units, 2);
	fake_write(addr + 4, index, 2);
	if (shape->has_groups) {
		fake_write(addr + 2, tail, 2);
		fake_write(addr + 6,
			type == TYPE_USED    ? 'u' :
			type == TYPE_FREE    ? 'F' :
			type == TYPE_PENDING ? 'D' :
					       'L',
			1);
		fake_write(addr + 7, flags, 1);
	} else {
		fake_write(addr + 2, flags, 1);
		fake_write(addr + 3, tail, 1);
		fake_write(addr + 6, type, 2);
	}
}

/* Places a large block in a region whose size is rounded up to 64 KiB. Does not add the block to
 * the truth. */
static inline uint64_t large_region(
	uint64_t heap, uint64_t addr, uint64_t requested_bytes, unsigned flags)
{
	uint64_t bytes = (requested_bytes + LARGE_DATA + 0xffff) & ~(uint64_t)0xffff;
	struct placed_heap *owner = truth_heap(heap);

	fake_write(addr + LARGE_DATA_SIZE, requested_bytes, POINTER);
	/* Wine counts a large block's bytes from its header. */
	fake_write(addr + LARGE_BLOCK_SIZE, bytes - LARGE_BLOCK, POINTER);
	header_write(addr + LARGE_BLOCK, 0, FLAG_LARGE | flags, 0, 0, TYPE_LARGE);
	fake_list_add(heap + HEAP_LARGES, addr + LARGE_LINKS);
	owner->committed_bytes += bytes;
	owner->reserved_bytes += bytes;
	return bytes;
}

/* Places a large block; maps only its first page, and only if no range contains it yet. Walks read
 * no more than that page. */
static inline void large_place(uint64_t heap, uint64_t addr, uint64_t requested_bytes)
{
	uint64_t bytes;

	if (!fake_range_at(addr))
		fake_map(addr, 0x1000)->needs_hold = true;
	bytes = large_region(heap, addr, requested_bytes, 0);
	truth_add(&(struct placed){.addr = addr + LARGE_DATA,
		.requested_bytes = requested_bytes,
		.overhead_bytes = bytes - requested_bytes,
		.heap = heap,
		.part = addr});
}

/* ---------------------------------------------------------------- blocks */

/* Returns the bytes left for blocks: no block begins in the last 16 bytes of a subheap. */
static inline uint64_t fill_room(const struct filling *fill)
{
	return fill->end - 8 - fill->at;
}

static inline void fill_header(
	struct filling *fill, uint64_t bytes, unsigned flags, unsigned tail, unsigned type)
{
	assert_true(bytes && bytes % UNIT == 0);
	header_write(fill->at, bytes / UNIT, flags | (fill->after_free ? FLAG_PREV_FREE : 0), tail,
		(unsigned)(fill->at - fill->part) >> 16, type);
	fill->after_free = type == TYPE_FREE;
	fill->at += bytes;
}

/* Adds a live block with `spare` units (at most 14) more than the block needs; returns its
 * address. */
static inline uint64_t fill_used(struct filling *fill, uint64_t requested_bytes, unsigned spare)
{
	uint64_t bytes = ((requested_bytes + 8 + 15) & ~(uint64_t)15) + spare * UNIT;
	uint64_t addr = fill->at + 8;

	assert_true(bytes <= fill_room(fill) && spare < 15);
	truth_add(&(struct placed){.addr = addr,
		.requested_bytes = requested_bytes,
		.overhead_bytes = bytes - requested_bytes,
		.heap = fill->heap,
		.part = fill->part});
	memset(fake_bytes(addr, requested_bytes), 0x5a, requested_bytes);
	fill_header(fill, bytes, 0x20, (unsigned)(bytes - 8 - requested_bytes), TYPE_USED);
	return addr;
}

/* Writes the headers of a group at addr. stride: bytes of a block including its header. live: one
 * bit per live block. The blocks' sizes depend on their numbers. part: address of the subheap or
 * large block. */
static inline void group_write(
	uint64_t heap, uint64_t part, uint64_t addr, uint64_t stride, uint32_t live)
{
	fake_write(addr + shape->group_bits, ~live, 4);
	for (unsigned i = 0; i < GROUP_BLOCKS; i++) {
		uint64_t at = addr + shape->group_first + i * stride;
		unsigned tail = i % 13;

		if (!(live >> i & 1)) {
			header_write(at, stride / UNIT, FLAG_GROUP | FLAG_FREE, 0, i, TYPE_FREE);
			continue;
		}
		header_write(at, stride / UNIT, FLAG_GROUP, tail, i, TYPE_USED);
		truth_add(&(struct placed){.addr = at + 8,
			.requested_bytes = stride - 8 - tail,
			.overhead_bytes = 8 + tail,
			.heap = heap,
			.part = part});
	}
}

static inline uint64_t group_bytes(uint64_t stride)
{
	return shape->group_first + GROUP_BLOCKS * stride;
}

static inline uint64_t fill_group(struct filling *fill, uint64_t stride, uint32_t live)
{
	uint64_t data = group_bytes(stride), bytes = (data + 8 + 15) & ~(uint64_t)15;
	uint64_t addr = fill->at + 8;

	group_write(fill->heap, fill->part, addr, stride, live);
	fill_header(fill, bytes, FLAG_GROUP, (unsigned)(bytes - 8 - data), TYPE_USED);
	return addr;
}

static inline void large_group(uint64_t heap, uint64_t addr, uint64_t stride, uint32_t live)
{
	fake_map(addr, (group_bytes(stride) + LARGE_DATA + 0xfff) & ~(uint64_t)0xfff)->needs_hold =
		true;
	large_region(heap, addr, group_bytes(stride), FLAG_GROUP);
	group_write(heap, addr, addr + LARGE_DATA, stride, live);
}

/* In a free block the tail's byte contains the upper part of the size. */
static inline void fill_free(struct filling *fill, uint64_t bytes)
{
	fill_header(fill, bytes, FLAG_FREE, (unsigned)(bytes / UNIT >> 16), TYPE_FREE);
}

/* Adds the last free block, which extends to the end of the subheap's address space. */
static inline void fill_rest(struct filling *fill)
{
	fill_free(fill, fill->reserved_end - 8 - fill->at);
}

static inline void fill_some(struct filling *fill, uint64_t *seed)
{
	while (fill_room(fill) > 2048) {
		uint64_t dice = fake_random(seed);
		unsigned spare = (dice >> 8) % 8 ? 0 : (dice >> 16) % 15;

		switch (dice % 8) {
		case 0: fill_header(fill, 16 + (dice >> 24) % 32 * 16, 0, 8, TYPE_PENDING); break;
		case 1: fill_free(fill, 16 + (dice >> 24) % 32 * 16); break;
		case 2: fill_used(fill, 0, spare); break;
		case 3: fill_used(fill, (dice >> 24) % 1024, spare); break;
		default: fill_used(fill, (dice >> 24) % 120, spare); break;
		}
	}
}

/* ---------------------------------------------------------------- a process with heaps */

/* Makes the process heap with two more subheaps, another heap, and an empty heap. */
#define HEAP_A 0x110000u
#define SUB_A1 0x400000u
#define SUB_A2 0x600000u
#define HEAP_B 0x210000u
#define SUB_B1 0x800000u
#define HEAP_C 0x310000u
#define LARGE_A 0x10000000u /* more large blocks, one every LARGE_STEP bytes */
#define LARGE_B 0x20000000u
#define LARGE_STEP 0x400000u
#define EACH_LARGE 3

static struct image {
	struct walk walk;
	struct memory memory;
	struct err err;
	uint64_t mapped_bytes;
} image;

static inline void fill_whole(struct filling fill, uint64_t *seed)
{
	fill_some(&fill, seed);
	fill_rest(&fill);
}

static inline void image_free(void)
{
	walk_release(&image.walk);
	memory_release(&image.memory);
	fake_release();
	image = (struct image){0};
}

/* Replaces the process with one without heaps. */
static inline void image_begin(void)
{
	image_free();
	memset(&truth, 0, sizeof(truth));
	fake_init();
	fake.target.bits = POINTER * 8;
	walk_init(&image.walk);
	assert_int_equal(memory_init(&image.memory, &fake.target), 0);
}

static inline void image_make(uint64_t seed)
{
	struct filling empty;

	image_begin();
	seed = seed * 2 + 1;
	fill_whole(heap_place(HEAP_A, 0x8000, 0x10000), &seed);
	fill_whole(heap_extend(HEAP_A, SUB_A1, 0x20000, 0x20000), &seed);
	fill_whole(heap_extend(HEAP_A, SUB_A2, 0x4000, 0x200000), &seed);
	fill_whole(heap_place(HEAP_B, 0x10000, 0x10000), &seed);
	fill_whole(heap_extend(HEAP_B, SUB_B1, 0x6000, 0x100000), &seed);
	empty = heap_place(HEAP_C, 0x1000, 0x10000);
	fill_rest(&empty);
	for (unsigned i = 0; i < EACH_LARGE; i++) {
		uint64_t bytes = 0xfeff0 + fake_random(&seed) % 0x200000;

		large_place(HEAP_A, LARGE_A + i * LARGE_STEP, bytes);
		large_place(HEAP_B, LARGE_B + i * LARGE_STEP, bytes ^ 0x1001);
	}
	for (size_t i = 0; i < fake.range_count; i++)
		image.mapped_bytes += fake.ranges[i].len;
}

static inline int image_walk_all(void)
{
	walk_clear(&image.walk);
	memory_clear(&image.memory);
	fake.is_held = true;
	return heaps_walk(&image.memory, NULL, &image.walk, &image.err);
}

static inline void image_walk(void)
{
	assert_int_equal(image_walk_all(), 0);
}

/* ---------------------------------------------------------------- truth */

static inline int by_addr(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static inline int placed_by_addr(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Asserts that the walk found each findable block correctly and only once, and found no other
 * blocks. */
static inline void assert_blocks(void)
{
	struct walk *walk = &image.walk;
	size_t at = 0;

	if (walk->block_count)
		qsort(walk->blocks, walk->block_count, sizeof(*walk->blocks), by_addr);
	qsort(truth.blocks, truth.block_count, sizeof(*truth.blocks), placed_by_addr);
	for (size_t i = 0; i < truth.block_count; i++) {
		const struct placed *placed = &truth.blocks[i];
		const struct block *walked = &walk->blocks[at];

		if (placed->is_lost)
			continue;
		assert_true(at++ < walk->block_count);
		assert_int_equal(walked->addr, placed->addr);
		assert_int_equal(walked->requested_bytes, placed->requested_bytes);
		assert_int_equal(walked->overhead_bytes, placed->overhead_bytes);
		assert_true(walked->heap < walk->heap_count);
		assert_int_equal(walk->heaps[walked->heap].addr, placed->heap);
	}
	assert_int_equal(at, walk->block_count);
}

static inline void assert_broken(unsigned count, uint64_t addr)
{
	assert_int_equal(image.walk.broken_count, count);
	if (count) {
		assert_int_equal(image.walk.broken_addr, addr);
		assert_non_null(image.walk.broken_what);
	}
}

/* Removes from the truth the blocks that a walk cannot reach if the walk fails at addr in a
 * part. */
static inline void lose(uint64_t part, uint64_t addr)
{
	for (size_t i = 0; i < truth.block_count; i++) {
		struct placed *placed = &truth.blocks[i];

		if (placed->part == part && placed->addr >= addr)
			placed->is_lost = true;
	}
}

static inline void lose_heap(uint64_t heap)
{
	for (size_t i = 0; i < truth.block_count; i++) {
		if (truth.blocks[i].heap == heap)
			truth.blocks[i].is_lost = true;
	}
}

/* Walks a damaged image and expects damage to be reported at addr only. */
static inline void assert_one_wound(uint64_t addr)
{
	image_walk();
	assert_broken(1, addr);
	assert_blocks();
}

#endif
