/* The low fragmentation heap: its containers, their key, and both ways to them. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made_lfh.h"

#define X64 "nt 10.0.17763-22000 x64"
#define WIN7 "nt 6.1.7600-7601 x64"

/* ---------------------------------------------------------------- sound */

TEST(busy_blocks_of_containers_are_found_in_every_layout)
{
	for (size_t i = 0; i < nt_layout_count; i++) {
		struct made *made = made_new(nt_layouts[i].name);

		made_lfh_plain(made);
		assert_true(made->expected_count > 500);
		made_walk_and_assert(made, 0, NULL);
		assert_int_equal(made->nt.has_lfh_key, made->row->lfh->data_is_coded);
		if (made->nt.has_lfh_key)
			assert_int_equal(made->nt.lfh_key, MADE_LFH_KEY);
		made_free(made);
	}
}

TEST(a_busy_block_may_have_a_prefix)
{
	for (size_t i = 0; i < nt_layout_count; i++) {
		struct made *made = made_new(nt_layouts[i].name);
		const struct nt_common_layout *common = made->common;
		struct made_container c;
		struct made_lfh lfh;
		uint64_t entry;

		made->process.global_flag = NT_FLAG_UST;
		made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
		lfh = made_lfh(made);
		c = made_container(&lfh, 0x60, 40);
		entry = made_lfh_busy(&lfh, &c, 17, 0xc2);
		made_put_ptr(made, entry + common->prefix_record, 0x654321);
		fake_put(&made->fake, entry + common->prefix_header, 0x0502003100000001, 8);
		made_expect(made, entry + common->prefix_user, 0x60 - 0x31, 0x31, 0x654321);
		made_rest(made, MADE_LFH_BYTES);
		made_walk_and_assert(made, 0, NULL);
		made_free(made);
	}
}

TEST(a_long_number_of_unused_bytes_is_in_the_blocks_last_slot)
{
	struct made *made = made_new(X64);
	struct made_container c;
	struct made_lfh lfh;
	uint64_t entry;

	made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh = made_lfh(made);
	c = made_container(&lfh, 0x400, 10);
	entry = made_lfh_busy(&lfh, &c, 3, 0xbf);
	fake_put(&made->fake, entry + 0x400 - 8, 0x155, 8);
	made_expect(made, entry + 16, 0x400 - 0x155, 0x155, 0);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
	made_free(made);
}

TEST(a_container_that_is_kept_for_later_has_no_blocks)
{
	struct made *made = made_new(WIN7);
	struct made_lfh lfh;
	struct made_container c;

	made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh = made_lfh(made);
	c = made_container(&lfh, 0x40, 20);
	made_lfh_busy(&lfh, &c, 3, 0x88); /* left over */
	made_put_ptr(made, c.subsegment + lfh.layout->sub_data, 0);
	made_put_ptr(made, c.addr + lfh.layout->data_sub, 0);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
	made_free(made);
}

TEST(without_a_bitmap_the_headers_say_what_is_busy)
{
	struct made *made = made_new(WIN7);
	struct made_lfh lfh;
	struct made_container c;
	uint64_t entry;

	made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh = made_lfh(made);
	c = made_container(&lfh, 0x40, 20);
	entry = made_lfh_busy(&lfh, &c, 3, 0x89);
	made_expect(made, entry + 16, 0x40 - 9, 9, 0);
	entry = made_lfh_busy(&lfh, &c, 4, 0x09); /* no block of an LFH */
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 1, "LFH block without its mark");
	assert_int_equal(made->walk.broken_addr, entry);
	made_free(made);
}

