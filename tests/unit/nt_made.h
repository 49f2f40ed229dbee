/* Small NT heaps in a made target, built block by block, and the results that a walk must give. The
 * field offsets come from the image maker's tables, which are independent of the walker's. */
#ifndef TESTS_UNIT_NT_MADE_H
#define TESTS_UNIT_NT_MADE_H

#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt/nt.h"
#include "tests/images/image_nt_layout.h"

#define MADE_HEAP 0x00530000u
#define MADE_BLOCKS_MAX 4096
#define MADE_CODE 0x5e3cc1a2b7d49f01u /* a heap's Encoding; the value is arbitrary */

/* Windows versions whose NT heaps differ, and the walker's names of their layouts. */
static const struct made_kind {
	const char *name;
	unsigned bits, build;
} made_kinds[] = {
	{"nt 10.0.17763-22000 x64", 64, 17763},
	{"nt 10.0.17763-19041 x86", 32, 17763},
	{"nt 6.1.7600-7601 x64", 64, 7600},
	{"nt 6.1.7600-7601 x86", 32, 7600},
	{"nt 6.2.9200 x64", 64, 9200},
	{"nt 6.2.9200 x86", 32, 9200},
	{"nt 6.3.9600-10.0.10586 x64", 64, 9600},
	{"nt 6.3.9600-10.0.10586 x86", 32, 9600},
	{"nt 10.0.14393-17134 x64", 64, 14393},
	{"nt 10.0.14393-17134 x86", 32, 14393},
};

#define MADE_KINDS (sizeof(made_kinds) / sizeof(made_kinds[0]))
/* Sets of versions, by number. */
#define X64 0x1u
#define X86 0x2u
#define WIN7_X64 0x4u
#define WIN7_X86 0x8u
#define WIN8_X64 0x10u
#define ALL 0x3ffu

struct made {
	struct memory memory;
	struct nt_process process;
	struct walk walk;
	struct nt_walk nt;
	const struct made_kind *kind;
	const struct made_heap_layout *row;
	const struct made_nt_shape *shape;
	uint64_t key; /* key of the heap that was made last */
	uint64_t segment, at; /* segment that is being filled; address of its next block */
	uint32_t previous; /* units of the previous block */
	struct made_expected {
		uint64_t addr, requested_bytes, overhead_bytes, record;
	} expected[MADE_BLOCKS_MAX];
	size_t expected_count;
	bool has_regions;
};

static struct made made;

static inline void made_write_ptr(uint64_t addr, uint64_t value)
{
	fake_write(addr, value, made.kind->bits / 8);
}

static inline void made_list_init(uint64_t head)
{
	made_write_ptr(head, head);
	made_write_ptr(head + made.kind->bits / 8, head);
}

static inline void made_list_add(uint64_t head, uint64_t link)
{
	unsigned pointer = made.kind->bits / 8;
	uint64_t last = fake_get(head + pointer, pointer);

	made_write_ptr(link, head);
	made_write_ptr(link + pointer, last);
	made_write_ptr(last, link);
	made_write_ptr(head + pointer, link);
}

/* Replaces the process with an empty one. */
static inline void made_begin(const struct made_kind *kind)
{
	memset(&made, 0, sizeof(made));
	made.kind = kind;
	made.row = made_heap_layout(kind->bits, kind->build);
	made.shape = made_nt_shape(kind->bits);
	fake_init();
	fake_know_regions();
	fake.target.bits = kind->bits;
	made.process.bits = kind->bits;
	made.process.os_build = kind->build;
	assert_int_equal(memory_init(&made.memory, &fake.target), 0);
	walk_init(&made.walk);
}

static inline void made_end_process(void)
{
	claims_release(&made.nt.claims);
	walk_release(&made.walk);
	memory_release(&made.memory);
	fake_release();
}

/* Writes the header of a block of size_bytes bytes. The header's last byte is `unused`, not
 * coded. */
static inline void made_header(
	uint64_t entry, uint64_t size_bytes, uint32_t previous, uint8_t flags, uint64_t unused)
{
	uint64_t units = size_bytes / made.shape->unit;
	uint64_t tag = (units & 0xff) ^ (units >> 8) ^ flags;
	uint64_t offset = made.segment == MADE_HEAP ? 0 : 1 + (entry - made.segment) / 0x10000;
	uint64_t plain = units | (uint64_t)flags << 16 | tag << 24 | (uint64_t)previous << 32 |
			 offset << 48 | unused << 56;

	assert_true(units <= 0xffff && units * made.shape->unit == size_bytes);
	fake_write(entry + made.shape->header_at, plain ^ made.key, 8);
}

