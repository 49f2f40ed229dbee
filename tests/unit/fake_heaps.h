/*
 * Heaps placed in a made process, laid out after the facts known of Wine 8.0, x64, and not after
 * the program's own table. What is true of them (struct truth) is what was placed here.
 */
#ifndef TESTS_UNIT_FAKE_HEAPS_H
#define TESTS_UNIT_FAKE_HEAPS_H

#include "tests/unit/fake_target.h"

#include "snapshot/heap/heap.h"

/* Struct heap of Wine 8.0, x64, and what hangs on it. */
enum {
	HEAP_SIGNATURE = 0x10,
	HEAP_RING = 0x78,
	HEAP_SUBHEAPS = 0x88,
	HEAP_LARGES = 0x98,
	HEAP_MAGIC = 0xb8,
	HEAP_LOCK_COUNT = 0xd0,
	HEAP_FIRST_SUBHEAP = 0x330,
	SUBHEAP_BLOCK_SIZE = 0x10,
	SUBHEAP_DATA_SIZE = 0x18,
	SUBHEAP_LINKS = 0x20,
	SUBHEAP_HEAP = 0x30,
	SUBHEAP_FIRST_BLOCK = 0x38,
	SUBHEAP_DATA = 0x40,
	LARGE_LINKS = 0x10,
	LARGE_DATA_SIZE = 0x20,
	LARGE_BLOCK_SIZE = 0x28,
	LARGE_BLOCK = 0x38,
	LARGE_DATA = 0x40,
	FLAG_FREE = 1,
	FLAG_PREV_FREE = 2,
	FLAG_LARGE = 4,
	TYPE_USED = 0x5355,
	TYPE_PENDING = 0xdead,
	TYPE_FREE = 0x5246,
	TYPE_LARGE = 0x614c,
};

struct placed {
	uint64_t addr, requested_bytes, overhead_bytes, heap;
	uint64_t part; /* address of the subheap or large block it lies in */
	bool is_lost; /* the test has made it impossible to find */
};

struct placed_heap {
	uint64_t addr, committed_bytes, reserved_bytes;
};

static struct truth {
	struct placed blocks[16384];
	size_t block_count;
	struct placed_heap heaps[16];
	size_t heap_count;
} truth; /* of the process made */

/* A subheap while it is filled: at is the address of the next block's header. */
struct filling {
	uint64_t heap, part, at, end, reserved_end;
	bool after_free;
};

static inline void fake_list_init(uint64_t head)
{
	fake_put(head, head, 8);
	fake_put(head + 8, head, 8);
}

