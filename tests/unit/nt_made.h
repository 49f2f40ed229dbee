/*
 * Small NT heaps in a made target, block by block, and what a walker must find in them.
 */
#ifndef TESTS_UNIT_NT_MADE_H
#define TESTS_UNIT_NT_MADE_H

#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt/nt.h"

#define MADE_HEAP 0x00530000u
#define MADE_BLOCKS_MAX 4096
#define MADE_CODE 0x5e3cc1a2b7d49f01u /* a heap's Encoding: whatever */

struct made {
	struct fake fake;
	struct memory memory;
	struct nt_process process;
	struct walk walk;
	struct nt_walk nt;
	const struct nt_layout *row;
	const struct nt_common_layout *common;
	uint64_t key; /* of the heap last made */
	uint64_t segment, at; /* being filled; where the next block goes */
	uint32_t previous; /* units of the block before */
	struct walked_block expected[MADE_BLOCKS_MAX];
	size_t expected_count;
	bool has_regions;
};

static inline void made_put_ptr(struct made *made, uint64_t addr, uint64_t value)
{
	fake_put(&made->fake, addr, value, made->row->bits / 8);
}

static inline void made_list_init(struct made *made, uint64_t head)
{
	made_put_ptr(made, head, head);
	made_put_ptr(made, head + made->row->bits / 8, head);
}

static inline void made_list_add(struct made *made, uint64_t head, uint64_t link)
{
	unsigned pointer = made->row->bits / 8;
	uint64_t last = fake_get(&made->fake, head + pointer, pointer);

	made_put_ptr(made, link, head);
	made_put_ptr(made, link + pointer, last);
	made_put_ptr(made, last, link);
	made_put_ptr(made, head + pointer, link);
}

/* A process of the row's bitness and first build. */
static inline struct made *made_new(const char *row)
{
	static struct target_ops ops;
	struct made *made = calloc(1, sizeof(*made));

	assert_non_null(made);
	for (size_t i = 0; i < nt_layout_count; i++)
		if (!strcmp(nt_layouts[i].name, row))
			made->row = &nt_layouts[i];
	assert_non_null(made->row);
	made->common = made->row->common;
	fake_init(&made->fake);
	ops = *made->fake.target.ops;
	ops.region = fake_region;
	made->fake.target.ops = &ops;
	made->fake.target.bits = made->row->bits;
	made->process.bits = made->row->bits;
	made->process.os_build = made->row->first_build;
	assert_int_equal(memory_init(&made->memory, &made->fake.target), 0);
	walk_init(&made->walk);
	return made;
}

static inline void made_free(struct made *made)
{
	claims_release(&made->nt.claims);
	walk_release(&made->walk);
	memory_release(&made->memory);
	fake_release(&made->fake);
	free(made);
}

/* Writes the header of a block of size bytes, the last 8 bits of it as they are. */
static inline void made_header(struct made *made, uint64_t entry, uint64_t size_bytes,
	uint32_t previous, uint8_t flags, uint64_t unused)
{
	uint64_t units = size_bytes / made->common->unit;
	uint64_t tag = (units & 0xff) ^ (units >> 8) ^ flags;
	uint64_t offset = made->segment == MADE_HEAP ? 0 : 1 + (entry - made->segment) / 0x10000;
	uint64_t plain = units | (uint64_t)flags << 16 | tag << 24 | (uint64_t)previous << 32 |
			 offset << 48 | unused << 56;

	assert_true(units <= 0xffff && units * made->common->unit == size_bytes);
	fake_put(&made->fake, entry + made->common->entry_coded, plain ^ made->key, 8);
}

/* The next block. Returns its header's address. */
static inline uint64_t made_block(
	struct made *made, uint64_t size_bytes, uint8_t flags, uint8_t unused)
{
	uint64_t entry = made->at;

	made_header(made, entry, size_bytes, made->previous, flags, unused);
	made->previous = (uint32_t)(size_bytes / made->common->unit);
	made->at += size_bytes;
	return entry;
}

static inline void made_expect(struct made *made, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, uint64_t record)
{
	assert_true(made->expected_count < MADE_BLOCKS_MAX);
	made->expected[made->expected_count++] = (struct walked_block){.addr = addr,
		.requested_bytes = requested_bytes,
		.overhead_bytes = overhead_bytes,
		.record = record};
}

/* A block of the program's, that must be found. */
static inline uint64_t made_busy(struct made *made, uint64_t size_bytes, uint8_t unused)
{
	uint64_t entry = made_block(made, size_bytes, NT_BLOCK_BUSY, unused);

	made_expect(made, entry + made->common->entry_bytes, size_bytes - unused, unused, 0);
	return entry;
}

/* A segment's fields and its memory; blocks go behind first_bytes. */
static inline void made_segment(struct made *made, uint64_t addr, uint64_t committed_bytes,
	uint64_t reserved_bytes, uint64_t first_bytes)
{
	const struct nt_common_layout *c = made->common;

	fake_map(&made->fake, addr, committed_bytes);
	fake_put(&made->fake, addr + c->segment_signature, NT_HEAP_SIGNATURE, 4);
	made_put_ptr(made, addr + c->segment_heap, MADE_HEAP);
	made_put_ptr(made, addr + c->segment_base, addr);
	fake_put(&made->fake, addr + c->segment_pages, reserved_bytes / NT_PAGE_BYTES, 4);
	made_put_ptr(made, addr + c->segment_first, addr + first_bytes);
	made_put_ptr(made, addr + c->segment_end, addr + reserved_bytes);
	made_list_init(made, addr + c->segment_holes);
	if (addr != MADE_HEAP)
		made_list_add(made, MADE_HEAP + made->row->segment_list, addr + c->segment_link);
	made->segment = addr;
	made_header(made, addr, first_bytes, 0, NT_BLOCK_BUSY, NT_UNUSED_OWN);
	made->previous = (uint32_t)(first_bytes / c->unit);
	made->at = addr + first_bytes;
}

