/* The walker of segment heaps: nothing that a process holds makes it crash, hang or grow. */
#include "tests/unit/t.h"

#include "tests/unit/segment_zoo.h"

TEST(everything_is_found_when_nothing_is_wrong)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		zoo_end(&z, ZOO_BLOCKS, 0);
	}
}

/* ---------------------------------------------------------------- page ranges */

TEST(a_range_of_no_size_is_noted_and_passed)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, descriptor(&z, 0) + z.s.l->d_units, 0, 1);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

TEST(a_range_past_its_segment_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, descriptor(&z, 3) + z.s.l->d_units, 0xff, 1);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

TEST(a_range_without_its_signature_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, descriptor(&z, 0), 0xccddccde, 4);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

TEST(a_range_smaller_than_what_is_unused_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, descriptor(&z, 0) + z.s.l->d_unused, 0x1001, 4);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

TEST(a_list_of_segments_that_leads_round_ends)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		uint64_t second = seg_segment(&z.s, FAKE_HEAP, 0);

		seg_ptr(&z.s, second, z.segment);
		zoo_end(&z, ZOO_BLOCKS, 1);
	}
}

TEST(a_segment_that_is_not_there_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		uint64_t second = seg_segment(&z.s, FAKE_HEAP, 0);

		fake_unmap(&z.s.fake, second);
		seg_walk(&z.s);
		assert_int_equal(z.s.walk.block_count, ZOO_BLOCKS);
		assert_true(z.s.walk.missing_count > 0);
		seg_release(&z.s);
	}
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

TEST(a_chunk_of_no_size_ends_its_subsegment)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		sizes_put(&z, 2, 0, 0x140 / z.s.l->unit);
		zoo_end(&z, ZOO_BLOCKS - 3, 1);
	}
}

TEST(a_chunk_past_its_subsegment_ends_it)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		sizes_put(&z, 2, z.s.l->bits == 64 ? 0xffff : 0x7fff, 0x140 / z.s.l->unit);
		zoo_end(&z, ZOO_BLOCKS - 3, 1);
	}
}

TEST(a_chunk_that_does_not_know_the_one_before_ends_its_subsegment)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		sizes_put(&z, 2, 0x180 / z.s.l->unit, 0x150 / z.s.l->unit);
		zoo_end(&z, ZOO_BLOCKS - 3, 1);
	}
}

TEST(a_chunk_smaller_than_what_is_unused_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, z.chunks[2] + 0x180 - 2, 0x181, 2);
		zoo_end(&z, ZOO_BLOCKS, 1);
	}
}

TEST(a_subsegment_without_its_signature_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		fake_put(&z.s.fake, z.vs + z.s.l->v_signature, 0x1234, 2);
		zoo_end(&z, ZOO_BLOCKS - 4, 1);
	}
}

/* ---------------------------------------------------------------- LFH */

TEST(an_lfh_subsegment_of_impossible_offsets_is_noted)
{
	struct zoo z;

	for (unsigned damage = 0; damage < 3; damage++) {
		EACH_ZOO(&z)
		{
			uint64_t at = z.inner + z.s.l->l_offsets;
			uint64_t plain = fake_get(&z.s.fake, at, 4);

			/* The block size 0, or not a whole unit, or the first block far away. */
			if (damage == 0)
				plain ^= 0x30;
			else
				plain ^= damage == 1 ? 4 : 0x70000000;
			fake_put(&z.s.fake, at, plain, 4);
			for (unsigned k = 0; k < 3; k++) { /* more that are sound */
				struct fake_lfh lfh = seg_lfh(&z.s,
					seg_range(&z.s, z.segment, 12, 20 + 2 * k, 2, 11, 0, false),
					0x2000, 0x40 + 0x10 * k, (0x40 + 0x10 * k) / z.s.l->unit);

				seg_lfh_block(&z.s, &lfh, 0, 0);
			}
			zoo_end(&z, ZOO_BLOCKS - 1 + 3, 1);
		}
	}
}

TEST(an_lfh_subsegment_of_impossible_counts_is_noted)
{
	struct zoo z;

	for (unsigned damage = 0; damage < 2; damage++) {
		EACH_ZOO(&z)
		{
			fake_put(&z.s.fake, z.lfh + z.s.l->l_count, damage ? 0xffff : 0, 2);
			zoo_end(&z, ZOO_BLOCKS - 1, 1);
		}
	}
}

/* More of them than are withheld cross a page: it cannot be told which are. */
TEST(withheld_blocks_that_cannot_be_told_are_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		for (unsigned k = 0; k < 0x80; k++)
			fake_put(&z.s.fake, z.lfh + z.s.l->l_bitmap + k / 4, 0x55, 1);
		fake_put(&z.s.fake, z.lfh + z.s.l->l_count - 2,
			fake_get(&z.s.fake, z.lfh + z.s.l->l_count, 2) - 0x80, 2);
		if (z.s.l->l_withheld)
			fake_put(&z.s.fake, z.lfh + z.s.l->l_withheld, 1, 1);
		zoo_end(&z, ZOO_BLOCKS - 1 + 0x80, z.s.l->l_withheld != 0);
	}
}

/* ---------------------------------------------------------------- all of it */

TEST(blocks_are_no_more_than_memory)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		seg_walk_limited(&z.s, 0x1000);
		assert_true(z.s.walk.block_count < ZOO_BLOCKS);
		assert_true(z.s.walk.broken_count > 0);
		seg_release(&z.s);
	}
}

static void spoil(struct fake *fake, uint64_t *seed, uint64_t addr, size_t len, unsigned count)
{
	while (count--)
		fake_put(fake, addr + fake_random(seed) % len, fake_random(seed), 1);
}

/* Whatever bytes are wrong: it ends, and no block is larger than there is memory. */
TEST(damaged_bytes_do_no_harm)
{
	uint64_t seed = 0x5eed;

	for (unsigned i = 0; i < 600; i++) {
		struct zoo z;

		zoo_init(&z, zoo_layouts[i % 5]);
		spoil(&z.s.fake, &seed, FAKE_HEAP + z.s.l->tree, 0x300, i % 4);
		spoil(&z.s.fake, &seed, FAKE_META, 0x100, i % 3);
		spoil(&z.s.fake, &seed, z.segment, 0x180, i % 5);
		spoil(&z.s.fake, &seed, z.vs, 0x1000, i % 7);
		spoil(&z.s.fake, &seed, z.lfh, 0x60, i % 2);
		seg_walk_limited(&z.s, 0x1000000);
		assert_true(z.s.walk.block_count <= 0x1000000 / 8);
		seg_release(&z.s);
	}
}