/* No fact says that flag 8 is always there. */
TEST(a_container_is_one_without_its_flag_when_a_zone_lists_it)
{
	for (size_t i = 0; i < nt_layout_count; i++) {
		struct made *made = made_new(nt_layouts[i].name);
		struct made_lfh lfh;
		struct made_container c;
		uint64_t entry, block, size;
		uint32_t previous;

		made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
		lfh = made_lfh(made);
		previous = made->previous;
		block = made->at;
		c = made_container(&lfh, 0x40, 20);
		size = made->at - block;
		made_header(made, block, size, previous, NT_BLOCK_BUSY, 8);
		entry = made_lfh_busy(&lfh, &c, 13, 0x88);
		made_expect(made, entry + made->common->entry_bytes, 0x40 - 8, 8, 0);
		made_rest(made, MADE_LFH_BYTES);
		made_walk_and_assert(made, 0, NULL);
		made_free(made);
	}
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

TEST(a_container_that_only_zones_have_must_fit_into_what_was_lost)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t sub = lfh.zone + lfh.layout->zone_first;
	uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

	fake_put(&made->fake, container - 8, 0, 8);
	fake_put(&made->fake, sub + lfh.layout->sub_block_count, 21, 2);
	forget_blocks(made, container, container + 0x40 + 20 * 0x20);
	made_walk_and_assert(made, 1, NULL);
	made_free(made);
}

TEST(a_zone_may_lie_outside_of_the_heap)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t away = 0x9990000, first = lfh.zone + lfh.layout->zone_first;

	/* The subsegments move there. */
	fake_map(&made->fake, away, 0x2000);
	made_list_add(made, lfh.addr + lfh.layout->lfh_zones, away);
	fake_put(&made->fake, away + lfh.layout->zone_end, 12, 4);
	fake_put(&made->fake, lfh.zone + lfh.layout->zone_end, 0, 4);
	for (uint64_t at = first; at < lfh.next_subsegment; at += 8)
		fake_put(&made->fake, away + lfh.layout->zone_first + at - first,
			fake_get(&made->fake, at, 8), 8);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t sub = away + lfh.layout->zone_first + i * lfh.layout->sub_bytes;
		uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

		made_put_ptr(made, container + lfh.layout->data_sub, sub);
	}
	made_walk_and_assert(made, 0, NULL);
	made_free(made);
}

TEST(a_zone_outside_of_the_heap_ends_where_memory_does)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t away = 0x9990000;

	fake_map(&made->fake, away, 0x1000);
	made_list_add(made, lfh.addr + lfh.layout->lfh_zones, away);
	fake_put(&made->fake, away + lfh.layout->zone_end, 0x7fffffff, 4);
	made_walk_and_assert(made, 0, NULL);
	made_assert_missing(made, 1, "unreadable LFH subsegment");
	made_free(made);
}

TEST(a_container_that_no_zone_lists_is_counted_and_found)
{
	for (int i = 0; i < 2; i++) {
		struct made *made = made_new(i ? X64 : WIN7);
		struct made_lfh lfh = made_lfh_plain(made);

		/* The last subsegment is behind the zone's end. */
		lfh.next_subsegment -= lfh.layout->sub_bytes;
		made_zone_end(&lfh);
		made_walk_and_assert(made, 1, "LFH container that no zone lists");
		made_free(made);
	}
}

TEST(a_container_that_only_zones_have_is_counted_and_not_taken_twice)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t entry = MADE_HEAP + 0x2c0;

	/* In the middle of a block of the program's. */
	made_subsegment(&lfh, entry + 0x20, 0x20, 1);
	made_walk_and_assert(made, 1, "LFH container that the back end does not have");
	made_free(made);
}

TEST(a_container_in_memory_the_back_end_lost_is_found_through_its_zone)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t sub = lfh.zone + lfh.layout->zone_first;
	uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

	/* Its own header in the back end is damaged. */
	fake_put(&made->fake, container - 8, 0, 8);
	made_walk_and_assert(made, 1, NULL);
	assert_int_equal(made->walk.broken_addr, container - 16);
	made_free(made);
}

TEST(a_container_whose_pointer_is_damaged_is_described_by_its_zone)
{
	static const uint64_t wrong[] = {0, MADE_HEAP, 0xffffffffffffffff, 0x123456789};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(X64);
		struct made_lfh lfh = made_lfh_plain(made);
		uint64_t sub = lfh.zone + lfh.layout->zone_first;
		uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

		made_put_ptr(made, container + lfh.layout->data_sub, wrong[i]);
		made_walk_and_assert(made, 1, "LFH container without its subsegment");
		made_free(made);
	}
}

