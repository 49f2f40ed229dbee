/* The low fragmentation heap: its containers, their key, and both ways to them. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made_lfh.h"

/* ---------------------------------------------------------------- sound */

MADE_TEST(a_long_number_of_unused_bytes_is_in_the_blocks_last_slot, X64)
{
	struct made_container c;
	struct made_lfh lfh;
	uint64_t entry;

	lfh = made_lfh(made);
	c = made_container(&lfh, 0x400, 10);
	entry = made_lfh_busy(&lfh, &c, 3, 0xbf);
	fake_put(&made->fake, entry + 0x400 - 8, 0x155, 8);
	made_expect(made, entry + 16, 0x400 - 0x155, 0x155, 0);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
}

MADE_TEST(without_a_bitmap_the_headers_say_what_is_busy, WIN7_X64)
{
	struct made_lfh lfh;
	struct made_container c;
	uint64_t entry;

	lfh = made_lfh(made);
	c = made_container(&lfh, 0x40, 20);
	entry = made_lfh_busy(&lfh, &c, 3, 0x89);
	made_expect(made, entry + 16, 0x40 - 9, 9, 0);
	entry = made_lfh_busy(&lfh, &c, 4, 0x09); /* no block of an LFH */
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 1, "LFH block without its mark");
	assert_int_equal(made->walk.broken_addr, entry);
}

/* No fact says that flag 8 is always there. */
MADE_TEST(a_container_is_one_without_its_flag_when_a_zone_lists_it, ALL)
{
	struct made_lfh lfh;
	struct made_container c;
	uint64_t entry, block, size;
	uint32_t previous;

	lfh = made_lfh(made);
	previous = made->previous;
	block = made->at;
	c = made_container(&lfh, 0x40, 20);
	size = made->at - block;
	made_header(made, block, size, previous, NT_BLOCK_BUSY, 8);
	entry = made_lfh_busy(&lfh, &c, 13, 0x88);
	made_expect(made, entry + made->shape->unit, 0x40 - 8, 8, 0);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
}

/* ---------------------------------------------------------------- both ways */

/* Forgets the blocks that are expected between two addresses. */
static void forget_blocks(struct made *made, uint64_t addr, uint64_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < made->expected_count; i++)
		if (made->expected[i].addr < addr || made->expected[i].addr >= end)
			made->expected[kept++] = made->expected[i];
	assert_true(kept < made->expected_count);
	made->expected_count = kept;
}

MADE_TEST(a_container_that_only_zones_have_must_fit_into_what_was_lost, X64)
{
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t sub = lfh.zone + lfh.layout->zone_first;
	uint64_t container = made_first_container(&lfh);

	fake_put(&made->fake, container - 8, 0, 8);
	fake_put(&made->fake, sub + lfh.layout->block_count, 21, 2);
	forget_blocks(made, container, container + 0x40 + 20 * 0x20);
	made_walk_and_assert(made, 1, NULL);
}

MADE_TEST(a_zone_may_lie_outside_of_the_heap, X64)
{
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t away = 0x9990000, first = lfh.zone + lfh.layout->zone_first;

	/* The subsegments move there. */
	fake_map(&made->fake, away, 0x2000);
	made_list_add(made, lfh.addr + lfh.layout->zones, away);
	fake_put(&made->fake, away + lfh.layout->zone_end, 12, 4);
	fake_put(&made->fake, lfh.zone + lfh.layout->zone_end, 0, 4);
	for (uint64_t at = first; at < lfh.next_subsegment; at += 8)
		fake_put(&made->fake, away + lfh.layout->zone_first + at - first,
			fake_get(&made->fake, at, 8), 8);
	for (unsigned k = 0; k < 12; k++) {
		uint64_t sub = away + lfh.layout->zone_first + k * lfh.layout->subsegment_bytes;
		uint64_t container = fake_get(&made->fake, sub + lfh.layout->user_blocks, 8);

		made_put_ptr(made, container, sub);
	}
	made_walk_and_assert(made, 0, NULL);
}

MADE_TEST(a_zone_outside_of_the_heap_ends_where_memory_does, X64)
{
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t away = 0x9990000;

	fake_map(&made->fake, away, 0x1000);
	made_list_add(made, lfh.addr + lfh.layout->zones, away);
	fake_put(&made->fake, away + lfh.layout->zone_end, 0x7fffffff, 4);
	made_walk_and_assert(made, 0, NULL);
	made_assert_missing(made, 1, "unreadable LFH subsegment");
}

MADE_TEST(a_container_that_no_zone_lists_is_counted_and_found, X64 | WIN7_X64)
{
	struct made_lfh lfh = made_lfh_plain(made);

	/* The last subsegment is behind the zone's end. */
	lfh.next_subsegment -= lfh.layout->subsegment_bytes;
	made_zone_end(&lfh);
	made_walk_and_assert(made, 1, "LFH container that no zone lists");
}

MADE_TEST(a_container_that_only_zones_have_is_counted_and_not_taken_twice, X64)
{
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t entry = MADE_HEAP + 0x2c0;

	/* In the middle of a block of the program's. */
	made_subsegment(&lfh, entry + 0x20, 0x20, 1);
	made_walk_and_assert(made, 1, "LFH container that the back end does not have");
}

