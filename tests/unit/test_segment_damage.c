#include "tests/unit/t.h"

#include "tests/unit/fake_segment.h"

/* A heap with all kinds of blocks: a back-end range, VS blocks with LFH among them, LFH, and large
 * blocks. The fields are addresses. */
struct zoo {
	uint64_t segment, range, vs, lfh, inner, chunks[4], nodes[3];
};

static struct zoo zoo;

static void zoo_vs(void)
{
	struct fake_vs vs;
	struct fake_lfh inner;

	zoo.vs = seg_range(zoo.segment, 12, seg.l->first_index + 1, 2, 15, 0, false);
	vs = seg_vs(FAKE_HEAP, zoo.vs);
	zoo.chunks[0] = seg_chunk(&vs, 0x100, true, 0) - seg.l->at.chunk.bytes;
	zoo.chunks[1] = seg_chunk(&vs, 0x140, false, 0) - seg.l->at.chunk.bytes;
	zoo.chunks[2] = seg_chunk(&vs, 0x180, true, 0x30) - seg.l->at.chunk.bytes;
	zoo.inner = seg_chunk(&vs, 0x800, true, 0x2010);
	zoo.chunks[3] = seg_chunk(&vs, 0x400, true, 0) - seg.l->at.chunk.bytes;
	seg_vs_end(&vs, true);
	inner = seg_lfh(zoo.inner, 0x800 - seg.l->at.chunk.bytes - 0x10, 0x30, 0x30 / seg.l->unit);
	seg_lfh_block(&inner, 1, 5);
}

static void zoo_large(void)
{
	uint64_t tree = FAKE_HEAP + seg.l->at.heap.large_tree;

	for (unsigned i = 0; i < 3; i++) {
		zoo.nodes[i] = seg_meta(0x30);
		seg_ptr(zoo.nodes[i] + seg.l->at.large.address, 0x40000000 + 0x1000000 * (i ^ 1));
		seg_ptr(zoo.nodes[i] + seg.l->at.large.pages, 0x20000);
		if (i)
			seg_ptr(zoo.nodes[i] + 2ull * seg.l->ptr, zoo.nodes[0]);
	}
	seg_ptr(tree, zoo.nodes[0]);
	seg_ptr(zoo.nodes[0], zoo.nodes[1]);
	seg_ptr(zoo.nodes[0] + seg.l->ptr, zoo.nodes[2]);
}

#define ZOO_BLOCKS 9 /* 3 large blocks, 1 range, 3 VS blocks, 1 LFH block in VS, 1 LFH block */

static void zoo_init(const struct fake_layout *l)
{
	struct fake_lfh lfh;

	seg_init(l);
	zoo.segment = seg_segment(FAKE_HEAP, 0);
	zoo.range = seg_range(zoo.segment, 12, l->first_index, 1, 3, 9, false);
	zoo_vs();
	zoo.lfh = seg_range(zoo.segment, 12, l->first_index + 3, 4, 11, 0, false);
	lfh = seg_lfh(zoo.lfh, 0x4000, 0x60, 0x60 / l->unit);
	seg_lfh_block(&lfh, 2, 3);
	zoo_large();
}

/* Walks the zoo and checks the result. broken: number of invalid or unmapped places. */
static void zoo_end(size_t blocks, unsigned broken)
{
	seg_walk();
	assert_int_equal(seg.walk.block_count, blocks);
	assert_int_equal(seg.walk.broken_count + seg.walk.missing_count, broken);
}

static void zoo_run(void (*test)(unsigned i), unsigned times)
{
	for (size_t k = 0; k < SEG_LAYOUTS; k++) {
		for (unsigned i = 0; i < times; i++) {
			zoo_init(seg_layout(k));
			test(i);
			seg_release();
		}
	}
}

/* Defines a test that runs with a fresh zoo of each layout. ZOO_TIMES repeats the test for each i
 * below `times`. */