/* The heap at MADE_HEAP with its first segment. */
static inline void made_heap(struct made *made, uint64_t committed_bytes, uint64_t reserved_bytes)
{
	const struct nt_layout *row = made->row;
	uint64_t first = (row->heap_bytes + 15u) / 16 * 16;

	made->key = MADE_CODE & 0xffffffffffff; /* UnusedBytes and SegmentOffset are in clear */
	made_segment(made, MADE_HEAP, committed_bytes, reserved_bytes, first);
	fake_put(&made->fake, MADE_HEAP + row->encode_mask, 0x100000, 4);
	fake_put(&made->fake, MADE_HEAP + row->encoding + row->common->entry_coded, made->key, 8);
	fake_put(&made->fake, MADE_HEAP + row->signature, NT_HEAP_OBJECT_SIGNATURE, 4);
	fake_put(&made->fake, MADE_HEAP + row->valid_bytes, row->heap_bytes, 2);
	made_list_init(made, MADE_HEAP + row->virtual_list);
	made_list_init(made, MADE_HEAP + row->segment_list);
	made_list_add(made, MADE_HEAP + row->segment_list, MADE_HEAP + row->common->segment_link);
}

/* Says that a range is not committed, by a descriptor in the block at entry. */
static inline void made_hole(struct made *made, uint64_t entry, uint64_t addr, uint64_t bytes)
{
	uint64_t descriptor = entry + made->common->entry_bytes;
	uint64_t pages = made->segment + (made->row->bits == 64 ? 0x50 : 0x2c);

	fake_put(&made->fake, pages, fake_get(&made->fake, pages, 4) + bytes / NT_PAGE_BYTES, 4);
	made_put_ptr(made, descriptor + made->common->hole_address, addr);
	made_put_ptr(made, descriptor + made->common->hole_size, bytes);
	made_list_add(made, made->segment + made->common->segment_holes,
		descriptor + made->common->hole_link);
}

/* The block with the descriptor of what follows it: from addr on and bytes long, which at a segment's
 * end is 0. */
static inline void made_end(struct made *made, uint64_t addr, uint64_t bytes)
{
	uint64_t size = made->common->hole_bytes + made->common->entry_bytes, entry;

	if (made->at < addr - size)
		made_block(made, addr - size - made->at, 0, 0);
	entry = made_block(made, size, NT_BLOCK_BUSY, NT_UNUSED_END);
	made_hole(made, entry, addr, bytes);
	made->at = addr + bytes;
	made->previous = 0;
}

static inline void made_walk(struct made *made)
{
	made->nt = (struct nt_walk){.memory = &made->memory,
		.process = &made->process,
		.walk = &made->walk,
		.probes_left = NT_PROBES};
	claims_init(&made->nt.claims, target_committed_bytes(&made->fake.target));
	assert_int_equal(nt_backend_walk(&made->nt, MADE_HEAP), 0);
}

static inline int made_by_addr(const void *a, const void *b)
{
	const struct walked_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* All that was expected was found and nothing else. */
static inline void made_assert_blocks(struct made *made)
{
	qsort(made->expected, made->expected_count, sizeof(made->expected[0]), made_by_addr);
	if (made->walk.block_count)
		qsort(made->walk.blocks, made->walk.block_count, sizeof(made->walk.blocks[0]),
			made_by_addr);
	for (size_t i = 0; i < made->expected_count && i < made->walk.block_count; i++) {
		const struct walked_block *want = &made->expected[i], *got = &made->walk.blocks[i];

		assert_int_equal(got->addr, want->addr);
		assert_int_equal(got->requested_bytes, want->requested_bytes);
		assert_int_equal(got->overhead_bytes, want->overhead_bytes);
		assert_int_equal(got->record, want->record);
	}
	assert_int_equal(made->walk.block_count, made->expected_count);
}

static inline void made_assert_broken(const struct made *made, unsigned count, const char *what)
{
	assert_int_equal(made->walk.broken_count, count);
	if (what)
		assert_string_equal(made->walk.broken_what, what);
}

static inline void made_assert_missing(const struct made *made, unsigned count, const char *what)
{
	assert_int_equal(made->walk.missing_count, count);
	assert_string_equal(made->walk.missing_what, what);
}

static inline void made_assert_doubt(const struct made *made, unsigned count, const char *what)
{
	assert_int_equal(made->walk.doubt_count, count);
	if (what)
		assert_string_equal(made->walk.doubt_what, what);
}

/* Calls test() with a fresh process of each layout. */
static inline void made_each_layout(void (*test)(struct made *made))
{
	assert_int_equal(nt_layout_count, 10);
	for (size_t i = 0; i < nt_layout_count; i++) {
		struct made *made = made_new(nt_layouts[i].name);

		test(made);
		made_free(made);
	}
}

#endif