static inline uint64_t made_block(uint64_t size_bytes, uint8_t flags, uint8_t unused)
{
	uint64_t entry = made.at;

	made_header(entry, size_bytes, made.previous, flags, unused);
	made.previous = (uint32_t)(size_bytes / made.shape->unit);
	made.at += size_bytes;
	return entry;
}

static inline void made_expect(
	uint64_t addr, uint64_t requested_bytes, uint64_t overhead_bytes, uint64_t record)
{
	assert_true(made.expected_count < MADE_BLOCKS_MAX);
	made.expected[made.expected_count++] = (struct made_expected){.addr = addr,
		.requested_bytes = requested_bytes,
		.overhead_bytes = overhead_bytes,
		.record = record};
}

/* Adds a block of the program that the walk must find. */
static inline uint64_t made_busy(uint64_t size_bytes, uint8_t unused)
{
	uint64_t entry = made_block(size_bytes, NT_BLOCK_BUSY, unused);

	made_expect(entry + made.shape->unit, size_bytes - unused, unused, 0);
	return entry;
}

/* Writes a segment's fields and maps its memory; blocks start after first_bytes. */
static inline void made_segment(
	uint64_t addr, uint64_t committed_bytes, uint64_t reserved_bytes, uint64_t first_bytes)
{
	const struct made_nt_shape *c = made.shape;

	fake_map(addr, committed_bytes);
	fake_write(addr + c->segment_signature, NT_HEAP_SIGNATURE, 4);
	made_write_ptr(addr + c->segment_heap, MADE_HEAP);
	made_write_ptr(addr + c->segment_base, addr);
	fake_write(addr + c->segment_pages, reserved_bytes / NT_PAGE_BYTES, 4);
	made_write_ptr(addr + c->segment_first, addr + first_bytes);
	made_write_ptr(addr + c->segment_last, addr + reserved_bytes);
	made_list_init(addr + c->segment_ucr_list);
	if (addr != MADE_HEAP)
		made_list_add(MADE_HEAP + made.row->segment_list, addr + c->segment_link);
	made.segment = addr;
	made_header(addr, first_bytes, 0, NT_BLOCK_BUSY, NT_UNUSED_OWN);
	made.previous = (uint32_t)(first_bytes / c->unit);
	made.at = addr + first_bytes;
}

/* Returns the size of the structure, which is also in _HEAP.HeaderValidateLength. The structure
 * ends after TotalFreeSize, a pointer-sized field, and ProcessHeapsListIndex. */
static inline uint64_t made_valid_bytes(void)
{
	return MADE_HEAP + made.row->total_free + made.kind->bits / 4 + 2;
}

static inline void made_heap(uint64_t committed_bytes, uint64_t reserved_bytes)
{
	const struct made_heap_layout *row = made.row;
	uint64_t first = (row->bytes + 15u) / 16 * 16;

	made.key = MADE_CODE & 0xffffffffffff; /* UnusedBytes and SegmentOffset are not coded */
	made_segment(MADE_HEAP, committed_bytes, reserved_bytes, first);
	fake_write(MADE_HEAP + made.shape->encode_mask, 0x100000, 4);
	fake_write(MADE_HEAP + made.shape->encoding + made.shape->header_at, made.key, 8);
	fake_write(MADE_HEAP + row->signature, NT_HEAP_OBJECT_SIGNATURE, 4);
	fake_write(made_valid_bytes(), row->bytes, 2);
	made_list_init(MADE_HEAP + row->virtual_blocks);
	made_list_init(MADE_HEAP + row->segment_list);
	made_list_add(MADE_HEAP + row->segment_list, MADE_HEAP + made.shape->segment_link);
}