TEST(a_front_end_of_another_heap_is_counted_and_blocks_are_found_without_it)
{
	struct made *made = made_new(WIN7);
	struct made_lfh lfh = made_lfh_plain(made);

	made_put_ptr(made, lfh.addr + lfh.layout->lfh_heap, MADE_HEAP + 0x10000);
	/* What the front end itself lies in cannot be told from the program's then. */
	made_expect(made, lfh.addr, 0x100 - 8, 8, 0);
	made_expect(made, lfh.zone,
		(lfh.layout->zone_first + MADE_SUBSEGMENTS * lfh.layout->sub_bytes + 0x2f) / 16 *
				16 -
			8,
		8, 0);
	made_walk_and_assert(made, 1, "front end that is not the heap's");
	made_free(made);
}

/* ---------------------------------------------------------------- damage */

TEST(no_damage_to_a_container_makes_a_block_of_what_is_none)
{
	uint64_t seed = 11;

	for (int i = 0; i < 400; i++) {
		struct made *made = made_new(i % 3 ? X64 : WIN7);
		struct made_lfh lfh = made_lfh_plain(made);
		uint64_t sub = lfh.zone + lfh.layout->zone_first +
			       fake_random(&seed) % 12 * lfh.layout->sub_bytes;
		uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);
		uint64_t at = fake_random(&seed) % 2 ? container : sub;

		at += fake_random(&seed) % 12 * 4;
		fake_put(&made->fake, at, fake_random(&seed) % 2 ? fake_random(&seed) : 0xffffffff,
			4);
		made_walk(made);
		/* Of each container no more blocks than it has room for. */
		assert_true(made->walk.block_count <= MADE_LFH_BYTES / 0x20);
		for (size_t j = 0; j < made->walk.block_count; j++) {
			const struct walked_block *b = &made->walk.blocks[j];

			assert_true(b->addr >= MADE_HEAP && b->addr < MADE_HEAP + MADE_LFH_BYTES);
			assert_true(b->requested_bytes < MADE_LFH_BYTES);
		}
		made_free(made);
	}
}

TEST(without_a_sound_bitmap_marks_say_what_is_busy_and_it_is_counted)
{
	for (int i = 0; i < 6; i++) {
		struct made *made = made_new(X64);
		struct made_lfh lfh = made_lfh_plain(made);
		uint64_t sub = lfh.zone + lfh.layout->zone_first;
		uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);
		/* The first container has 20 blocks of 20h bytes: its end, and some places. */
		uint64_t end = container + 0x40 + 20 * 0x20 + 0x10;
		uint64_t wrong[] = {0, container, UINT64_MAX, end + 0x10, end - 2};

		if (i == 5)
			made_put_ptr(made, container + lfh.layout->data_bitmap_count, 19);
		else
			made_put_ptr(made, container + lfh.layout->data_bitmap_bytes, wrong[i]);
		made_walk(made);
		assert_string_equal(made->walk.broken_what, "LFH container without its bitmap");
		made_assert_blocks(made);
		made_free(made);
	}
}

TEST(a_zone_that_reaches_into_the_next_is_cut_and_counted)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh;
	uint64_t second;

	made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh = made_lfh(made);
	second = made_block(made, 0x400, NT_BLOCK_BUSY, 8) + 16;
	made_list_add(made, lfh.addr + lfh.layout->lfh_zones, second);
	fake_put(&made->fake, second + lfh.layout->zone_end, 0, 4);
	fake_put(&made->fake, lfh.zone + lfh.layout->zone_end, MADE_SUBSEGMENTS + 1, 4);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 1, "LFH zone of an impossible size");
	assert_int_equal(made->walk.broken_addr, lfh.zone);
	made_free(made);
}

TEST(a_zone_of_any_length_ends_where_the_heap_does)
{
	static const uint64_t wrong[] = {0x7fffffff, 0xffffffff, 0x10000};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(X64);
		struct made_lfh lfh = made_lfh_plain(made);

		fake_put(&made->fake, lfh.zone + lfh.layout->zone_end, wrong[i], 4);
		made_walk(made);
		assert_false(walk_is_sound(&made->walk));
		made_assert_blocks(made);
		made_free(made);
	}
}
