/* The walker of page heaps: roots are found without symbols, their trees give the blocks. */
#include "tests/unit/t.h"

#include "tests/unit/page_made.h"

/* ---------------------------------------------------------------- finding roots */

TEST(roots_are_found_where_handles_lead_and_on_their_list)
{
	EACH_FACTS(f)
	{
		struct page p;

		page_init(&p, f);
		put_blocks(&p);
		p.heaps[p.process.heap_count++] = NORMAL;
		p.heaps[p.process.heap_count++] = HANDLE_B;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_found(&p, HANDLE_B);
		assert_true(page_heap_knows(&p.nt, HANDLE_B));
		assert_true(page_heap_knows(&p.nt, ROOT_A));
		assert_false(page_heap_knows(&p.nt, NORMAL));
		page_release(&p);
	}
}

TEST(roots_are_found_from_the_data_of_verifier_dll)
{
	EACH_FACTS(f)
	{
		struct page p;

		page_init(&p, f);
		put_blocks(&p);
		put_verifier(&p, "C:\\Windows\\system32\\VERIFIER.DLL");
		p.heaps[p.process.heap_count++] = NORMAL;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_found(&p, ROOT_B);
		page_release(&p);
	}
}

TEST(verifier_dll_is_not_read_without_its_flags)
{
	struct page p;

	page_init(&p, &facts[0]);
	put_blocks(&p);
	put_verifier(&p, "verifier.dll");
	p.process.global_flag = 0x1070;
	page_walk(&p, TARGET_SPACE_BYTES);
	assert_int_equal(p.walk.heap_count, 0);
	page_release(&p);
}

/* A heap stands behind a root, and it is linked or has a table: what has less is none. */
TEST(what_only_looks_like_a_root_is_none)
{
	for (unsigned damage = 0; damage < 8; damage++) {
		struct page p;
		const struct page_facts *f = &facts[0];
		bool is_root = !(damage & 1) && (damage & 6) != 6;
		size_t found = 0;

		page_init(&p, f);
		table(&p, ROOT_A, node(&p, 0, 8), 1);
		p.heaps[p.process.heap_count++] = ROOT_A;
		if (damage & 1)
			put(&p, ROOT_A + f->normal, NODES);
		if (damage & 2)
			put(&p, ROOT_B + f->next + f->ptr, NODES);
		if (damage & 4)
			put(&p, NODES, NODES);
		page_walk(&p, TARGET_SPACE_BYTES);
		for (size_t i = 0; i < p.walk.heap_count; i++)
			found += p.walk.heaps[i].addr == ROOT_A;
		assert_int_equal(found, is_root);
		page_release(&p);
	}
}

/*
 * An ordinary heap whose memory has a list and a pointer to the heap where a root would have them, as
 * the low fragmentation heap of Windows 7 x64 does (_LFH_HEAP.SubSegmentZones 28, .Heap 40).
 */
TEST(an_ordinary_heap_is_no_page_heap)
{
	EACH_FACTS(f)
	{
		uint64_t heap = 0x15000000, inside = heap + 0x1000;
		struct page p;

		page_init(&p, f);
		fake_map(&p.fake, heap, 0x2000);
		fake_put(&p.fake, heap + f->signature, 0xffeeffee, 4);
		link_up(&p, inside + f->next, inside + f->next);
		put(&p, inside + f->normal, heap);
		p.heaps[p.process.heap_count++] = heap;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_int_equal(p.walk.heap_count, 0);
		page_release(&p);
		/* Nor where another heap is pointed to. */
		page_init(&p, f);
		fake_map(&p.fake, heap, 0x2000);
		fake_put(&p.fake, heap + f->signature, 0xffeeffee, 4);
		link_up(&p, inside + f->next, inside + f->next);
		put(&p, inside + f->normal, NORMAL);
		p.heaps[p.process.heap_count++] = heap;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_int_equal(p.walk.heap_count, 0);
		page_release(&p);
	}
}

/* It holds blocks too; whether the PEB lists it is nowhere written. */
TEST(the_heap_behind_page_heaps_is_walked_once_whoever_lists_it)
{
	for (unsigned is_listed = 0; is_listed < 2; is_listed++) {
		struct page p;

		page_init(&p, &facts[0]);
		put_blocks(&p);
		p.heaps[p.process.heap_count++] = HANDLE_B;
		if (is_listed)
			p.heaps[p.process.heap_count++] = NORMAL;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_int_equal(p.nt.page_heap_count, 2);
		assert_int_equal(p.nt.behind_count, !is_listed); /* of both */
		if (!is_listed)
			assert_int_equal(p.nt.behind[0], NORMAL);
		page_release(&p);
	}
}

/* ---------------------------------------------------------------- before a block */

static void info(struct page *p, uint64_t user, uint32_t start, uint32_t end)
{
	uint64_t at = user - p->f->info;

	fake_put(&p->fake, at, start, 4);
	put(p, at + p->f->i_heap, ROOT_A);
	put(p, at + p->f->i_requested, 0x123);
	put(p, at + p->f->i_actual, 0x180);
	put(p, at + p->f->i_trace, 0x30000040);
	fake_put(&p->fake, at + p->f->i_end, end, 4);
}

TEST(information_before_a_block_is_read)
{
	EACH_FACTS(f)
	{
		for (unsigned full = 0; full < 2; full++) {
			struct page p;
			struct page_block block;

			page_init(&p, f);
			assert_int_equal(memory_init(&p.memory, &p.fake.target), 0);
			info(&p, NODES + 0x100, full ? 0xabcdbbbb : 0xabcdaaaa,
				full ? 0xdcbabbbb : 0xdcbaaaaa);
			assert_true(page_block_parse(&p.memory, f->bits, NODES + 0x100, &block));
			assert_int_equal(block.requested_bytes, 0x123);
			assert_int_equal(block.record, 0x30000040);
			assert_int_equal(block.is_full, full);
			assert_false(
				!full && page_block_is_damaged(&p.memory, f->bits, NODES + 0x100));
			page_release(&p);
		}
	}
}

TEST(information_of_a_freed_or_damaged_block_is_none)
{
	EACH_FACTS(f)
	{
		for (unsigned damage = 0; damage < 7; damage++) {
			struct page p;
			struct page_block block;
			uint64_t user = NODES + 0x100, at = user - f->info;

			page_init(&p, f);
			assert_int_equal(memory_init(&p.memory, &p.fake.target), 0);
			info(&p, user, 0xabcdaaaa, 0xdcbaaaaa);
			if (damage == 0)
				fake_put(&p.fake, at, 0xabcdaaa9, 4); /* freed */
			else if (damage == 1)
				fake_put(&p.fake, at + f->i_end, 0xdcbabbbb, 4);
			else if (damage == 2)
				put(&p, at + f->i_requested, 0x181);
			else if (damage == 3)
				put(&p, at + f->i_heap, 0);
			else if (damage < 6)
				user = damage == 4 ? 8 : 0x7fff0000;
			else { /* both, as of what was freed */
				fake_put(&p.fake, at, 0xabcdaaa9, 4);
				fake_put(&p.fake, at + f->i_end, 0xdcbaaaa9, 4);
			}
			assert_false(page_block_parse(&p.memory, f->bits, user, &block));
			assert_int_equal(
				page_block_is_damaged(&p.memory, f->bits, user), damage < 4);
			page_release(&p);
		}
	}
}
