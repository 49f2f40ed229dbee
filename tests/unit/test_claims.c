#include "tests/unit/t.h"

#include "core/base/err.h"
#include "snapshot/heap/claims.h"
#include "snapshot/heap/heap.h"

TEST(block_that_no_process_can_have_is_broken_place)
{
	const uint64_t most = ((uint64_t)1 << 48) - 1;
	struct walk walk;

	walk_init(&walk);
	assert_int_equal(walk_add_heap(&walk, &(struct heap){.bits = 64}), 0);
	assert_int_equal(walk_add_block(&walk, most, most, most, UINT64_MAX), 0);
	assert_int_equal(walk.blocks[0].addr, most);
	assert_int_equal(walk.blocks[0].requested_bytes, most);
	assert_int_equal(walk.blocks[0].overhead_bytes, BLOCK_OVERHEAD_MAX);
	assert_int_equal(walk.records[walk.blocks[0].stack].addr, UINT64_MAX);
	assert_int_equal(walk.broken_count, 0);
	assert_int_equal(walk_add_block(&walk, most + 1, 1, 1, 0), 0);
	assert_int_equal(walk_add_block(&walk, 1, most + 1, 1, 0), 0);
	assert_int_equal(walk.block_count, 1);
	assert_int_equal(walk.broken_count, 2);
	walk_release(&walk);
}

TEST(claims_are_no_more_than_limit_in_all)
{
	struct claims claims;

	claims_init(&claims, 0x3000);
	assert_int_equal(claims_add(&claims, 0x1000, 0x1000), 0);
	assert_int_equal(claims_add(&claims, 0x5000, 0x2001), -ERR_TARGET);
	assert_int_equal(claims_add(&claims, 0x5000, 0x2000), 0);
	assert_int_equal(claims_add(&claims, 0x9000, 1), -ERR_TARGET);
	assert_int_equal(claims.extents.count, 2);
	assert_int_equal(claims.left_bytes, 0);
	claims_release(&claims);
}

TEST(claim_of_nothing_or_round_end_of_addresses_is_refused)
{
	struct claims claims;

	claims_init(&claims, UINT64_MAX);
	assert_int_equal(claims_add(&claims, 0x1000, 0), -ERR_TARGET);
	assert_int_equal(claims_add(&claims, 0x1000, UINT64_MAX - 0xffe), -ERR_TARGET);
	assert_int_equal(claims_add(&claims, UINT64_MAX - 0xf, 0x10), -ERR_TARGET);
	assert_int_equal(claims_add(&claims, UINT64_MAX - 0xf, 0xf), 0);
	claims_release(&claims);
}

TEST(claims_side_by_side_do_not_overlap)
{
	struct claims claims;
	uint64_t addr = 1;

	claims_init(&claims, UINT64_MAX);
	assert_int_equal(extents_sort(&claims.extents, &addr), 0);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(claims_add(&claims, 0x1000 * (i * 37 % 100), 0x1000), 0);
	assert_int_equal(extents_sort(&claims.extents, &addr), 0);
	assert_int_equal(addr, 1);
	claims_release(&claims);
}

TEST(what_is_claimed_twice_is_counted_with_its_first_place)
{
	struct claims claims;
	uint64_t addr = 1;

	claims_init(&claims, UINT64_MAX);
	assert_int_equal(claims_add(&claims, 0x9000, 0x1000), 0);
	assert_int_equal(claims_add(&claims, 0x1000, 0x5000), 0);
	assert_int_equal(claims_add(&claims, 0x2000, 0x1000), 0);
	assert_int_equal(claims_add(&claims, 0x4000, 0x1000), 0); /* after a claim that has ended */
	assert_int_equal(claims_add(&claims, 0x9fff, 1), 0);
	assert_int_equal(extents_sort(&claims.extents, &addr), 3);
	assert_int_equal(addr, 0x2000);
	/* The remaining extents do not overlap, and extents_at() finds them. */
	assert_int_equal(claims.extents.count, 2);
	assert_int_equal(extents_at(&claims.extents, 0x5fff)->addr, 0x1000);
	assert_null(extents_at(&claims.extents, 0x6000));
	assert_int_equal(extents_above(&claims.extents, 0x6000)->addr, 0x9000);
	assert_null(extents_above(&claims.extents, 0xa000));
	claims_release(&claims);
}

TEST(neighbours_nearer_than_page_are_one_claim)
{
	struct claims claims;
	struct extent run = {0};

	claims_init(&claims, 0x100000);
	assert_int_equal(claim_run_add(&run, &claims, 0x1000, 0x10), 0);
	assert_int_equal(claim_run_add(&run, &claims, 0x1010, 0x10), 0);
	assert_int_equal(claim_run_add(&run, &claims, 0x201f, 1), 0);
	/* One page after the previous claim. */
	assert_int_equal(claim_run_add(&run, &claims, 0x3020, 8), 0);
	assert_int_equal(claim_run_add(&run, &claims, 0x800, 8), 0); /* before the first claim */
	assert_int_equal(claim_run_flush(&run, &claims), 0);
	assert_int_equal(claim_run_flush(&run, &claims), 0);
	assert_int_equal(claims.extents.count, 3);
	assert_int_equal(claims.extents.list[0].addr, 0x1000);
	assert_int_equal(claims.extents.list[0].end, 0x2020);
	assert_int_equal(claims.extents.list[1].addr, 0x3020);
	assert_int_equal(claims.extents.list[2].addr, 0x800);
	claims_release(&claims);
}

TEST(what_wraps_round_or_is_too_much_is_refused)
{
	struct claims claims;
	struct extent run = {0};

	claims_init(&claims, 0x20);
	assert_int_equal(claim_run_add(&run, &claims, UINT64_MAX - 1, 8), -ERR_TARGET);
	assert_int_equal(claim_run_add(&run, &claims, 0x1000, 0x21), 0);
	assert_int_equal(claim_run_flush(&run, &claims), -ERR_TARGET);
	claims_release(&claims);
}
