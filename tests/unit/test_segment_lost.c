/* What could get lost in a segment heap without a word, is noted. */
#include "tests/unit/t.h"

#include "tests/unit/segment_zoo.h"

static void flags_put(struct zoo *z, unsigned index, unsigned flags)
{
	fake_put(&z->s.fake, descriptor(z, index) + z->s.l->d_flags, flags, 1);
}

static void units_put(struct zoo *z, unsigned index, unsigned units)
{
	fake_put(&z->s.fake, descriptor(z, index) + z->s.l->d_units, units, 1);
}

static void assert_noted(struct zoo *z, size_t blocks, const char *what)
{
	seg_walk(&z->s);
	assert_int_equal(z->s.walk.block_count, blocks);
	assert_true(z->s.walk.broken_count > 0);
	assert_string_equal(z->s.walk.broken_what, what);
	seg_release(&z->s);
}

/* ---------------------------------------------------------------- page ranges */

/* Ranges begin at the descriptors 0, 1 and 3, the last one has four; the rest is free. */
TEST(a_free_range_is_passed_whatever_its_length_says)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		uint64_t far = seg_range(&z.s, z.segment, 12, 200, 2, 3, 0, false);

		units_put(&z, 7, 200 - 7 - z.s.l->first_index);
		seg_walk(&z.s);
		assert_int_equal(z.s.walk.broken_count, 0);
		assert_int_equal(z.s.walk.block_count, ZOO_BLOCKS + 1);
		assert_block(&z.s, ZOO_BLOCKS, far, 0x2000, 0, 0);
		seg_release(&z.s);
	}
}

TEST(a_free_range_that_covers_one_in_use_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		seg_range(&z.s, z.segment, 12, 200, 2, 3, 0, false);
		units_put(&z, 7, 220);
		assert_noted(&z, ZOO_BLOCKS + 1, "page range in use within a free one");
	}
}

TEST(a_free_range_past_its_segment_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		seg_range(&z.s, z.segment, 12, 200, 2, 3, 0, false);
		units_put(&z, 7, 255);
		assert_noted(&z, ZOO_BLOCKS + 1, "free page range past its segment");
	}
}

/* What free ranges leave behind within them says nothing. */
TEST(old_signatures_within_a_free_range_are_no_doubt)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		units_put(&z, 7, 20);
		fake_put(&z.s.fake, descriptor(&z, 9), 0xccddccdd, 4);
		fake_put(&z.s.fake, descriptor(&z, 10) + z.s.l->d_flags, 2, 1);
		fake_put(&z.s.fake, descriptor(&z, 10), 0xccddccdd, 4);
		fake_put(&z.s.fake, descriptor(&z, 10) + z.s.l->d_flags, 1, 1);
		zoo_end(&z, ZOO_BLOCKS, 0);
	}
}

TEST(a_range_that_lost_its_first_flag_is_noted)
{
	static const unsigned flags[] = {0, 1, 9};
	struct zoo z;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		EACH_ZOO(&z)
		{
			flags_put(&z, 3, flags[i]);
			assert_noted(&z, ZOO_BLOCKS - 1,
				"free page range with the signature of one in use");
		}
	}
}

TEST(an_lfh_range_that_became_another_is_noted)
{
	static const unsigned flags[] = {7, 3};
	struct zoo z;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		EACH_ZOO(&z)
		{
			flags_put(&z, 3, flags[i]);
			assert_noted(&z, ZOO_BLOCKS - 1 + i, "what looks like an LFH subsegment");
		}
	}
}

TEST(a_range_of_no_known_kind_is_noted)
{
	static const unsigned flags[] = {0x13, 0x17, 0x1f};
	struct zoo z;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		EACH_ZOO(&z)
		{
			flags_put(&z, 0, flags[i]);
			assert_noted(&z, ZOO_BLOCKS - 1, "page range of no known kind");
		}
	}
}

/* A block may hold what was a subsegment, of which nothing is live any more. */
TEST(what_was_an_lfh_subsegment_is_no_doubt)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		struct fake_lfh lfh;

		lfh = seg_lfh(&z.s, seg_range(&z.s, z.segment, 12, 100, 4, 3, 0, false), 0x4000,
			0x60, 0x60 / z.s.l->unit);
		assert_true(lfh.count);
		zoo_end(&z, ZOO_BLOCKS + 1, 0);
	}
}

