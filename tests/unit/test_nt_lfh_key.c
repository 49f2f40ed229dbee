/* Where blocks lie in containers of the low fragmentation heap: the key, found and verified. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made_lfh.h"

#define X64 "nt 10.0.17763-22000 x64"
#define X86 "nt 10.0.17763-19041 x86"

/* ---------------------------------------------------------------- the key */

/* The headers alone have the key of a heap whose _LFH_HEAP a file does not have; where that lies is known. */
TEST(a_front_end_that_is_not_there_costs_no_block)
{
	static const char *const rows[] = {X64, X86};

	for (size_t i = 0; i < 2; i++) {
		struct made *made = made_new(rows[i]);
		uint64_t seed = 3;
		struct made_container c;
		struct made_lfh lfh;

		made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
		lfh = made_lfh(made);
		made_expect(made, lfh.addr, 0x100 - 8, 8, 0);
		made_expect(
			made, lfh.zone, made->at - lfh.zone + made->common->entry_bytes - 8, 8, 0);
		lfh.addr = 0x66660000;
		made_put_ptr(made, MADE_HEAP + made->row->front_end, lfh.addr);
		c = made_container(&lfh, 0x30, 30);
		made_lfh_fill(&lfh, &c, &seed);
		made_rest(made, MADE_LFH_BYTES);
		made_walk_and_assert(made, 0, NULL);
		made_assert_missing(made, 1, "unreadable front end");
		assert_int_equal(made->nt.lfh_key, MADE_LFH_KEY);
		made_free(made);
	}
}

static struct made *make_single(bool wrong_headers)
{
	struct made *made = made_new(X64);
	uint64_t seed = 5;
	struct made_container c;
	struct made_lfh lfh;

	made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh = made_lfh(made);
	lfh.wrong_headers = wrong_headers;
	c = made_container(&lfh, 0x50, 40);
	made_lfh_fill(&lfh, &c, &seed);
	made_rest(made, MADE_LFH_BYTES);
	return made;
}

TEST(a_single_container_is_believed_when_its_headers_agree)
{
	struct made *made = make_single(false);

	made_walk_and_assert(made, 0, NULL);
	assert_int_equal(made->nt.lfh_key, MADE_LFH_KEY);
	made_free(made);
}

TEST(without_a_key_blocks_are_found_by_their_marks_and_it_is_said)
{
	struct made *made = make_single(true);

	made_walk_and_assert(made, 1, "LFH key that does not verify");
	assert_false(made->nt.has_lfh_key);
	made_free(made);
}

TEST(a_container_with_another_key_is_counted_and_its_blocks_found)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh = made_lfh_plain(made);
	uint64_t sub = lfh.zone + lfh.layout->zone_first;
	uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

	fake_put(&made->fake, container + lfh.layout->data_offsets, 0x12345678, 4);
	made_walk_and_assert(made, 1, "LFH container with impossible offsets");
	assert_int_equal(made->walk.broken_addr, container);
	made_free(made);
}

TEST(keys_that_fit_one_container_each_are_none)
{
	struct made *made = made_new(X64);
	uint64_t seed = 5;
	struct made_lfh lfh;

	made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh = made_lfh(made);
	for (uint32_t i = 0; i < 8; i++) {
		struct made_container c;

		lfh.key = (uint32_t)fake_random(&seed);
		c = made_container(&lfh, 0x50, 40);
		made_lfh_fill(&lfh, &c, &seed);
	}
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 1, "LFH key that does not verify");
	assert_false(made->nt.has_lfh_key);
	made_free(made);
}

TEST(the_key_of_another_heap_is_tried_first_and_verified)
{
	for (int i = 0; i < 2; i++) {
		struct made *made = make_single(true);

		made_walk(made);
		made_assert_broken(made, 1, "LFH key that does not verify");
		walk_clear(&made->walk);
		claims_release(&made->nt.claims);
		claims_init(&made->nt.claims, TARGET_SPACE_BYTES);
		made->nt.has_lfh_key = true;
		made->nt.lfh_key = i ? MADE_LFH_KEY : ~MADE_LFH_KEY;
		assert_int_equal(nt_backend_walk(&made->nt, MADE_HEAP), 0);
		made_assert_broken(made, !i, NULL);
		made_assert_blocks(made);
		made_free(made);
	}
}

TEST(the_key_is_found_whatever_it_is)
{
	uint64_t seed = 99;

	for (int i = 0; i < 200; i++) {
		struct made *made = made_new(i % 2 ? X64 : X86);
		uint32_t key = (uint32_t)fake_random(&seed);
		struct made_lfh lfh;

		made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
		lfh = made_lfh(made);
		lfh.key = key;
		lfh.wrong_headers = i % 4 > 1;
		for (uint32_t j = 0; j < 4; j++) {
			struct made_container c = made_container(
				&lfh, 0x30 + 0x10 * j, 10 + (uint32_t)fake_random(&seed) % 200);

			made_lfh_fill(&lfh, &c, &seed);
		}
		made_rest(made, MADE_LFH_BYTES);
		made_walk_and_assert(made, 0, NULL);
		assert_int_equal(made->nt.lfh_key, key);
		made_free(made);
	}
}

TEST(impossible_offsets_in_clear_are_counted_and_blocks_are_found_by_their_marks)
{
	/* first | stride << 16: the first container's are 0x40 and 0x20 */
	static const uint32_t wrong[] = {
		0, 0x200030, 0x200044, 0x201008, 0x20fff0, 0x100040, 0x400040, 0xffffffff};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new("nt 6.2.9200 x64");
		struct made_lfh lfh = made_lfh_plain(made);
		uint64_t sub = lfh.zone + lfh.layout->zone_first;
		uint64_t container = fake_get(&made->fake, sub + lfh.layout->sub_data, 8);

		fake_put(&made->fake, container + lfh.layout->data_offsets, wrong[i], 4);
		made_walk_and_assert(made, 1, "LFH container with impossible offsets");
		made_free(made);
	}
}
