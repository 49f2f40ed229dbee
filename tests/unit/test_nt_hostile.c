#include "tests/unit/t.h"

#include "tests/unit/nt_made.h"

static uint64_t entries[8]; /* blocks of make_plain() */

/* Makes a heap with one committed part and 8 expected blocks. */
static void make_plain(void)
{
	made_heap(0x4000, 0x10000);
	for (size_t i = 0; i < 8; i++)
		entries[i] = made_busy(0x100 + 0x20 * i, 8);
	made_end(MADE_HEAP + 0x4000, 0xc000);
}

static void forget_block(uint64_t entry)
{
	size_t kept = 0;

	for (size_t i = 0; i < made.expected_count; i++)
		if (made.expected[i].addr != entry + made.shape->unit)
			made.expected[kept++] = made.expected[i];
	assert_int_equal(kept + 1, made.expected_count);
	made.expected_count = kept;
}

/* ---------------------------------------------------------------- headers */

MADE_TIMES(a_damaged_header_costs_its_own_block, X64 | X86, 32)
{
	uint64_t at;

	make_plain();
	at = entries[3] + made.shape->header_at;
	fake_write(at, fake_get(at, 4) ^ (1u << i), 4);
	forget_block(entries[3]);
	made_walk_and_assert(1, "block whose checksum is wrong");
	assert_int_equal(made.walk.broken_addr, entries[3]);
}

MADE_TEST(a_block_that_does_not_know_the_one_before_is_counted_and_found, X64)
{
	make_plain();
	made_header(entries[5], 0x100 + 0x20 * 5, 0x77, NT_BLOCK_BUSY, 8);
	made_walk_and_assert(1, "block that does not follow the previous one");
}

/* The program's bytes resemble a block header. They lie in a block whose own header is damaged. */
MADE_TEST(what_looks_like_a_header_is_no_block_unless_the_next_agrees, X64)
{
	make_plain();
	made_header(entries[3] + 0x20, 0x50, 0x2, NT_BLOCK_BUSY, 8);
	fake_write(entries[3] + 8, 0, 4);
	forget_block(entries[3]);
	made_walk_and_assert(1, "block whose checksum is wrong");
}

/* ---------------------------------------------------------------- uncommitted ranges */

MADE_TIMES(a_hole_without_a_descriptor_is_counted_and_the_walk_goes_on_behind_it, X64, 2)
{
	struct target_ops ops = *fake.target.ops;
	uint64_t second = MADE_HEAP + 0x9000;

	ops.region = i ? ops.region : NULL;
	fake.target.ops = &ops;
	made_heap(0x4000, 0x10000);
	made_busy(0x40, 8);
	made_block(MADE_HEAP + 0x4000 - made.at, 0, 0);
	made.at = second;
	made.previous = 0;
	fake_map(second, 0x2000);
	made_busy(0x50, 9);
	made_busy(0x60, 9);
	made_end(second + 0x2000, 0x5000);
	made_walk_and_assert(0, NULL);
	made_assert_missing(1, "heap memory");
	assert_int_equal(made.walk.missing_addr, MADE_HEAP + 0x4000);
}

MADE_TIMES(impossible_holes_are_counted_and_left_out, X64, 8)
{
	static const struct {
		uint64_t addr, bytes;
	} wrong[8] = {
		{MADE_HEAP + 0x2000, 0},
		{MADE_HEAP + 0x2000, (uint64_t)1 << 63},
		{MADE_HEAP + 0x2000, 0x10000},
		{MADE_HEAP - 0x1000, 0x1000},
		{MADE_HEAP, 0x4000},
		{MADE_HEAP + 0x10000, 0x1000},
		{UINT64_MAX, 1},
		{0, UINT64_MAX},
	};

	make_plain();
	made_hole(entries[7], wrong[i].addr, wrong[i].bytes);
	made_walk_and_assert(1, "impossible uncommitted range");
}

MADE_TEST(holes_that_overlap_are_counted_and_joined, X64)
{
	make_plain();
	made_hole(entries[7], MADE_HEAP + 0x5000, 0x2000);
	made_walk_and_assert(1, "uncommitted ranges that overlap");
	assert_int_equal(made.walk.heaps[0].committed_bytes, 0x4000);
}

/* ---------------------------------------------------------------- segments */

MADE_TIMES(a_segment_of_another_heap_is_counted_and_left_out, X64, 3)
{
	uint64_t addr = MADE_HEAP + 0x100000;
	uint64_t fields[] = {
		made.shape->segment_signature, made.shape->segment_heap, made.shape->segment_base};

	make_plain();
	made_segment(addr, 0x1000, 0x1000, 0x70);
	made_block(0x100, NT_BLOCK_BUSY, 8);
	fake_write(addr + fields[i], 0x1234, 4);
	made_walk_and_assert(1, "segment of another heap");
}

MADE_TIMES(a_segment_of_an_impossible_size_is_counted_and_left_out, X64, 4)
{
	const struct made_nt_shape *c = made.shape;
	uint64_t addr = MADE_HEAP + 0x100000;

	make_plain();
	made_segment(addr, 0x1000, 0x1000, 0x70);
	made_block(0x100, NT_BLOCK_BUSY, 8);
	if (i == 0)
		fake_write(addr + c->segment_pages, 0, 4);
	else if (i == 1)
		made_write_ptr(addr + c->segment_first, addr);
	else
		made_write_ptr(addr + c->segment_first, i == 2 ? addr + 0x1000 : UINT64_MAX);
	made_walk_and_assert(1, "segment of an impossible size");
}

MADE_TEST(no_memory_is_walked_as_a_part_of_two_segments, X64)
{
	uint64_t inner = MADE_HEAP + 0x3000;
	const struct made_nt_shape *c = made.shape;

	make_plain();
	/* A segment that lies in the last free block and claims the heap's last blocks. */
	fake_write(inner + c->segment_signature, NT_HEAP_SIGNATURE, 4);
	made_write_ptr(inner + c->segment_heap, MADE_HEAP);
	made_write_ptr(inner + c->segment_base, inner);
	fake_write(inner + c->segment_pages, 1, 4);
	made_write_ptr(inner + c->segment_first, inner + 0x100);
	made_write_ptr(inner + c->segment_last, inner + 0x1000);
	made_list_init(inner + c->segment_ucr_list);
	made_list_add(MADE_HEAP + made.row->segment_list, inner + c->segment_link);
	made.at = inner + 0x100;
	made_block(0x100, NT_BLOCK_BUSY, 8);
	made_walk_and_assert(1, "segments that overlap");
}

MADE_TIMES(no_more_memory_is_walked_than_the_process_has, X64, 2)
{
	make_plain();
	made.nt = (struct nt_walk){
		.memory = &made.memory, .process = &made.process, .walk = &made.walk};
	claims_init(&made.nt.claims, 0x3000 + 0x1000 * i);
	assert_int_equal(nt_backend_walk(&made.nt, MADE_HEAP), 0);
	if (!i)
		made.expected_count = 0;
	made_assert_broken(!i, !i ? "more heap memory than the process has" : NULL);
	made_assert_blocks();
}