/* Appends an entry to a doubly linked list. */
static inline void fake_list_add(uint64_t head, uint64_t entry)
{
	uint64_t last = fake_get(head + 8, 8);

	fake_put(entry, head, 8);
	fake_put(entry + 8, last, 8);
	fake_put(last, entry, 8);
	fake_put(head + 8, entry, 8);
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

/* Numbers are of the region that the subheap ends, which begins at region. */
static inline struct filling subheap_place(uint64_t heap, uint64_t region, uint64_t part,
	uint64_t committed_bytes, uint64_t reserved_bytes)
{
	uint64_t before = part + SUBHEAP_DATA - region;
	struct placed_heap *owner = truth_heap(heap);

	/* Counted from the first block, as Wine does. */
	fake_put(part + SUBHEAP_BLOCK_SIZE, region + reserved_bytes - (part + SUBHEAP_FIRST_BLOCK),
		8);
	fake_put(part + SUBHEAP_DATA_SIZE, committed_bytes - before, 8);
	fake_put(part + SUBHEAP_HEAP, heap, 8);
	fake_list_add(heap + HEAP_SUBHEAPS, part + SUBHEAP_LINKS);
	owner->committed_bytes += committed_bytes;
	owner->reserved_bytes += reserved_bytes;
	return (struct filling){.heap = heap,
		.part = part,
		.at = part + SUBHEAP_FIRST_BLOCK,
		.end = region + committed_bytes,
		.reserved_end = region + reserved_bytes};
}

/* A heap with its embedded subheap, which is returned to be filled; the first is the process's. */
static inline struct filling heap_place(
	uint64_t addr, uint64_t committed_bytes, uint64_t reserved_bytes)
{
	fake_map(addr, committed_bytes)->needs_hold = true;
	fake_put(addr + HEAP_SIGNATURE, 0xffeeffee, 4);
	fake_put(addr + HEAP_MAGIC, 0x50414548, 4);
	fake_put(addr + HEAP_LOCK_COUNT, UINT32_MAX, 4);
	fake_list_init(addr + HEAP_SUBHEAPS);
	fake_list_init(addr + HEAP_LARGES);
	if (truth.heap_count) {
		fake_list_add(truth.heaps[0].addr + HEAP_RING, addr + HEAP_RING);
	} else {
		fake_list_init(addr + HEAP_RING);
		fake_put(FAKE_PEB + FAKE_PEB_HEAP, addr, 8);
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

/* Of a large block that is not in a range yet only the first page is there: no more is needed. */
static inline void large_place(uint64_t heap, uint64_t addr, uint64_t requested_bytes)
{
	uint64_t bytes = (requested_bytes + LARGE_DATA + 0xfff) & ~(uint64_t)0xfff;
	struct placed_heap *owner = truth_heap(heap);

	if (!fake_range_at(addr))
		fake_map(addr, 0x1000)->needs_hold = true;
	fake_put(addr + LARGE_DATA_SIZE, requested_bytes, 8);
	fake_put(addr + LARGE_BLOCK_SIZE, bytes, 8);
	fake_put(addr + LARGE_BLOCK + 2, FLAG_LARGE, 1);
	fake_put(addr + LARGE_BLOCK + 6, TYPE_LARGE, 2);
	fake_list_add(heap + HEAP_LARGES, addr + LARGE_LINKS);
	owner->committed_bytes += bytes;
	owner->reserved_bytes += bytes;
	truth_add(&(struct placed){.addr = addr + LARGE_DATA,
		.requested_bytes = requested_bytes,
		.overhead_bytes = bytes - requested_bytes,
		.heap = heap,
		.part = addr});
}

/* ---------------------------------------------------------------- blocks */

/* Bytes that are left for blocks: the last 8 of a subheap are none. */
static inline uint64_t fill_room(const struct filling *fill)
{
	return fill->end - 8 - fill->at;
}

static inline void fill_header(
	struct filling *fill, uint64_t bytes, unsigned flags, unsigned tail, unsigned type)
{
	assert_true(bytes && bytes % 16 == 0);
	fake_put(fill->at, bytes / 16, 2);
	fake_put(fill->at + 2, flags | (fill->after_free ? FLAG_PREV_FREE : 0), 1);
	fake_put(fill->at + 3, tail, 1);
	fake_put(fill->at + 4, (fill->at - fill->part) >> 16, 2);
	fake_put(fill->at + 6, type, 2);
	fill->after_free = type == TYPE_FREE;
	fill->at += bytes;
}

/* A live block with spare units of 16 bytes (at most 14) more than it needs; its address. */
static inline uint64_t fill_used(struct filling *fill, uint64_t requested_bytes, unsigned spare)
{
	uint64_t bytes = ((requested_bytes + 8 + 15) & ~(uint64_t)15) + spare * 16;
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

/* Of a free block the tail's byte is the size's upper part. */
static inline void fill_free(struct filling *fill, uint64_t bytes)
{
	fill_header(fill, bytes, FLAG_FREE, (unsigned)(bytes / 16 >> 16), TYPE_FREE);
}

/* The free block that is the rest: it reaches as far as the subheap's address space. */
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

/* The process heap with two more subheaps, one more heap, and one without a block. */
#define HEAP_A 0x110000u
#define SUB_A1 0x400000u
#define SUB_A2 0x600000u
#define HEAP_B 0x210000u
#define SUB_B1 0x800000u
#define HEAP_C 0x310000u
#define LARGE_A 0x10000000u /* and more of them, each LARGE_STEP further */
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

/* A process without a heap, in the place of the one before. */
static inline void image_begin(void)
{
	image_free();
	memset(&truth, 0, sizeof(truth));
	fake_init();
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
	return heaps_walk(&image.memory, &image.walk, &image.err);
}

static inline void image_walk(void)
{
	assert_int_equal(image_walk_all(), 0);
}

/* ---------------------------------------------------------------- what is true */

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

/* All blocks that can be found, each once and right, and no others. */
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

/* What the blocks that are still true will be when a part cannot be walked from addr on. */
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

/* Walks a damaged image: one broken place, at addr. */
static inline void assert_one_wound(uint64_t addr)
{
	image_walk();
	assert_broken(1, addr);
	assert_blocks();
}

#endif
