/* Damaged segment heaps: nothing that a process holds makes the walker crash or take what is not there; one
 * thing that makes no sense costs no other, and what gets lost is noted. */
#include "tests/unit/t.h"

#include "tests/unit/fake_segment.h"

/* Back-end range, VS with LFH in it, LFH, large blocks; where each lies. */
struct zoo {
	struct fake_segment s;
	uint64_t segment, range, vs, lfh, inner, chunks[4], nodes[3];
};

static void zoo_vs(struct zoo *z)
{
	struct fake_segment *s = &z->s;
	struct fake_vs vs;
	struct fake_lfh inner;

	z->vs = seg_range(s, z->segment, 12, s->l->first_index + 1, 2, 15, 0, false);
	vs = seg_vs(s, FAKE_HEAP, z->vs);
	z->chunks[0] = seg_chunk(s, &vs, 0x100, true, 0) - s->l->at.chunk.bytes;
	z->chunks[1] = seg_chunk(s, &vs, 0x140, false, 0) - s->l->at.chunk.bytes;
	z->chunks[2] = seg_chunk(s, &vs, 0x180, true, 0x30) - s->l->at.chunk.bytes;
	z->inner = seg_chunk(s, &vs, 0x800, true, 0x2010);
	z->chunks[3] = seg_chunk(s, &vs, 0x400, true, 0) - s->l->at.chunk.bytes;
	seg_vs_end(s, &vs, true);
	inner = seg_lfh(s, z->inner, 0x800 - s->l->at.chunk.bytes - 0x10, 0x30, 0x30 / s->l->unit);
	seg_lfh_block(s, &inner, 1, 5);
}

static void zoo_large(struct zoo *z)
{
	struct fake_segment *s = &z->s;
	uint64_t tree = FAKE_HEAP + s->l->at.heap.large_tree;

	for (unsigned i = 0; i < 3; i++) {
		z->nodes[i] = seg_meta(s, 0x30);
		seg_ptr(s, z->nodes[i] + s->l->at.large.address, 0x40000000 + 0x1000000 * (i ^ 1));
		seg_ptr(s, z->nodes[i] + s->l->at.large.pages, 0x20000);
		if (i)
			seg_ptr(s, z->nodes[i] + 2ull * s->l->ptr, z->nodes[0]);
	}
	seg_ptr(s, tree, z->nodes[0]);
	seg_ptr(s, z->nodes[0], z->nodes[1]);
	seg_ptr(s, z->nodes[0] + s->l->ptr, z->nodes[2]);
}

#define ZOO_BLOCKS 9 /* 3 large, 1 range, 3 VS, 1 LFH in VS, 1 LFH */

static void zoo_init(struct zoo *z, const struct fake_layout *l)
{
	struct fake_lfh lfh;

	seg_init(&z->s, l);
	z->segment = seg_segment(&z->s, FAKE_HEAP, 0);
	z->range = seg_range(&z->s, z->segment, 12, l->first_index, 1, 3, 9, false);
	zoo_vs(z);
	z->lfh = seg_range(&z->s, z->segment, 12, l->first_index + 3, 4, 11, 0, false);
	lfh = seg_lfh(&z->s, z->lfh, 0x4000, 0x60, 0x60 / l->unit);
	seg_lfh_block(&z->s, &lfh, 2, 3);
	zoo_large(z);
}

/* broken: places that made no sense or are not there. */
static void zoo_end(struct zoo *z, size_t blocks, unsigned broken)
{
	seg_walk(&z->s);
	assert_int_equal(z->s.walk.block_count, blocks);
	assert_int_equal(z->s.walk.broken_count + z->s.walk.missing_count, broken);
}

static void zoo_run(void (*test)(struct zoo *z, unsigned i), unsigned times)
{
	for (size_t k = 0; k < SEG_LAYOUTS; k++) {
		for (unsigned i = 0; i < times; i++) {
			struct zoo z;

			zoo_init(&z, seg_layout(k));
			test(&z, i);
			seg_release(&z.s);
		}
	}
}

