/* The low fragmentation heap: its containers, their key, and both ways to them. */
#include "tests/unit/nt_made_lfh.h"

#define X64 "nt 10.0.17763-22000 x64"
#define X86 "nt 10.0.17763-19041 x86"
#define WIN7 "nt 6.1.7600-7601 x64"
#define HEAP_BYTES 0x80000u

/* A heap with a front end and containers of several sizes. */
static struct made_lfh make_plain(struct made *made)
{
	uint64_t seed = 7;
	struct made_lfh lfh;

	made_heap(made, HEAP_BYTES, HEAP_BYTES);
	made_busy(made, 0x40, 8);
	lfh = made_lfh(made);
	for (uint32_t i = 0; i < 12; i++) {
		struct made_container c = made_container(&lfh, 0x20 + 0x10 * i, 20 + 25 * i, 0);

		made_lfh_fill(&lfh, &c, &seed);
		made_busy(made, 0x90, 9);
	}
	made_rest(made, HEAP_BYTES);
	return lfh;
}

static void walk_and_assert(struct made *made, unsigned broken, const char *what)
{
	made_walk(made);
	made_assert_broken(made, broken, what);
	made_assert_blocks(made);
}

/* ---------------------------------------------------------------- sound */

static void busy_blocks_of_containers_are_found_in_every_layout(void **state)
{
	(void)state;
	for (size_t i = 0; i < nt_layout_count; i++) {
		struct made *made = made_new(nt_layouts[i].name);

		make_plain(made);
		assert_true(made->expected_count > 500);
		walk_and_assert(made, 0, NULL);
		assert_int_equal(made->nt.has_lfh_key, made->row->lfh->data_is_coded);
		if (made->nt.has_lfh_key)
			assert_int_equal(made->nt.lfh_key, MADE_LFH_KEY);
		made_free(made);
	}
}

static void a_busy_block_may_have_a_prefix(void **state)
{
	(void)state;
	for (size_t i = 0; i < nt_layout_count; i++) {
		struct made *made = made_new(nt_layouts[i].name);
		const struct nt_common_layout *common = made->common;
		struct made_container c;
		struct made_lfh lfh;
		uint64_t entry;

		made->process.global_flag = NT_FLAG_UST;
		made_heap(made, HEAP_BYTES, HEAP_BYTES);
		lfh = made_lfh(made);
		c = made_container(&lfh, 0x60, 40, 0);
		entry = made_lfh_busy(&lfh, &c, 17, 0xc2);
		made_put_ptr(made, entry + common->prefix_record, 0x654321);
		fake_put(&made->fake, entry + common->prefix_header, 0x0502003100000001, 8);
		made_expect(made, entry + common->prefix_user, 0x60 - 0x31, 0x31, 0x654321);
		made_rest(made, HEAP_BYTES);
		walk_and_assert(made, 0, NULL);
		made_free(made);
	}
}

static void a_long_number_of_unused_bytes_is_in_the_blocks_last_slot(void **state)
{
	struct made *made = made_new(X64);
	struct made_container c;
	struct made_lfh lfh;
	uint64_t entry;

	(void)state;
	made_heap(made, HEAP_BYTES, HEAP_BYTES);
	lfh = made_lfh(made);
	c = made_container(&lfh, 0x400, 10, 0);
	entry = made_lfh_busy(&lfh, &c, 3, 0xbf);
	fake_put(&made->fake, entry + 0x400 - 8, 0x155, 8);
	made_expect(made, entry + 16, 0x400 - 0x155, 0x155, 0);
	made_rest(made, HEAP_BYTES);
	walk_and_assert(made, 0, NULL);
	made_free(made);
}