MADE_TEST(a_container_in_memory_the_back_end_lost_is_found_through_its_zone, X64)
{
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t container = made_first_container(&lfh);

	/* Its own header in the back end is damaged. */
	fake_put(&made->fake, container - 8, 0, 8);
	made_walk_and_assert(made, 1, NULL);
	assert_int_equal(made->walk.broken_addr, container - 16);
}

MADE_TIMES(a_container_whose_pointer_is_damaged_is_described_by_its_zone, X64, 4)
{
	static const uint64_t wrong[4] = {0, MADE_HEAP, 0xffffffffffffffff, 0x123456789};
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t container = made_first_container(&lfh);

	made_put_ptr(made, container, wrong[i]);
	made_walk_and_assert(made, 1, "LFH container without its subsegment");
}

MADE_TEST(a_front_end_of_another_heap_is_counted_and_blocks_are_found_without_it, WIN7_X64)
{
	struct made_lfh lfh = made_lfh_plain(made);

	made_put_ptr(made, lfh.addr + lfh.layout->heap, MADE_HEAP + 0x10000);
	/* What the front end itself lies in cannot be told from the program's then. */
	made_expect(made, lfh.addr, 0x100 - 8, 8, 0);
	made_expect(made, lfh.zone,
		(lfh.layout->zone_first + MADE_SUBSEGMENTS * lfh.layout->subsegment_bytes + 0x2f) /
				16 * 16 -
			8,
		8, 0);
	made_walk_and_assert(made, 1, "front end that is not the heap's");
}

/* ---------------------------------------------------------------- damage */

MADE_TIMES(without_a_sound_bitmap_marks_say_what_is_busy_and_it_is_counted, X64, 6)
{
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t container = made_first_container(&lfh);
	/* The first container has 20 blocks of 20h bytes: its end, and some places. */
	uint64_t end = container + 0x40 + 20 * 0x20 + 0x10;
	uint64_t wrong[] = {0, container, UINT64_MAX, end + 0x10, end - 2};

	if (i == 5)
		made_put_ptr(made, container + lfh.layout->bitmap, 19);
	else
		made_put_ptr(made, container + lfh.layout->bitmap_buffer, wrong[i]);
	made_walk(made);
	assert_string_equal(made->walk.broken_what, "LFH container without its bitmap");
	made_assert_blocks(made);
}

MADE_TEST(a_zone_that_reaches_into_the_next_is_cut_and_counted, X64)
{
	struct made_lfh lfh;
	uint64_t second;

	lfh = made_lfh(made);
	second = made_block(made, 0x400, NT_BLOCK_BUSY, 8) + 16;
	made_list_add(made, lfh.addr + lfh.layout->zones, second);
	fake_put(&made->fake, second + lfh.layout->zone_end, 0, 4);
	fake_put(&made->fake, lfh.zone + lfh.layout->zone_end, MADE_SUBSEGMENTS + 1, 4);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 1, "LFH zone of an impossible size");
	assert_int_equal(made->walk.broken_addr, lfh.zone);
}

/* ---------------------------------------------------------------- two things said of one */

/* Its room, by itself, is more than the block that it is in. */
MADE_TEST(a_container_larger_than_its_block_is_in_doubt, X64)
{
	struct made_lfh lfh;
	struct made_container c;

	lfh = made_lfh(made);
	made_container(&lfh, 0x30, 60);
	c = made_container(&lfh, 0x40, 60);
	fake_put(&made->fake, c.addr + 0x10, 0x15, 4);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
	made_assert_doubt(made, 1, "LFH container of another size than its block");
}

/* Its subsegment lost it; it is empty and kept for later only when no block in it is in use. */
MADE_TIMES(a_container_without_a_subsegment_that_is_in_use_is_in_doubt, ALL, 2)
{
	struct made_lfh lfh;
	struct made_container c;

	lfh = made_lfh(made);
	c = made_container(&lfh, 0x40, 20);
	if (i)
		made_lfh_busy(&lfh, &c, 13, 0x88);
	made_put_ptr(made, c.subsegment + lfh.layout->user_blocks, 0);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
	made_assert_doubt(made, i, i ? "LFH container in use without a subsegment" : NULL);
}

/* Without a bitmap a header that lost its mark would hide its block. */
MADE_TIMES(a_block_that_lost_its_mark_is_in_doubt_where_there_is_no_bitmap, WIN7_X64 | WIN7_X86, 2)
{
	struct made_lfh lfh;
	struct made_container c;
	uint64_t entry;

	lfh = made_lfh(made);
	c = made_container(&lfh, 0x40, 60);
	entry = made_lfh_busy(&lfh, &c, 5, 0x88);
	if (i)
		made_lfh_header(&lfh, c.addr, entry, 0x80);
	else
		made_expect(made, entry + made->shape->unit, 0x40 - 8, 8, 0);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
	made_assert_doubt(made, i, NULL);
}
