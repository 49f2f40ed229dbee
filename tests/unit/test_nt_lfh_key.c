/* Where blocks lie in containers of the low fragmentation heap: the key, found and verified. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made_lfh.h"

/* ---------------------------------------------------------------- the key */

/* The headers alone have the key of a heap whose _LFH_HEAP a file does not have; where that lies is known. */
MADE_TEST(a_front_end_that_is_not_there_costs_no_block, X64 | X86)
{
	uint64_t seed = 3;
	struct made_container c;

	made_lfh();
	made_expect(lfh.addr, 0x100 - 8, 8, 0);
	made_expect(lfh.zone, made.at - lfh.zone + made.shape->unit - 8, 8, 0);
	lfh.addr = 0x66660000;
	made_put_ptr(MADE_HEAP + made.row->front_end, lfh.addr);
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

MADE_TEST(without_a_key_blocks_are_found_by_their_marks_and_it_is_said, X64)
{
	make_single(true);
	made_walk_and_assert(1, "LFH key that does not verify");
	assert_false(made.nt.has_lfh_key);
}

MADE_TEST(a_container_with_another_key_is_counted_and_its_blocks_found, X64)
{
	uint64_t container = made_lfh_plain();

	fake_put(container + lfh.layout->offsets, 0x12345678, 4);
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
	/* first | stride << 16: the first container's are 0x40 and 0x20 */
	static const uint32_t wrong[8] = {
		0, 0x200030, 0x200044, 0x201008, 0x20fff0, 0x100040, 0x400040, 0xffffffff};
	uint64_t container = made_lfh_plain();

	fake_put(container + lfh.layout->offsets, wrong[i], 4);
	made_walk_and_assert(1, "LFH container with impossible offsets");
}