static void a_container_that_is_kept_for_later_has_no_blocks(void **state)
{
	struct made *made = made_new(WIN7);
	struct made_lfh lfh;
	struct made_container c;

	(void)state;
	made_heap(made, HEAP_BYTES, HEAP_BYTES);
	lfh = made_lfh(made);
	c = made_container(&lfh, 0x40, 20, 0);
	made_lfh_busy(&lfh, &c, 3, 0x88); /* left over */
	made_put_ptr(made, c.subsegment + lfh.layout->sub_data, 0);
	made_put_ptr(made, c.addr + lfh.layout->data_sub, 0);
	made_rest(made, HEAP_BYTES);
	walk_and_assert(made, 0, NULL);
	made_free(made);
}

static void without_a_bitmap_the_headers_say_what_is_busy(void **state)
{
	struct made *made = made_new(WIN7);
	struct made_lfh lfh;
	struct made_container c;
	uint64_t entry;

	(void)state;
	made_heap(made, HEAP_BYTES, HEAP_BYTES);
	lfh = made_lfh(made);
	c = made_container(&lfh, 0x40, 20, 0);
	entry = made_lfh_busy(&lfh, &c, 3, 0x89);
	made_expect(made, entry + 16, 0x40 - 9, 9, 0);
	entry = made_lfh_busy(&lfh, &c, 4, 0x09); /* no block of an LFH */
	made_rest(made, HEAP_BYTES);
	walk_and_assert(made, 1, "LFH block without its mark");
	assert_int_equal(made->walk.broken_addr, entry);
	made_free(made);
}

static void where_there_is_a_bitmap_it_decides(void **state)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = make_plain(made);
	uint64_t lone;

	(void)state;
	/* Busy by its header only. */
	for (lone = lfh.addr; fake_get(&made->fake, lone + 15, 1) != 0x80;)
		lone += 16;
	fake_put(&made->fake, lone + 15, 0x88, 1);
	walk_and_assert(made, 0, NULL);
	made_free(made);
}

/* ---------------------------------------------------------------- the key */

static void first_blocks_that_lie_later_do_not_spoil_the_key(void **state)
{
	(void)state;
	for (unsigned later = 0; later < 8; later++) {
		struct made *made = made_new(later % 2 ? X64 : X86);
		uint64_t seed = later + 1;
		struct made_lfh lfh;

		made_heap(made, HEAP_BYTES, HEAP_BYTES);
		lfh = made_lfh(made);
		for (uint32_t i = 0; i < 8; i++) {
			uint32_t first = i < later ? 0x100 + 0x20 * i : 0;
			struct made_container c = made_container(&lfh, 0x30, 30 + i, first);

			made_lfh_fill(&lfh, &c, &seed);
		}
		made_rest(made, HEAP_BYTES);
		walk_and_assert(made, 0, NULL);
		assert_int_equal(made->nt.lfh_key, MADE_LFH_KEY);
		made_free(made);
	}
}

/* All first blocks lie later, so that no guess fits: headers have to say it. */
static void headers_lead_to_the_key_where_no_guess_fits(void **state)
{
	struct made *made = made_new(X64);
	uint64_t seed = 3;
	struct made_lfh lfh;

	(void)state;
	made_heap(made, HEAP_BYTES, HEAP_BYTES);
	lfh = made_lfh(made);
	for (uint32_t i = 0; i < 5; i++) {
		struct made_container c = made_container(&lfh, 0x30, 30, 0x80 + 0x30 * i);

		made_lfh_fill(&lfh, &c, &seed);
	}
	made_rest(made, HEAP_BYTES);
	walk_and_assert(made, 0, NULL);
	assert_int_equal(made->nt.lfh_key, MADE_LFH_KEY);
	made_free(made);
}

static struct made *make_single(bool wrong_headers)
{
	struct made *made = made_new(X64);
	uint64_t seed = 5;
	struct made_container c;
	struct made_lfh lfh;

	made_heap(made, HEAP_BYTES, HEAP_BYTES);
	lfh = made_lfh(made);
	lfh.wrong_headers = wrong_headers;
	c = made_container(&lfh, 0x50, 40, 0);
	made_lfh_fill(&lfh, &c, &seed);
	made_rest(made, HEAP_BYTES);
	return made;
}

