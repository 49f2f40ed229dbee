/* The walker of segment heaps: nothing that a process holds makes it crash, hang or grow. */
#include "tests/unit/t.h"

#include "tests/unit/segment_zoo.h"

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
