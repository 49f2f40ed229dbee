#include "tests/unit/t.h"

#include "tests/unit/nt_made_lfh.h"

/* ---------------------------------------------------------------- valid heaps */

MADE_TEST(a_long_number_of_unused_bytes_is_in_the_blocks_last_slot, X64)
{
	struct made_container c;
	uint64_t entry;

	made_lfh();
	c = made_container(0x400, 10);
	entry = made_lfh_busy(&c, 3, 0xbf);
	fake_write(entry + 0x400 - 8, 0x155, 8);
	made_expect(entry + 16, 0x400 - 0x155, 0x155, 0);
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(0, NULL);
}

MADE_TEST(without_a_bitmap_the_headers_show_busy_blocks, WIN7_X64)
{
	struct made_container c;
	uint64_t entry;

	made_lfh();
	c = made_container(0x40, 20);
	entry = made_lfh_busy(&c, 3, 0x89);
	made_expect(entry + 16, 0x40 - 9, 9, 0);
	entry = made_lfh_busy(&c, 4, 0x09); /* this block is not an LFH block */
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(1, "LFH block without its mark");
	assert_int_equal(made.walk.broken_addr, entry);
}

/* No source states that flag 8 is always set in a container's header. */
MADE_TEST(a_container_is_one_without_its_flag_when_a_zone_lists_it, ALL)
{
	struct made_container c;
	uint64_t entry, block, size;
	uint32_t previous;

	made_lfh();
	previous = made.previous;
	block = made.at;
	c = made_container(0x40, 20);
	size = made.at - block;
	made_header(block, size, previous, NT_BLOCK_BUSY, 8);
	entry = made_lfh_busy(&c, 13, 0x88);
	made_expect(entry + made.shape->unit, 0x40 - 8, 8, 0);
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(0, NULL);
}

/* ---------------------------------------------------------------- zones and back end */

static void forget_blocks(uint64_t addr, uint64_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < made.expected_count; i++)
		if (made.expected[i].addr < addr || made.expected[i].addr >= end)
			made.expected[kept++] = made.expected[i];
	assert_true(kept < made.expected_count);
	made.expected_count = kept;
}

MADE_TEST(a_container_that_only_zones_have_must_fit_into_what_was_lost, X64)
{
	uint64_t container = made_lfh_plain();
	uint64_t sub = lfh.zone + lfh.layout->zone_first;

	fake_write(container - 8, 0, 8);
	fake_write(sub + lfh.layout->block_count, 21, 2);
	forget_blocks(container, container + 0x40 + 20 * 0x20);
	made_walk_and_assert(1, NULL);
}

MADE_TEST(a_zone_may_lie_outside_of_the_heap, X64)
{
	uint64_t away = 0x9990000, first;

	made_lfh_plain();
	first = lfh.zone + lfh.layout->zone_first;
	/* Place the other subsegments in a zone at `away`. */
	fake_map(away, 0x2000);
	made_list_add(lfh.addr + lfh.layout->zones, away);
	fake_write(away + lfh.layout->zone_end, 12, 4);
	fake_write(lfh.zone + lfh.layout->zone_end, 0, 4);
	for (uint64_t at = first; at < lfh.next_subsegment; at += 8)
		fake_write(away + lfh.layout->zone_first + at - first, fake_get(at, 8), 8);
	for (unsigned k = 0; k < 12; k++) {
		uint64_t sub = away + lfh.layout->zone_first + k * lfh.layout->subsegment_bytes;
		uint64_t container = fake_get(sub + lfh.layout->user_blocks, 8);

		made_write_ptr(container, sub);
	}
	made_walk_and_assert(0, NULL);
}

MADE_TEST(a_zone_outside_of_the_heap_ends_where_memory_does, X64)
{
	uint64_t away = 0x9990000;

	made_lfh_plain();
	fake_map(away, 0x1000);
	made_list_add(lfh.addr + lfh.layout->zones, away);
	fake_write(away + lfh.layout->zone_end, 0x7fffffff, 4);
	made_walk_and_assert(0, NULL);
	made_assert_missing(1, "unreadable LFH subsegment");
}

MADE_TEST(a_container_that_no_zone_lists_is_counted_and_found, X64 | WIN7_X64)
{
	made_lfh_plain();
	/* The last subsegment is after the zone's end. */
	lfh.next_subsegment -= lfh.layout->subsegment_bytes;
	made_zone_end();
	made_walk_and_assert(1, "LFH container that no zone lists");
}

