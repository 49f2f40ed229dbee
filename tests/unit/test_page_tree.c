/* The tree of a page heap's blocks, sound and damaged. */
#include "tests/unit/t.h"

#include "tests/unit/page_made.h"

/* How many blocks the first page heap is found to have, and what is noted. */
static void assert_broken(struct page *p, unsigned blocks, unsigned broken)
{
	unsigned found = 0;

	p->heaps[p->process.heap_count++] = ROOT_A;
	page_walk(p, TARGET_SPACE_BYTES);
	for (size_t i = 0; i < p->walk.block_count; i++)
		found += p->walk.blocks[i].heap == 0;
	assert_int_equal(found, blocks);
	assert_int_equal(p->walk.broken_count + p->walk.missing_count, broken);
	page_release(p);
}

TEST(a_tree_that_leads_round_ends)
{
	EACH_FACTS(f)
	{
		struct page p;

		page_init(&p, f);
		put_blocks(&p);
		put(&p, node_at(2) + f->right, node_at(1));
		assert_broken(&p, 3, 1);
		/* Also when the table itself is said to be a child. */
		page_init(&p, f);
		put_blocks(&p);
		child(&p, node_at(2), f->right, node_at(0));
		assert_broken(&p, 3, 1); /* it hangs on one of its parents */
		/* Twice the same. */
		page_init(&p, f);
		put_blocks(&p);
		put(&p, node_at(1) + f->left, node_at(2));
		assert_broken(&p, 2, 2);
		/* The root below itself. */
		page_init(&p, f);
		put_blocks(&p);
		child(&p, node_at(2), f->right, node_at(1));
		assert_broken(&p, 3, 1);
		/* A node that is not at a place for one. */
		page_init(&p, f);
		put_blocks(&p);
		child(&p, node_at(2), f->right, node_at(5) + 2);
		assert_broken(&p, 3, 1);
	}
}

TEST(a_tree_deeper_than_any_sound_one_ends)
{
	struct page p;

	page_init(&p, &facts[0]);
	for (unsigned k = 0; k < 200; k++) {
		node(&p, k, 8);
		if (k)
			child(&p, node_at(k - 1), p.f->left, node_at(k));
	}
	table(&p, ROOT_A, node_at(0), 200);
	assert_broken(&p, 96, 2);
}

TEST(what_hangs_elsewhere_than_on_a_damaged_node_is_found)
{
	EACH_FACTS(f)
	{
		for (unsigned bad = 0; bad < 3; bad++) {
			struct page p;

			page_init(&p, f);
			put_blocks(&p);
			put(&p, node_at(bad) + f->requested, 0x7fffffff);
			assert_broken(&p, 2, 1);
			page_init(&p, f);
			put_blocks(&p);
			put(&p, node_at(bad), NODES + 0x8000); /* its parent */
			assert_broken(&p, bad == 1 ? 3 : 2, bad == 1 ? 0 : 2);
		}
	}
}

TEST(wrong_counts_and_wild_pointers_are_noted)
{
	EACH_FACTS(f)
	{
		struct page p;

		page_init(&p, f);
		put_blocks(&p);
		table(&p, ROOT_A, node_at(1), 0xffffffff);
		assert_broken(&p, 3, 1);
		page_init(&p, f);
		put_blocks(&p);
		put(&p, node_at(2) + f->left, 0x7fff0000);
		assert_broken(&p, 3, 1);
	}
}

TEST(a_block_outside_of_its_pages_is_none)
{
	for (unsigned damage = 0; damage < 9; damage++) {
		struct page p;
		uint64_t at = node_at(2);

		page_init(&p, &facts[damage == 5]);
		put_blocks(&p);
		if (damage == 0)
			put(&p, at + p.f->requested, UINT64_MAX);
		else if (damage == 1)
			put(&p, at + p.f->user, BLOCKS);
		else if (damage == 2)
			put(&p, at + p.f->virtual_bytes, 0);
		else if (damage == 6) /* more than its pages are */
			put(&p, at + p.f->access_bytes, 0x2001);
		else if (damage == 7)
			put(&p, at + p.f->access_bytes, 0xf);
		else if (damage == 8)
			put(&p, at + p.f->access_bytes, 0);
		else if (damage > 3) { /* at the end of all addresses */
			put(&p, at + p.f->virtual_block,
				damage == 5 ? 0xfffff000 : INT64_MAX - 4095);
			put(&p, at + p.f->user, damage == 5 ? 0xfffff000 : INT64_MAX - 4095);
		} else
			put(&p, at + p.f->virtual_block, 0);
		assert_broken(&p, 2, 1);
	}
}

TEST(a_block_of_too_many_pages_is_in_doubt)
{
	struct page p;

	page_init(&p, &facts[0]);
	put_blocks(&p);
	p.heaps[p.process.heap_count++] = ROOT_A;
	put(&p, node_at(2) + p.f->virtual_bytes, 0x1000000);
	page_walk(&p, TARGET_SPACE_BYTES);
	assert_int_equal(p.walk.broken_count, 0);
	assert_int_equal(p.walk.block_count, 4);
	assert_int_equal(p.walk.doubt_count, 1);
	page_release(&p);
}

/* The information before a block, when it can be read, is about that block. */
TEST(a_block_whose_information_says_otherwise_is_in_doubt)
{
	EACH_FACTS(f)
	{
		for (unsigned odd = 0; odd < 3; odd++) {
			struct page p;
			uint64_t user = BLOCKS + 0x20000 + 0x1000 - 0x12, at = user - f->info;

			page_init(&p, f);
			put_blocks(&p);
			fake_map(&p.fake, BLOCKS + 0x20000, 0x1000);
			fake_put(&p.fake, at, odd == 1 ? 0xabcdbbba : 0xabcdbbbb, 4);
			put(&p, at + f->i_heap, ROOT_A);
			put(&p, at + f->i_requested, odd == 2 ? 0x11 : 0x12);
			put(&p, at + f->i_actual, 0x80);
			fake_put(&p.fake, at + f->i_end, 0xdcbabbbb, 4);
			p.heaps[p.process.heap_count++] = ROOT_A;
			page_walk(&p, TARGET_SPACE_BYTES);
			assert_int_equal(p.walk.broken_count, 0);
			assert_int_equal(p.walk.block_count, 4);
			assert_int_equal(p.walk.doubt_count, odd > 0);
			page_release(&p);
		}
	}
}

TEST(blocks_are_no_more_than_memory)
{
	struct page p;

	page_init(&p, &facts[0]);
	put_blocks(&p);
	p.heaps[p.process.heap_count++] = ROOT_A;
	page_walk(&p, 0x2000);
	assert_int_equal(p.walk.block_count, 2);
	assert_true(p.walk.broken_count > 0);
	page_release(&p);
}
