/* Claims of neighbours are one, as long as no whole page lies between them. */
#include "tests/unit/t.h"

#include "snapshot/heap/claims.h"

TEST(neighbours_nearer_than_a_page_are_one_claim)
{
	struct claims claims;
	struct claim_run run = {0};

	claims_init(&claims, 0x100000);
	assert_int_equal(claim_run_add(&run, &claims, 0x1000, 0x10), 0);
	assert_int_equal(claim_run_add(&run, &claims, 0x1010, 0x10), 0);
	assert_int_equal(claim_run_add(&run, &claims, 0x201f, 1), 0);
	assert_int_equal(claim_run_add(&run, &claims, 0x3020, 8), 0); /* a page further */
	assert_int_equal(claim_run_add(&run, &claims, 0x800, 8), 0); /* before */
	assert_int_equal(claim_run_flush(&run, &claims), 0);
	assert_int_equal(claim_run_flush(&run, &claims), 0);
	assert_int_equal(claims.count, 3);
	assert_int_equal(claims.list[0].addr, 0x1000);
	assert_int_equal(claims.list[0].end, 0x2020);
	assert_int_equal(claims.list[1].addr, 0x3020);
	assert_int_equal(claims.list[2].addr, 0x800);
	claims_release(&claims);
}

TEST(what_wraps_round_or_is_too_much_is_refused)
{
	struct claims claims;
	struct claim_run run = {0};

	claims_init(&claims, 0x20);
	assert_int_equal(claim_run_add(&run, &claims, UINT64_MAX - 1, 8), -ERR_TARGET);
	assert_int_equal(claim_run_add(&run, &claims, 0x1000, 0x21), 0);
	assert_int_equal(claim_run_flush(&run, &claims), -ERR_TARGET);
	claims_release(&claims);
}
