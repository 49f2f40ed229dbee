/* The large blocks of a segment heap: one that makes no sense costs no other, and none is lost silently. */
#include "tests/unit/t.h"

#include "tests/unit/segment_zoo.h"

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

/* _RTL_RB_TREE.Min. */
ZOO_TIMES(a_tree_without_its_first_node_is_noted, 2)
{
	min_put(z, z->nodes[1]);
	seg_ptr(&z->s, i ? z->nodes[0] : tree_at(z), 0);
	zoo_end(z, ZOO_BLOCKS - (i ? 1 : 3), 1);
}

/* ---------------------------------------------------------------- how long they are */

static void know_regions(struct zoo *z, struct target_ops *ops)
{
	*ops = *z->s.fake.target.ops;
	ops->region = fake_region;
	z->s.fake.target.ops = ops;
}

ZOO_TIMES(a_large_block_ends_where_its_memory_does, 2)
{
	struct target_ops ops;

	know_regions(z, &ops);
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