/* A test of a fresh zoo z of each layout; and the same for each i below times. */
#define ZOO_TEST(name) ZOO_TIMES(name, 1)
#define ZOO_TIMES(name, times)                                                                     \
	static void name##_in(struct zoo *z, unsigned i);                                          \
	TEST(name)                                                                                 \
	{                                                                                          \
		zoo_run(name##_in, times);                                                         \
	}                                                                                          \
	static void name##_in(struct zoo *z, unsigned i __attribute__((unused)))

/* The descriptor of one of the heap's units. */
static uint64_t descriptor(const struct zoo *z, unsigned index)
{
	return z->segment + (uint64_t)(z->s.l->first_index + index) * z->s.l->at.range.bytes;
}

ZOO_TEST(everything_is_found_when_nothing_is_wrong)
{
	zoo_end(z, ZOO_BLOCKS, 0);
}

/* ---------------------------------------------------------------- page ranges */

ZOO_TEST(a_range_without_its_signature_is_noted)
{
	fake_put(&z->s.fake, descriptor(z, 0), 0xccddccde, 4);
	zoo_end(z, ZOO_BLOCKS - 1, 1);
}

ZOO_TEST(a_segment_that_is_not_there_is_noted)
{
	uint64_t second = seg_segment(&z->s, FAKE_HEAP, 0);

	fake_unmap(&z->s.fake, second);
	seg_walk(&z->s);
	assert_int_equal(z->s.walk.block_count, ZOO_BLOCKS);
	assert_true(z->s.walk.missing_count > 0);
}

/* ---------------------------------------------------------------- VS */

static void sizes_put(struct zoo *z, unsigned i, unsigned units, unsigned previous)
{
	uint64_t at = z->chunks[i], key = at ^ z->s.heap_key;

	if (z->s.l->bits == 64)
		fake_put(&z->s.fake, at,
			((uint64_t)units << 16 | (uint64_t)previous << 32 | 1ull << 48) ^ key, 8);
	else
		fake_put(&z->s.fake, at, (units << 1 | previous << 16 | 0x80000000u) ^ key, 4);
}

ZOO_TEST(a_chunk_that_does_not_know_the_one_before_ends_its_subsegment)
{
	sizes_put(z, 2, 0x180 / z->s.l->unit, 0x150 / z->s.l->unit);
	zoo_end(z, ZOO_BLOCKS - 3, 1);
}

ZOO_TEST(a_chunk_smaller_than_what_is_unused_is_noted)
{
	fake_put(&z->s.fake, z->chunks[2] + 0x180 - 2, 0x181, 2);
	zoo_end(z, ZOO_BLOCKS, 1);
}

ZOO_TEST(a_subsegment_without_its_signature_is_noted)
{
	fake_put(&z->s.fake, z->vs + z->s.l->at.vs_subsegment.signature, 0x1234, 2);
	zoo_end(z, ZOO_BLOCKS - 4, 1);
}

/* ---------------------------------------------------------------- LFH */

/* More of them than are withheld cross a page: it cannot be told which are. */
ZOO_TEST(withheld_blocks_that_cannot_be_told_are_noted)
{
	for (unsigned k = 0; k < 0x80; k++)
		fake_put(&z->s.fake, z->lfh + z->s.l->at.subsegment.bitmap + k / 4, 0x55, 1);
	fake_put(&z->s.fake, z->lfh + z->s.l->at.subsegment.free_count,
		fake_get(&z->s.fake, z->lfh + z->s.l->at.subsegment.block_count, 2) - 0x80, 2);
	if (z->s.l->at.subsegment.withheld)
		fake_put(&z->s.fake, z->lfh + z->s.l->at.subsegment.withheld, 1, 1);
	zoo_end(z, ZOO_BLOCKS - 1 + 0x80, z->s.l->at.subsegment.withheld != 0);
}

/* ---------------------------------------------------------------- all of it */

ZOO_TEST(blocks_are_no_more_than_memory)
{
	seg_walk_limited(&z->s, 0x1000);
	assert_true(z->s.walk.block_count < ZOO_BLOCKS);
	assert_true(z->s.walk.broken_count > 0);
}

/* ---------------------------------------------------------------- large blocks */

static uint64_t tree_at(const struct zoo *z)
{
	return FAKE_HEAP + z->s.l->at.heap.large_tree;
}

/* LargeReservedPages and LargeCommittedPages follow the tree. */
static void committed_put(struct zoo *z, unsigned pages)
{
	seg_ptr(&z->s, tree_at(z) + 3ull * z->s.l->ptr, pages);
}

static void min_put(struct zoo *z, uint64_t node)
{
	seg_ptr(&z->s, tree_at(z) + z->s.l->ptr, node);
}

ZOO_TEST(as_many_as_the_heap_counts_are_no_doubt)
{
	committed_put(z, 3 * 0x20);
	min_put(z, z->nodes[1]);
	zoo_end(z, ZOO_BLOCKS, 0);
}

ZOO_TEST(a_large_block_of_no_size_costs_no_other)
{
	seg_ptr(&z->s, z->nodes[0] + z->s.l->at.large.pages, 0xfff);
	zoo_end(z, ZOO_BLOCKS - 1, 1);
}

/* ---------------------------------------------------------------- how long they are */

ZOO_TIMES(a_large_block_ends_where_its_memory_does, 2)
{

	fake_know_regions(&z->s.fake);
	fake_map(&z->s.fake, 0x40000000, 0x18000 + (i ? 0x8000 : 0x7000));
	fake_map(&z->s.fake, 0x41000000, 0x10000);
	fake_map(&z->s.fake, 0x41010000, 0x10000);
	zoo_end(z, ZOO_BLOCKS - !i, !i);
}

/* Where regions are not known, memory as a whole still is. */
ZOO_TEST(a_large_block_larger_than_memory_is_no_block)
{
	seg_ptr(&z->s, z->nodes[0] + z->s.l->at.large.pages, 0x20000000);
	seg_walk_limited(&z->s, 0x8000000);
	assert_int_equal(z->s.walk.block_count, ZOO_BLOCKS - 1);
	assert_int_equal(z->s.walk.broken_count, 1);
}

/* ---------------------------------------------------------------- what could get lost */

static void flags_put(struct zoo *z, unsigned index, unsigned flags)
{
	fake_put(&z->s.fake, descriptor(z, index) + z->s.l->at.range.flags, flags, 1);
}

static void units_put(struct zoo *z, unsigned index, unsigned units)
{
	fake_put(&z->s.fake, descriptor(z, index) + z->s.l->at.range.unit, units, 1);
}

static void assert_noted(struct zoo *z, size_t blocks, const char *what)
{
	seg_walk(&z->s);
	assert_int_equal(z->s.walk.block_count, blocks);
	assert_true(z->s.walk.broken_count > 0);
	assert_string_equal(z->s.walk.broken_what, what);
}

/* ---------------------------------------------------------------- page ranges */

/* Ranges begin at the descriptors 0, 1 and 3, the last one has four; the rest is free. */
ZOO_TEST(a_free_range_is_passed_whatever_its_length_says)
{
	uint64_t far = seg_range(&z->s, z->segment, 12, 200, 2, 3, 0, false);

	units_put(z, 7, 200 - 7 - z->s.l->first_index);
	seg_walk(&z->s);
	assert_int_equal(z->s.walk.broken_count, 0);
	assert_int_equal(z->s.walk.block_count, ZOO_BLOCKS + 1);
	assert_block(&z->s, ZOO_BLOCKS, far, 0x2000, 0, 0);
}

/* What free ranges leave behind within them says nothing. */
ZOO_TEST(old_signatures_within_a_free_range_are_no_doubt)
{
	units_put(z, 7, 20);
	fake_put(&z->s.fake, descriptor(z, 9), 0xccddccdd, 4);
	fake_put(&z->s.fake, descriptor(z, 10) + z->s.l->at.range.flags, 2, 1);
	fake_put(&z->s.fake, descriptor(z, 10), 0xccddccdd, 4);
	fake_put(&z->s.fake, descriptor(z, 10) + z->s.l->at.range.flags, 1, 1);
	zoo_end(z, ZOO_BLOCKS, 0);
}

ZOO_TIMES(a_range_of_no_known_kind_is_noted, 3)
{
	static const unsigned flags[3] = {0x13, 0x17, 0x1f};

	flags_put(z, 0, flags[i]);
	assert_noted(z, ZOO_BLOCKS - 1, "page range of no known kind");
}

/* A block may hold what was a subsegment, of which nothing is live any more. */
ZOO_TEST(what_was_an_lfh_subsegment_is_no_doubt)
{
	struct fake_lfh lfh;

	lfh = seg_lfh(&z->s, seg_range(&z->s, z->segment, 12, 100, 4, 3, 0, false), 0x4000, 0x60,
		0x60 / z->s.l->unit);
	assert_true(lfh.count);
	zoo_end(z, ZOO_BLOCKS + 1, 0);
}

/* ---------------------------------------------------------------- page segments */

ZOO_TEST(a_page_segment_at_an_odd_place_is_noted)
{
	z->s.segment += 0x1000;
	seg_range(&z->s, seg_segment(&z->s, FAKE_HEAP, 0), 12, 5, 1, 3, 0, false);
	assert_noted(z, ZOO_BLOCKS, "page segment at an odd place");
}

/* ---------------------------------------------------------------- LFH */

ZOO_TEST(withheld_blocks_may_be_neither_free_nor_in_use)
{
	uint64_t free_count = fake_get(&z->s.fake, z->lfh + z->s.l->at.subsegment.free_count, 2);

	if (!z->s.l->at.subsegment.withheld)
		return;
	fake_put(&z->s.fake, z->lfh + z->s.l->at.subsegment.withheld, 3, 1);
	fake_put(&z->s.fake, z->lfh + z->s.l->at.subsegment.free_count, free_count - 3, 2);
	zoo_end(z, ZOO_BLOCKS, 0);
}

ZOO_TEST(an_lfh_subsegment_that_became_a_vs_block_is_noted)
{
	uint64_t bits = z->inner - z->s.l->at.chunk.bytes + z->s.l->at.chunk.bits;

	fake_put(&z->s.fake, bits, fake_get(&z->s.fake, bits, 4) & ~0x100u, 4);
	assert_noted(z, ZOO_BLOCKS, "what looks like an LFH subsegment");
}

/* ---------------------------------------------------------------- stacks */

#define EXTRA 0x4000u
#define EXTRA_BLOCK_BYTES 0x100u

/* One more block, which promises a stack; where its last 40h bytes, unused ones, begin. */
static uint64_t promise(struct zoo *z, bool is_ust)
{
	struct fake_segment *s = &z->s;
	struct fake_vs vs;

	s->process.global_flag = is_ust ? 0x1000 : 0;
	vs = seg_vs(s, FAKE_HEAP, seg_range(s, z->segment, 12, 50, 1, 15, 0, false));
	seg_chunk(s, &vs, EXTRA_BLOCK_BYTES, true, EXTRA | 0x40);
	seg_vs_end(s, &vs, true);
	memset(fake_bytes(&s->fake, vs.next - 0x40, 0x3e), 0xdd, 0x3e);
	return vs.next - 0x40;
}

static void put_extra(struct zoo *z, uint64_t addr, unsigned mark, uint64_t record)
{
	unsigned unit = z->s.l->unit;

	memset(fake_bytes(&z->s.fake, addr, unit), 0, unit);
	fake_put(&z->s.fake, addr + 2, mark, 2);
	seg_ptr(&z->s, addr + unit, record);
}

#define PROMISED "block without the stack that its end promises"

ZOO_TIMES(a_stack_s_mark_that_is_not_there_is_noted_under_ust, 2)
{
	promise(z, i);
	if (i)
		assert_noted(z, ZOO_BLOCKS + 1, PROMISED);
	else
		zoo_end(z, ZOO_BLOCKS + 1, 0);
}

/* The allocation found no room for its stack; or the extra holds what a user set. */
ZOO_TIMES(a_block_may_have_no_stack, 4)
{
	static const unsigned marks[4] = {0x0101, 0x0020, 0, 0x0101};

	/* What says that there is none, if not 0: the extra's mark, where no record can be. */
	uint64_t none = z->s.l->bits == 64 ? 0x0101000000000000 : 0x01010000;

	put_extra(z, promise(z, true), marks[i], i == 3 ? none : 0);
	zoo_end(z, ZOO_BLOCKS + 1, 0);
}