static void a_single_container_is_believed_when_its_headers_agree(void **state)
{
	struct made *made = make_single(false);

	(void)state;
	walk_and_assert(made, 0, NULL);
	assert_int_equal(made->nt.lfh_key, MADE_LFH_KEY);
	made_free(made);
}

static void without_a_key_blocks_are_found_by_their_marks_and_it_is_said(void **state)
{
	struct made *made = make_single(true);

	(void)state;
	walk_and_assert(made, 1, "LFH key that does not verify");
	assert_false(made->nt.has_lfh_key);
	made_free(made);
}

static void a_container_with_another_key_is_counted_and_its_blocks_found(void **state)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = make_plain(made);
	uint64_t sub = lfh.zone + lfh.layout->zone_first;
	uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

	(void)state;
	fake_put(&made->fake, container + lfh.layout->data_offsets, 0x12345678, 4);
	walk_and_assert(made, 1, "LFH container with impossible offsets");
	assert_int_equal(made->walk.broken_addr, container);
	made_free(made);
}

static void the_key_is_found_whatever_it_is(void **state)
{
	uint64_t seed = 99;

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct made *made = made_new(i % 2 ? X64 : X86);
		uint32_t key = (uint32_t)fake_random(&seed);
		struct made_lfh lfh;

		made_heap(made, HEAP_BYTES, HEAP_BYTES);
		lfh = made_lfh(made);
		lfh.key = key;
		lfh.wrong_headers = i % 4 > 1;
		for (uint32_t j = 0; j < 4; j++) {
			struct made_container c = made_container(
				&lfh, 0x30 + 0x10 * j, 10 + (uint32_t)fake_random(&seed) % 200, 0);

			made_lfh_fill(&lfh, &c, &seed);
		}
		made_rest(made, HEAP_BYTES);
		walk_and_assert(made, 0, NULL);
		assert_int_equal(made->nt.lfh_key, key);
		made_free(made);
	}
}

/* ---------------------------------------------------------------- both ways */

static void a_container_that_no_zone_lists_is_counted_and_found(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct made *made = made_new(i ? X64 : WIN7);
		struct made_lfh lfh = make_plain(made);

		/* The last subsegment is behind the zone's end. */
		lfh.next_subsegment -= lfh.layout->sub_bytes;
		made_zone_end(&lfh);
		walk_and_assert(made, 1, "LFH container that no zone lists");
		made_free(made);
	}
}

static void a_container_that_only_zones_have_is_counted_and_not_taken_twice(void **state)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = make_plain(made);
	uint64_t entry = MADE_HEAP + 0x2c0;

	(void)state;
	/* In the middle of a block of the program's. */
	made_subsegment(&lfh, entry + 0x20, 0x20, 1);
	walk_and_assert(made, 1, "LFH container that the back end does not have");
	made_free(made);
}

static void a_container_in_memory_the_back_end_lost_is_found_through_its_zone(void **state)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = make_plain(made);
	uint64_t sub = lfh.zone + lfh.layout->zone_first;
	uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

	(void)state;
	/* Its own header in the back end is damaged. */
	fake_put(&made->fake, container - 8, 0, 8);
	walk_and_assert(made, 2, NULL);
	assert_int_equal(made->walk.broken_addr, container - 16);
	made_free(made);
}

static void a_container_whose_pointer_is_damaged_is_described_by_its_zone(void **state)
{
	static const uint64_t wrong[] = {0, MADE_HEAP, 0xffffffffffffffff, 0x123456789};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(X64);
		struct made_lfh lfh = make_plain(made);
		uint64_t sub = lfh.zone + lfh.layout->zone_first;
		uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

		made_put_ptr(made, container + lfh.layout->data_sub, wrong[i]);
		walk_and_assert(made, 1, "LFH container without its subsegment");
		made_free(made);
	}
}