#define ZOO_TEST(name) ZOO_TIMES(name, 1)
#define ZOO_TIMES(name, times)                                                                     \
	static void name##_in(unsigned i);                                                         \
	TEST(name)                                                                                 \
	{                                                                                          \
		zoo_run(name##_in, times);                                                         \
	}                                                                                          \
	static void name##_in(unsigned i __attribute__((unused)))

static uint64_t descriptor(unsigned index)
{
	return zoo.segment + (uint64_t)(seg.l->first_index + index) * seg.l->at.range.bytes;
}

ZOO_TEST(everything_is_found_when_nothing_is_wrong)
{
	zoo_end(ZOO_BLOCKS, 0);
}

/* ---------------------------------------------------------------- page ranges */

ZOO_TEST(a_range_without_its_signature_is_noted)
{
	fake_write(descriptor(0), 0xccddccde, 4);
	zoo_end(ZOO_BLOCKS - 1, 1);
}

ZOO_TEST(a_segment_that_is_not_there_is_noted)
{
	uint64_t second = seg_segment(FAKE_HEAP, 0);

	fake_unmap(second);
	seg_walk();
	assert_int_equal(seg.walk.block_count, ZOO_BLOCKS);
	assert_true(seg.walk.missing_count > 0);
}

/* ---------------------------------------------------------------- VS */

static void sizes_write(unsigned i, unsigned units, unsigned previous)
{
	uint64_t at = zoo.chunks[i], key = at ^ seg.heap_key;

	if (seg.l->bits == 64)
		fake_write(at,
			((uint64_t)units << 16 | (uint64_t)previous << 32 | 1ull << 48) ^ key, 8);
	else
		fake_write(at, (units << 1 | previous << 16 | 0x80000000u) ^ key, 4);
}

ZOO_TEST(a_chunk_that_does_not_know_the_one_before_ends_its_subsegment)
{
	sizes_write(2, 0x180 / seg.l->unit, 0x150 / seg.l->unit);
	zoo_end(ZOO_BLOCKS - 3, 1);
}

ZOO_TEST(a_chunk_smaller_than_what_is_unused_is_noted)
{
	fake_write(zoo.chunks[2] + 0x180 - 2, 0x181, 2);
	zoo_end(ZOO_BLOCKS, 1);
}

ZOO_TEST(a_subsegment_without_its_signature_is_noted)
{
	fake_write(zoo.vs + seg.l->at.vs_subsegment.signature, 0x1234, 2);
	zoo_end(ZOO_BLOCKS - 4, 1);
}

/* ---------------------------------------------------------------- LFH */

/* More blocks cross a page than are withheld, so the walk cannot identify the withheld ones. */
ZOO_TEST(withheld_blocks_that_cannot_be_identified_are_noted)
{
	for (unsigned k = 0; k < 0x80; k++)
		seg_lfh_set(&(struct fake_lfh){.addr = zoo.lfh}, k, 0);
	fake_write(zoo.lfh + seg.l->at.subsegment.free_count,
		fake_get(zoo.lfh + seg.l->at.subsegment.block_count, 2) - 0x80, 2);
	if (seg.l->at.subsegment.withheld)
		fake_write(zoo.lfh + seg.l->at.subsegment.withheld, 1, 1);
	zoo_end(ZOO_BLOCKS - 1 + 0x80, seg.l->at.subsegment.withheld != 0);
}

/* ---------------------------------------------------------------- everything */

ZOO_TEST(blocks_are_no_more_than_memory)
{
	seg_walk_limited(0x1000);
	assert_true(seg.walk.block_count < ZOO_BLOCKS);
	assert_true(seg.walk.broken_count > 0);
}

/* ---------------------------------------------------------------- large blocks */

static uint64_t tree_at(void)
{
	return FAKE_HEAP + seg.l->at.heap.large_tree;
}

/* The fields LargeReservedPages and LargeCommittedPages follow the tree. */
static void committed_write(unsigned pages)
{
	seg_ptr(tree_at() + 3ull * seg.l->ptr, pages);
}

static void min_write(uint64_t node)
{
	seg_ptr(tree_at() + seg.l->ptr, node);
}

ZOO_TEST(as_many_as_the_heap_counts_are_no_doubt)
{
	committed_write(3 * 0x20);
	min_write(zoo.nodes[1]);
	zoo_end(ZOO_BLOCKS, 0);
}

ZOO_TEST(a_large_block_of_no_size_costs_no_other)
{
	seg_ptr(zoo.nodes[0] + seg.l->at.large.pages, 0xfff);
	zoo_end(ZOO_BLOCKS - 1, 1);
}

/* ---------------------------------------------------------------- lengths of large blocks */

ZOO_TIMES(a_large_block_ends_where_its_memory_does, 2)
{
	fake_know_regions();
	fake_map(0x40000000, 0x18000 + (i ? 0x8000 : 0x7000));
	fake_map(0x41000000, 0x10000);
	fake_map(0x41010000, 0x10000);
	zoo_end(ZOO_BLOCKS - !i, !i);
}

/* If regions are unknown, the total memory is the limit. */
ZOO_TEST(a_large_block_larger_than_memory_is_no_block)
{
	seg_ptr(zoo.nodes[0] + seg.l->at.large.pages, 0x20000000);
	seg_walk_limited(0x8000000);
	assert_int_equal(seg.walk.block_count, ZOO_BLOCKS - 1);
	assert_int_equal(seg.walk.broken_count, 1);
}

/* ---------------------------------------------------------------- possible losses */

static void flags_write(unsigned index, unsigned flags)
{
	fake_write(descriptor(index) + seg.l->at.range.flags, flags, 1);
}

static void units_write(unsigned index, unsigned units)
{
	fake_write(descriptor(index) + seg.l->at.range.unit, units, 1);
}

static void assert_noted(size_t blocks, const char *what)
{
	seg_walk();
	assert_int_equal(seg.walk.block_count, blocks);
	assert_true(seg.walk.broken_count > 0);
	assert_string_equal(seg.walk.broken_what, what);
}

/* ---------------------------------------------------------------- page ranges */

/* Ranges begin at the descriptors 0, 1 and 3. The last range has four units, and all later units
 * are free. */
ZOO_TEST(a_free_range_is_skipped_whatever_its_length_is)
{
	uint64_t far = seg_range(zoo.segment, 12, 200, 2, 3, 0, false);

	units_write(7, 200 - 7 - seg.l->first_index);
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, ZOO_BLOCKS + 1);
	assert_block(ZOO_BLOCKS, far, 0x2000, 0, 0);
}