TEST(a_range_that_covers_another_is_noted_and_ends_there)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		units_put(&z, 0, 2);
		assert_noted(&z, ZOO_BLOCKS, "page range that covers another one");
	}
}

/* ---------------------------------------------------------------- page segments */

TEST(a_page_segment_at_an_odd_place_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		z.s.segment += 0x1000;
		seg_range(&z.s, seg_segment(&z.s, FAKE_HEAP, 0), 12, 5, 1, 3, 0, false);
		assert_noted(&z, ZOO_BLOCKS, "page segment at an odd place");
	}
}

TEST(units_are_no_larger_than_any_known)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		if (z.s.l->context_bytes)
			fake_put(
				&z.s.fake, seg_context(&z.s, FAKE_HEAP, 1) + z.s.l->c_shift, 17, 1);
		seg_walk(&z.s);
		assert_int_equal(z.s.walk.block_count, ZOO_BLOCKS);
		assert_int_equal(z.s.walk.broken_count, z.s.l->context_bytes != 0);
		if (z.s.l->context_bytes)
			assert_string_equal(
				z.s.walk.broken_what, "segment context of impossible units");
		seg_release(&z.s);
	}
}

/* ---------------------------------------------------------------- LFH */

TEST(blocks_neither_free_nor_in_use_are_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, z.lfh + z.s.l->l_bitmap, 0, 1);
		assert_noted(&z, ZOO_BLOCKS - 1, "LFH blocks neither free nor in use");
	}
}

TEST(more_blocks_free_and_in_use_than_there_are_are_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		uint64_t count = fake_get(&z.s.fake, z.lfh + z.s.l->l_count, 2);

		fake_put(&z.s.fake, z.lfh + z.s.l->l_count, count / 2, 2);
		assert_noted(&z, ZOO_BLOCKS, "more LFH blocks free and in use than there are");
	}
}

TEST(withheld_blocks_may_be_neither_free_nor_in_use)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		uint64_t free_count = fake_get(&z.s.fake, z.lfh + z.s.l->l_count - 2, 2);

		if (!z.s.l->l_withheld) {
			seg_release(&z.s);
			continue;
		}
		fake_put(&z.s.fake, z.lfh + z.s.l->l_withheld, 3, 1);
		fake_put(&z.s.fake, z.lfh + z.s.l->l_count - 2, free_count - 3, 2);
		zoo_end(&z, ZOO_BLOCKS, 0);
	}
}

TEST(an_lfh_subsegment_that_became_a_vs_block_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		uint64_t bits = z.inner - z.s.l->v_header + z.s.l->v_bits;

		fake_put(&z.s.fake, bits, fake_get(&z.s.fake, bits, 4) & ~0x100u, 4);
		assert_noted(&z, ZOO_BLOCKS, "what looks like an LFH subsegment");
	}
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

TEST(a_stack_that_leads_nowhere_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		put_extra(&z, promise(&z, false), 0x0101, 0x66666660);
		assert_noted(&z, ZOO_BLOCKS + 1, PROMISED);
	}
}

TEST(a_stack_s_mark_that_is_not_there_is_noted_under_ust)
{
	struct zoo z;

	for (unsigned ust = 0; ust < 2; ust++) {
		EACH_ZOO(&z)
		{
			promise(&z, ust);
			if (ust)
				assert_noted(&z, ZOO_BLOCKS + 1, PROMISED);
			else
				zoo_end(&z, ZOO_BLOCKS + 1, 0);
		}
	}
}

/* The allocation found no room for its stack; or the extra holds what a user set. */
TEST(a_block_may_have_no_stack)
{
	static const unsigned marks[] = {0x0101, 0x0020, 0, 0x0101};
	struct zoo z;

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		EACH_ZOO(&z)
		{
			/* What says that there is none, if not 0: the extra's mark, where no record can be. */
			uint64_t none = z.s.l->bits == 64 ? 0x0101000000000000 : 0x01010000;

			put_extra(&z, promise(&z, true), marks[i], i == 3 ? none : 0);
			zoo_end(&z, ZOO_BLOCKS + 1, 0);
		}
	}
}