static void a_front_end_of_another_heap_is_counted_and_blocks_are_found_without_it(void **state)
{
	struct made *made = made_new(WIN7);
	struct made_lfh lfh = make_plain(made);

	(void)state;
	made_put_ptr(made, lfh.addr + lfh.layout->lfh_heap, MADE_HEAP + 0x10000);
	/* What the front end itself lies in cannot be told from the program's then. */
	made_expect(made, lfh.addr, 0x100 - 8, 8, 0);
	made_expect(made, lfh.zone,
		(lfh.layout->zone_first + MADE_SUBSEGMENTS * lfh.layout->sub_bytes + 0x2f) / 16 *
				16 -
			8,
		8, 0);
	walk_and_assert(made, 1, "front end that is not the heap's");
	made_free(made);
}

/* ---------------------------------------------------------------- damage */

static void no_damage_to_a_container_makes_a_block_of_what_is_none(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int i = 0; i < 400; i++) {
		struct made *made = made_new(i % 3 ? X64 : WIN7);
		struct made_lfh lfh = make_plain(made);
		uint64_t sub = lfh.zone + lfh.layout->zone_first +
			       fake_random(&seed) % 12 * lfh.layout->sub_bytes;
		uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);
		uint64_t at = fake_random(&seed) % 2 ? container : sub;

		at += fake_random(&seed) % 12 * 4;
		fake_put(&made->fake, at, fake_random(&seed) % 2 ? fake_random(&seed) : 0xffffffff,
			4);
		made_walk(made);
		/* Of each container no more blocks than it has room for. */
		assert_true(made->walk.block_count <= HEAP_BYTES / 0x20);
		for (size_t j = 0; j < made->walk.block_count; j++) {
			const struct walked_block *b = &made->walk.blocks[j];

			assert_true(b->addr >= MADE_HEAP && b->addr < MADE_HEAP + HEAP_BYTES);
			assert_true(b->requested_bytes < HEAP_BYTES);
		}
		made_free(made);
	}
}

static void a_zone_of_any_length_ends_where_the_heap_does(void **state)
{
	static const uint64_t wrong[] = {0x7fffffff, 0xffffffff, 0x10000};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(X64);
		struct made_lfh lfh = make_plain(made);

		fake_put(&made->fake, lfh.zone + lfh.layout->zone_end, wrong[i], 4);
		made_walk(made);
		assert_true(made->walk.broken_count > 0);
		made_assert_blocks(made);
		made_free(made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_blocks_of_containers_are_found_in_every_layout),
		cmocka_unit_test(a_busy_block_may_have_a_prefix),
		cmocka_unit_test(a_long_number_of_unused_bytes_is_in_the_blocks_last_slot),
		cmocka_unit_test(a_container_that_is_kept_for_later_has_no_blocks),
		cmocka_unit_test(without_a_bitmap_the_headers_say_what_is_busy),
		cmocka_unit_test(where_there_is_a_bitmap_it_decides),
		cmocka_unit_test(first_blocks_that_lie_later_do_not_spoil_the_key),
		cmocka_unit_test(headers_lead_to_the_key_where_no_guess_fits),
		cmocka_unit_test(a_single_container_is_believed_when_its_headers_agree),
		cmocka_unit_test(without_a_key_blocks_are_found_by_their_marks_and_it_is_said),
		cmocka_unit_test(a_container_with_another_key_is_counted_and_its_blocks_found),
		cmocka_unit_test(the_key_is_found_whatever_it_is),
		cmocka_unit_test(a_container_that_no_zone_lists_is_counted_and_found),
		cmocka_unit_test(a_container_that_only_zones_have_is_counted_and_not_taken_twice),
		cmocka_unit_test(a_container_in_memory_the_back_end_lost_is_found_through_its_zone),
		cmocka_unit_test(a_container_whose_pointer_is_damaged_is_described_by_its_zone),
		cmocka_unit_test(
			a_front_end_of_another_heap_is_counted_and_blocks_are_found_without_it),
		cmocka_unit_test(no_damage_to_a_container_makes_a_block_of_what_is_none),
		cmocka_unit_test(a_zone_of_any_length_ends_where_the_heap_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
