/* What could get lost in a segment heap without a word, is noted. */
#include "tests/unit/t.h"

#include "tests/unit/segment_zoo.h"

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

ZOO_TIMES(an_lfh_range_that_became_another_is_noted, 2)
{
	static const unsigned flags[2] = {7, 3};

	flags_put(z, 3, flags[i]);
	assert_noted(z, ZOO_BLOCKS - 1 + i, "what looks like an LFH subsegment");
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

ZOO_TEST(a_range_that_covers_another_is_noted_and_ends_there)
{
	units_put(z, 0, 2);
	assert_noted(z, ZOO_BLOCKS, "page range that covers another one");
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