/* Leftover bytes within free ranges have no meaning. */
ZOO_TEST(old_signatures_within_a_free_range_are_no_doubt)
{
	units_write(7, 20);
	fake_write(descriptor(9), 0xccddccdd, 4);
	fake_write(descriptor(10) + seg.l->at.range.flags, 2, 1);
	fake_write(descriptor(10), 0xccddccdd, 4);
	fake_write(descriptor(10) + seg.l->at.range.flags, 1, 1);
	zoo_end(ZOO_BLOCKS, 0);
}

ZOO_TIMES(a_range_of_no_known_kind_is_noted, 3)
{
	static const unsigned flags[3] = {0x13, 0x17, 0x1f};

	flags_write(0, flags[i]);
	assert_noted(ZOO_BLOCKS - 1, "page range of an unknown kind");
}

/* A block may contain an old subsegment without live blocks. */
ZOO_TEST(what_was_an_lfh_subsegment_is_no_doubt)
{
	struct fake_lfh lfh;

	lfh = seg_lfh(
		seg_range(zoo.segment, 12, 100, 4, 3, 0, false), 0x4000, 0x60, 0x60 / seg.l->unit);
	assert_true(lfh.count);
	zoo_end(ZOO_BLOCKS + 1, 0);
}

/* ---------------------------------------------------------------- page segments */

ZOO_TEST(a_page_segment_at_an_odd_place_is_noted)
{
	seg.segment += 0x1000;
	seg_range(seg_segment(FAKE_HEAP, 0), 12, 5, 1, 3, 0, false);
	assert_noted(ZOO_BLOCKS, "misaligned page segment");
}

/* ---------------------------------------------------------------- LFH */

ZOO_TEST(withheld_blocks_may_be_neither_free_nor_in_use)
{
	uint64_t free_count = fake_get(zoo.lfh + seg.l->at.subsegment.free_count, 2);

	if (!seg.l->at.subsegment.withheld)
		return;
	fake_write(zoo.lfh + seg.l->at.subsegment.withheld, 3, 1);
	fake_write(zoo.lfh + seg.l->at.subsegment.free_count, free_count - 3, 2);
	zoo_end(ZOO_BLOCKS, 0);
}

ZOO_TEST(an_lfh_subsegment_that_became_a_vs_block_is_noted)
{
	uint64_t bits = zoo.inner - seg.l->at.chunk.bytes + seg.l->at.chunk.bits;

	fake_write(bits, fake_get(bits, 4) & ~0x100u, 4);
	assert_noted(ZOO_BLOCKS, "possible LFH subsegment");
}

/* ---------------------------------------------------------------- stacks */

#define EXTRA 0x4000u
#define EXTRA_BLOCK_BYTES 0x100u

/* Adds a block whose header announces a stack. Returns the start of the block's last 40h bytes,
 * which are unused. */
static uint64_t promise(bool is_ust)
{
	struct fake_vs vs;

	seg.process.global_flag = is_ust ? 0x1000 : 0;
	vs = seg_vs(FAKE_HEAP, seg_range(zoo.segment, 12, 50, 1, 15, 0, false));
	seg_chunk(&vs, EXTRA_BLOCK_BYTES, true, EXTRA | 0x40);
	seg_vs_end(&vs, true);
	memset(fake_bytes(vs.next - 0x40, 0x3e), 0xdd, 0x3e);
	return vs.next - 0x40;
}

static void write_extra(uint64_t addr, unsigned mark, uint64_t record)
{
	unsigned unit = seg.l->unit;

	memset(fake_bytes(addr, unit), 0, unit);
	fake_write(addr + 2, mark, 2);
	seg_ptr(addr + unit, record);
}

#define PROMISED "block without the stack that its end announces"

ZOO_TIMES(a_stack_s_mark_that_is_not_there_is_noted_under_ust, 2)
{
	promise(i);
	if (i)
		assert_noted(ZOO_BLOCKS + 1, PROMISED);
	else
		zoo_end(ZOO_BLOCKS + 1, 0);
}

/* The stack database was full, or the extra part holds a user's value. */
ZOO_TIMES(a_block_may_have_no_stack, 4)
{
	static const unsigned marks[4] = {0x0101, 0x0020, 0, 0x0101};

	/* Value that means no stack. If it is not 0, it is the extra part's mark, which cannot be a
	 * record's address. */
	uint64_t none = seg.l->bits == 64 ? 0x0101000000000000 : 0x01010000;

	write_extra(promise(true), marks[i], i == 3 ? none : 0);
	zoo_end(ZOO_BLOCKS + 1, 0);
}
