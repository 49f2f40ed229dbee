/* The large blocks of a segment heap: one that makes no sense costs no other, and none is lost silently. */
#include "tests/unit/t.h"

#include "tests/unit/segment_zoo.h"

static uint64_t tree_at(const struct zoo *z)
{
	return FAKE_HEAP + z->s.l->tree;
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

TEST(as_many_as_the_heap_counts_are_no_doubt)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		committed_put(&z, 3 * 0x20);
		min_put(&z, z.nodes[1]);
		zoo_end(&z, ZOO_BLOCKS, 0);
	}
}

TEST(a_tree_that_leads_round_costs_no_block)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[1] + z.s.l->n_left, z.nodes[0]);
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_parent, z.nodes[1]);
		zoo_end(&z, ZOO_BLOCKS, 1);
	}
	EACH_ZOO(&z)
	{
		for (unsigned i = 0; i < 3; i += 2)
			seg_ptr(&z.s, z.nodes[i] + z.s.l->n_left, z.nodes[0]);
		zoo_end(&z, ZOO_BLOCKS - 1, 2);
	}
	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_left, z.nodes[2]);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

TEST(a_large_block_of_no_size_costs_no_other)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_pages, 0xfff);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

TEST(a_node_that_is_not_there_costs_no_other)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_left, 0x66666660);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

/* No tree, or one side of it missing: the heap's own count tells. */
TEST(fewer_blocks_than_the_heap_counts_are_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		committed_put(&z, 3 * 0x20);
		seg_ptr(&z.s, tree_at(&z), 0);
		zoo_end(&z, ZOO_BLOCKS - 3, 1);
	}
	EACH_ZOO(&z)
	{
		committed_put(&z, 3 * 0x20);
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_right, 0);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

/* _RTL_RB_TREE.Min. */
TEST(a_tree_without_its_first_node_is_noted)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		min_put(&z, z.nodes[1]);
		seg_ptr(&z.s, tree_at(&z), 0);
		zoo_end(&z, ZOO_BLOCKS - 3, 1);
	}
	EACH_ZOO(&z)
	{
		min_put(&z, z.nodes[1]);
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_left, 0);
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

/* ---------------------------------------------------------------- how long they are */

static void know_regions(struct zoo *z, struct target_ops *ops)
{
	*ops = *z->s.fake.target.ops;
	ops->region = fake_region;
	z->s.fake.target.ops = ops;
}

TEST(a_large_block_ends_where_its_memory_does)
{
	struct target_ops ops;
	struct zoo z;

	for (unsigned i = 0; i < 2; i++) {
		EACH_ZOO(&z)
		{
			know_regions(&z, &ops);
			fake_map(&z.s.fake, 0x40000000, 0x18000 + (i ? 0x8000 : 0x7000));
			fake_map(&z.s.fake, 0x41000000, 0x10000);
			fake_map(&z.s.fake, 0x41010000, 0x10000);
			zoo_end(&z, ZOO_BLOCKS - !i, !i);
		}
	}
}

TEST(a_large_block_as_large_as_all_addresses_is_no_block)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_pages, 0xfffffffffffff000 & seg_mask(&z.s));
		zoo_end(&z, ZOO_BLOCKS - 1, 1);
	}
}

/* Where regions are not known, memory as a whole still is. */
TEST(a_large_block_larger_than_memory_is_no_block)
{
	struct zoo z;

	EACH_ZOO(&z)
	{
		seg_ptr(&z.s, z.nodes[0] + z.s.l->n_pages, 0x20000000);
		seg_walk_limited(&z.s, 0x8000000);
		assert_int_equal(z.s.walk.block_count, ZOO_BLOCKS - 1);
		assert_int_equal(z.s.walk.broken_count, 1);
		seg_release(&z.s);
	}
}
