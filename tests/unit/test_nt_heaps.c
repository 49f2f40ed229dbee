/* All heaps of a process: those of both PEBs, and those that no PEB lists. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made.h"

#include "snapshot/target/peb_layout.h"

#define X64 "nt 10.0.17763-22000 x64"
#define ROOT 0x10000000u /* a page heap's, and its handle */
#define HOST_PEB 0x7f0000u

/* A PEB with a process heap only. */
static void put_peb(struct made *made, uint64_t at, unsigned bits, uint64_t first_heap)
{
	const struct peb_layout *peb = peb_layout(bits);

	fake_put(&made->fake, at + peb->process_heap, first_heap, bits / 8);
	fake_put(&made->fake, at + peb->os_build, 19041, 2);
}

static void make_heap(struct made *made)
{
	made_heap(made, 0x4000, 0x10000);
	made_busy(made, 0x40, 8);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
}

static void walk(struct made *made)
{
	struct err err;

	assert_int_equal(heap_walker_nt.walk(&made->memory, 0, &made->walk, &err), 0);
}

TEST(the_heap_behind_a_page_heap_is_walked_when_the_peb_does_not_list_it)
{
	struct made *made = made_new(X64);

	make_heap(made);
	fake_map(&made->fake, ROOT, 0x1000);
	made_list_init(made, ROOT + 0x138); /* NextHeap */
	made_put_ptr(made, ROOT + 0x150, MADE_HEAP); /* NormalHeap */
	put_peb(made, FAKE_PEB, 64, ROOT);
	walk(made);
	assert_int_equal(made->walk.heap_count, 2);
	assert_string_equal(made->walk.heaps[0].kind, "page");
	assert_int_equal(made->walk.heaps[1].addr, MADE_HEAP);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
	made_free(made);
}

/* The heap with a lock that a thread has or not. */
static void make_locked(struct made *made, uint64_t owner)
{
	uint64_t lock = MADE_HEAP + 0xf00;

	make_heap(made);
	made_put_ptr(made, MADE_HEAP + made->row->lock, lock);
	made_put_ptr(made, lock + made->common->lock_owner, owner);
}

/* The heap is one of the 64-bit part of a 32-bit process. */
TEST(a_lock_of_a_heap_of_the_64_bit_part_makes_a_process_busy)
{
	for (uint64_t owner = 0; owner < 0x20; owner += 0x10) {
		struct made *made = made_new(X64);

		make_locked(made, owner);
		fake_map(&made->fake, HOST_PEB, 0x1000);
		put_peb(made, HOST_PEB, 64, MADE_HEAP);
		made->fake.target.bits = 32;
		made->fake.target.host_peb = HOST_PEB;
		put_peb(made, FAKE_PEB, 32, 0x770000);
		assert_int_equal(heap_walker_nt.is_busy(&made->fake.target, 0), owner != 0);
		made_free(made);
	}
}

TEST(a_heap_that_is_walked_while_its_lock_is_held_is_counted)
{
	for (uint64_t owner = 0; owner < 0x20; owner += 0x10) {
		struct made *made = made_new(X64);

		make_locked(made, owner);
		put_peb(made, FAKE_PEB, 64, MADE_HEAP);
		walk(made);
		assert_int_equal(made->walk.busy_count, owner != 0);
		made_assert_blocks(made);
		made_free(made);
	}
}