MADE_TEST(a_container_that_only_zones_have_is_counted_and_not_taken_twice, X64)
{
	uint64_t entry = MADE_HEAP + 0x2c0;

	made_lfh_plain();
	/* Place a subsegment inside one of the program's blocks. */
	made_subsegment(entry + 0x20, 0x20, 1);
	made_walk_and_assert(1, "LFH container unknown to the back end");
}

MADE_TEST(a_container_in_memory_the_back_end_lost_is_found_through_its_zone, X64)
{
	uint64_t container = made_lfh_plain();

	/* Damage the container's own header in the back end. */
	fake_write(container - 8, 0, 8);
	made_walk_and_assert(1, NULL);
	assert_int_equal(made.walk.broken_addr, container - 16);
}

MADE_TIMES(a_container_whose_pointer_is_damaged_is_described_by_its_zone, X64, 4)
{
	static const uint64_t wrong[4] = {0, MADE_HEAP, 0xffffffffffffffff, 0x123456789};
	uint64_t container = made_lfh_plain();

	made_write_ptr(container, wrong[i]);
	made_walk_and_assert(1, "LFH container without its subsegment");
}

MADE_TEST(a_front_end_of_another_heap_is_counted_and_blocks_are_found_without_it, WIN7_X64)
{
	made_lfh_plain();
	made_write_ptr(lfh.addr + lfh.layout->heap, MADE_HEAP + 0x10000);
	/* If the zones are lost, the front end's own chunks cannot be distinguished from the
	 * program's blocks. */
	made_expect(lfh.addr, 0x100 - 8, 8, 0);
	made_expect(lfh.zone,
		(lfh.layout->zone_first + MADE_SUBSEGMENTS * lfh.layout->subsegment_bytes + 0x2f) /
				16 * 16 -
			8,
		8, 0);
	made_walk_and_assert(1, "front end that is not the heap's");
}

/* ---------------------------------------------------------------- damage */

MADE_TIMES(without_a_sound_bitmap_marks_show_busy_blocks_and_it_is_counted, X64, 6)
{
	uint64_t container = made_lfh_plain();
	/* Offsets in the first container, which has 20 blocks of 20h bytes: some places and its
	 * end. */
	uint64_t end = container + 0x40 + 20 * 0x20 + 0x10;
	uint64_t wrong[] = {0, container, UINT64_MAX, end + 0x10, end - 2};

	if (i == 5)
		made_write_ptr(container + lfh.layout->bitmap, 19);
	else
		made_write_ptr(container + lfh.layout->bitmap_buffer, wrong[i]);
	made_walk();
	assert_string_equal(made.walk.broken_what, "LFH container without its bitmap");
	made_assert_blocks();
}

MADE_TEST(a_zone_that_reaches_into_the_next_is_cut_and_counted, X64)
{
	uint64_t second;

	made_lfh();
	second = made_block(0x400, NT_BLOCK_BUSY, 8) + 16;
	made_list_add(lfh.addr + lfh.layout->zones, second);
	fake_write(second + lfh.layout->zone_end, 0, 4);
	fake_write(lfh.zone + lfh.layout->zone_end, MADE_SUBSEGMENTS + 1, 4);
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(1, "LFH zone of an impossible size");
	assert_int_equal(made.walk.broken_addr, lfh.zone);
}

/* ---------------------------------------------------------------- contradictions */

MADE_TEST(a_container_larger_than_its_block_is_in_doubt, X64)
{
	struct made_container c;

	made_lfh();
	made_container(0x30, 60);
	c = made_container(0x40, 60);
	fake_write(c.addr + 0x10, 0x15, 4);
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(0, NULL);
	made_assert_doubt(1, "LFH container whose size differs from its block's");
}

/* The bitmap of 224 blocks has 7 words of 32 bits. The container has room for one more block, but
 * not if the bitmap gets an eighth word. */
MADE_TIMES(a_container_is_full_when_the_next_block_would_need_a_longer_bitmap, X64 | X86, 2)
{
	made_lfh();
	made_container_and(0x30, i ? 223 : 224, 0x30);
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(0, NULL);
	made_assert_doubt(i, i ? "LFH container with a wrong capacity" : NULL);
}

/* The container's subsegment does not refer to the container. The container is an empty reserve
 * only if none of its blocks is in use. */
MADE_TIMES(a_container_without_a_subsegment_that_is_in_use_is_in_doubt, ALL, 2)
{
	struct made_container c;

	made_lfh();
	c = made_container(0x40, 20);
	if (i)
		made_lfh_busy(&c, 13, 0x88);
	made_write_ptr(c.subsegment + lfh.layout->user_blocks, 0);
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(0, NULL);
	made_assert_doubt(i, i ? "LFH container in use without a subsegment" : NULL);
}