/* Marks a range as uncommitted: writes its descriptor into the block at `entry`. */
static inline void made_hole(uint64_t entry, uint64_t addr, uint64_t bytes)
{
	uint64_t descriptor = entry + made.shape->unit;
	uint64_t pages = made.segment + made.shape->segment_holes_pages;

	fake_write(pages, fake_get(pages, 4) + bytes / NT_PAGE_BYTES, 4);
	made_write_ptr(descriptor + made.shape->ucr_address, addr);
	made_write_ptr(descriptor + made.shape->ucr_size, bytes);
	made_list_add(made.segment + made.shape->segment_ucr_list,
		descriptor + made.shape->ucr_segment_link);
}

/* Adds a block whose descriptor covers `bytes` bytes at addr. At a segment's end `bytes` is 0. */
static inline void made_end(uint64_t addr, uint64_t bytes)
{
	uint64_t size = made.shape->ucr_bytes + made.shape->unit, entry;

	if (made.at < addr - size)
		made_block(addr - size - made.at, 0, 0);
	entry = made_block(size, NT_BLOCK_BUSY, NT_UNUSED_END);
	made_hole(entry, addr, bytes);
	made.at = addr + bytes;
	made.previous = 0;
}

static inline void made_rest(uint64_t committed_bytes)
{
	uint64_t left = MADE_HEAP + committed_bytes - made.at;

	for (uint64_t part; left; left -= part) {
		part = left < 0x8000 ? left : 0x8000;
		made_block(part, 0, 0);
	}
}

static inline void made_walk(void)
{
	made.nt = (struct nt_walk){.memory = &made.memory,
		.process = &made.process,
		.walk = &made.walk,
		.probes_left = NT_PROBES};
	claims_init(&made.nt.claims, target_committed_bytes(&fake.target));
	assert_int_equal(nt_backend_walk(&made.nt, MADE_HEAP), 0);
}

static inline int made_by_addr(const void *a, const void *b)
{
	const struct made_expected *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static inline int made_found_by_addr(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static inline void made_assert_blocks(void)
{
	qsort(made.expected, made.expected_count, sizeof(made.expected[0]), made_by_addr);
	if (made.walk.block_count)
		qsort(made.walk.blocks, made.walk.block_count, sizeof(made.walk.blocks[0]),
			made_found_by_addr);
	for (size_t i = 0; i < made.expected_count && i < made.walk.block_count; i++) {
		const struct made_expected *want = &made.expected[i];
		const struct block *got = &made.walk.blocks[i];

		assert_int_equal(got->addr, want->addr);
		assert_int_equal(got->requested_bytes, want->requested_bytes);
		assert_int_equal(got->overhead_bytes, want->overhead_bytes);
		assert_int_equal(got->stack == STACK_NONE ? 0 : made.walk.records[got->stack].addr,
			want->record);
	}
	assert_int_equal(made.walk.block_count, made.expected_count);
}

static inline void made_assert_broken(unsigned count, const char *what)
{
	assert_int_equal(made.walk.broken_count, count);
	if (what)
		assert_string_equal(made.walk.broken_what, what);
}

static inline void made_assert_missing(unsigned count, const char *what)
{
	assert_int_equal(made.walk.missing_count, count);
	assert_string_equal(made.walk.missing_what, what);
}

static inline void made_assert_doubt(unsigned count, const char *what)
{
	assert_int_equal(made.walk.doubt_count, count);
	if (what)
		assert_string_equal(made.walk.doubt_what, what);
}

static inline void made_walk_and_assert(unsigned broken, const char *what)
{
	made_walk();
	made_assert_broken(broken, what);
	made_assert_blocks();
}

static inline void made_run(void (*test)(unsigned i), unsigned kinds, size_t times)
{
	for (size_t k = 0; k < MADE_KINDS; k++) {
		for (unsigned i = 0; kinds >> k & 1 && i < times; i++) {
			made_begin(&made_kinds[k]);
			test(i);
			made_end_process();
		}
	}
}

/* Defines a test that runs once for each kind of the set, each time in a fresh process. MADE_TIMES
 * repeats the test for each i below `times`. */
#define MADE_TEST(name, kinds) MADE_TIMES(name, kinds, 1)
#define MADE_TIMES(name, kinds, times)                                                             \
	static void name##_in(unsigned i);                                                         \
	TEST(name)                                                                                 \
	{                                                                                          \
		made_run(name##_in, kinds, times);                                                 \
	}                                                                                          \
	static void name##_in(unsigned i __attribute__((unused)))

#endif