/* Without a bitmap, a header that lost its mark would hide its block. */
MADE_TIMES(a_block_that_lost_its_mark_is_in_doubt_where_there_is_no_bitmap, WIN7_X64 | WIN7_X86, 2)
{
	struct made_container c;
	uint64_t entry;

	made_lfh();
	c = made_container(0x40, 60);
	entry = made_lfh_busy(&c, 5, 0x88);
	if (i)
		made_lfh_header(c.addr, entry, 0x80);
	else
		made_expect(entry + made.shape->unit, 0x40 - 8, 8, 0);
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(0, NULL);
	made_assert_doubt(i, NULL);
}

/* ---------------------------------------------------------------- the key */

/* If the file lacks the _LFH_HEAP, the key can be derived only from the block headers. The address
 * of the _LFH_HEAP is still known. */
MADE_TEST(a_front_end_that_is_not_there_costs_no_block, X64 | X86)
{
	uint64_t seed = 3;
	struct made_container c;

	made_lfh();
	made_expect(lfh.addr, 0x100 - 8, 8, 0);
	made_expect(lfh.zone, made.at - lfh.zone + made.shape->unit - 8, 8, 0);
	lfh.addr = 0x66660000;
	made_write_ptr(MADE_HEAP + made.row->front_end, lfh.addr);
	c = made_container(0x30, 30);
	made_lfh_fill(&c, &seed);
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(0, NULL);
	made_assert_missing(1, "unreadable front end");
	assert_int_equal(made.nt.lfh_key, MADE_LFH_KEY);
}

static void make_single(bool wrong_headers)
{
	uint64_t seed = 5;
	struct made_container c;

	made_lfh();
	lfh.wrong_headers = wrong_headers;
	c = made_container(0x50, 40);
	made_lfh_fill(&c, &seed);
	made_rest(MADE_LFH_BYTES);
}

MADE_TEST(a_single_container_is_believed_when_its_headers_agree, X64)
{
	make_single(false);
	made_walk_and_assert(0, NULL);
	assert_int_equal(made.nt.lfh_key, MADE_LFH_KEY);
}

MADE_TEST(without_a_key_blocks_are_found_by_their_marks_with_a_warning, X64)
{
	make_single(true);
	made_walk_and_assert(1, "LFH key that does not verify");
	assert_false(made.nt.has_lfh_key);
}

MADE_TEST(a_container_with_another_key_is_counted_and_its_blocks_found, X64)
{
	uint64_t container = made_lfh_plain();

	fake_write(container + lfh.layout->offsets, 0x12345678, 4);
	made_walk_and_assert(1, "LFH container with impossible offsets");
	assert_int_equal(made.walk.broken_addr, container);
}

MADE_TIMES(the_key_of_another_heap_is_tried_first_and_verified, X64, 2)
{
	make_single(true);
	made_walk();
	made_assert_broken(1, "LFH key that does not verify");
	walk_clear(&made.walk);
	claims_release(&made.nt.claims);
	claims_init(&made.nt.claims, TARGET_SPACE_BYTES);
	made.nt.has_lfh_key = true;
	made.nt.lfh_key = i ? MADE_LFH_KEY : ~MADE_LFH_KEY;
	assert_int_equal(nt_backend_walk(&made.nt, MADE_HEAP), 0);
	made_assert_broken(!i, NULL);
	made_assert_blocks();
}

MADE_TIMES(the_key_is_found_whatever_it_is, X64 | X86, 100)
{
	uint64_t seed = 99 + i;
	uint32_t key = (uint32_t)fake_random(&seed);

	made_lfh();
	lfh.key = key;
	lfh.wrong_headers = i % 4 > 1;
	for (uint32_t j = 0; j < 4; j++) {
		struct made_container c =
			made_container(0x30 + 0x10 * j, 10 + (uint32_t)fake_random(&seed) % 200);

		made_lfh_fill(&c, &seed);
	}
	made_rest(MADE_LFH_BYTES);
	made_walk_and_assert(0, NULL);
	assert_int_equal(made.nt.lfh_key, key);
}

MADE_TIMES(impossible_offsets_in_clear_are_counted_and_blocks_are_found_by_their_marks, WIN8_X64, 8)
{
	/* Each value is first | stride << 16. The first container has first 0x40 and stride
	 * 0x20. */
	static const uint32_t wrong[8] = {
		0, 0x200030, 0x200044, 0x201008, 0x20fff0, 0x100040, 0x400040, 0xffffffff};
	uint64_t container = made_lfh_plain();

	fake_write(container + lfh.layout->offsets, wrong[i], 4);
	made_walk_and_assert(1, "LFH container with impossible offsets");
}
