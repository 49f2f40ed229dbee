/* What the x64 unwinder keeps of return addresses: packed, found, forgotten. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "snapshot/tracer/unwind.h"
#include "snapshot/tracer/unwind_parts_x64.h"

#define ADDR_END ((uint64_t)1 << 47)

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 16;
}

static void put(uint64_t addr, uint32_t packed)
{
	unwind_cache_put(addr, packed, unwind_cache_begin());
}

static int forget(void **state)
{
	(void)state;
	unwind_forget_all();
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND forget, NULL

TEST_WITH(steps_are_packed_and_unpacked, NULL, NULL)
{
	uint64_t random = 1;

	for (int i = 0; i < 100000; i++) {
		struct unwind_step step = {.is_from_rbp = next_random(&random) & 1,
			.cfa = ((int64_t)(next_random(&random) % 65536) - 32768) * 8,
			.rbp = ((int64_t)(next_random(&random) % 16384) - 8192) * 8};
		uint32_t packed = unwind_pack(&step);

		if (!step.is_from_rbp && step.cfa <= 0) {
			assert_int_equal(packed, UNWIND_NEVER);
			continue;
		}
		assert_int_equal(unwind_packed_is_from_rbp(packed), step.is_from_rbp);
		assert_int_equal(unwind_packed_cfa(packed), step.cfa);
		assert_int_equal(unwind_packed_rbp(packed), step.rbp);
		assert_true(packed != UNWIND_UNKNOWN && packed != UNWIND_END &&
			    packed != UNWIND_NEVER && packed != UNWIND_NO_CODE);
	}
}

TEST_WITH(what_does_not_fit_is_never_kept, NULL, NULL)
{
	static const struct unwind_step steps[] = {
		{false, 0, -16},
		{false, -8, -16},
		{false, 12, -16},
		{false, 16, -12},
		{false, 32768 * 8, -16},
		{true, 32768 * 8, -16},
		{true, -32769 * 8, -16},
		{false, 16, 8192 * 8},
		{false, 16, -8193 * 8},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		assert_int_equal(unwind_pack(&steps[i]), UNWIND_NEVER);
}

/* Neither of the special ones leads anywhere: its CFA is RSP itself. */
TEST_WITH(special_steps_lead_nowhere, NULL, NULL)
{
	static const uint32_t special[] = {
		UNWIND_UNKNOWN, UNWIND_END, UNWIND_NEVER, UNWIND_NO_CODE};

	for (size_t i = 0; i < 4; i++) {
		assert_false(unwind_packed_is_from_rbp(special[i]));
		assert_int_equal(unwind_packed_cfa(special[i]), 0);
	}
}

TEST_WITH(a_leaf_has_its_return_address_on_top, NULL, NULL)
{
	struct unwind_step step = {false, 8, UNWIND_RBP_KEPT};

	assert_int_equal(unwind_pack(&step), UNWIND_LEAF);
}

/* An entry has all of its address: found under that one, and under no other that shares its set. */
TEST(an_address_is_found_under_itself_alone)
{
	uint64_t random = 2;

	for (int i = 0; i < 200; i++) {
		uint64_t addr = next_random(&random) % ADDR_END;

		put(addr, 0x12345 | 1);
		assert_int_equal(unwind_cache_find(addr), 0x12345 | 1);
		for (unsigned bit = 0; bit < 64; bit++)
			assert_int_equal(unwind_cache_find(addr ^ (uint64_t)1 << bit), 0);
		unwind_forget(addr, addr + 1);
		assert_int_equal(unwind_cache_find(addr), 0);
	}
}

TEST(addresses_of_no_program_are_not_kept)
{
	static const uint64_t addrs[] = {ADDR_END, UINT64_MAX, (uint64_t)1 << 63};

	for (size_t i = 0; i < 3; i++) {
		put(addrs[i], 77);
		assert_int_equal(unwind_cache_find(addrs[i]), 0);
		assert_int_equal(unwind_cache_find(addrs[i] & (ADDR_END - 1)), 0);
	}
}

TEST(a_later_step_replaces_an_earlier_one)
{
	put(0x140001000, 5);
	put(0x140001000, 9);
	assert_int_equal(unwind_cache_find(0x140001000), 9);
	unwind_forget(0x140001000, 0x140001001);
	assert_int_equal(unwind_cache_find(0x140001000), 0);
}

/* A range of 32 KiB has one place for each address; so all of two such ranges are there at once. */
TEST(neighbours_do_not_push_each_other_out)
{
	for (uint64_t at = 0; at < UNWIND_SETS; at++) {
		put(0x7ff812340000 + at, (uint32_t)at << 2 | 1);
		put(0x140000000 + at, (uint32_t)at << 2 | 3);
	}
	for (uint64_t at = 0; at < UNWIND_SETS; at++) {
		assert_int_equal(unwind_cache_find(0x7ff812340000 + at), (uint32_t)at << 2 | 1);
		assert_int_equal(unwind_cache_find(0x140000000 + at), (uint32_t)at << 2 | 3);
	}
}

TEST(a_range_is_forgotten_and_no_more)
{
	uint64_t from = 0x7ff812345678, to = 0x7ff812346789;

	for (uint64_t addr = from - 2000; addr < to + 2000; addr++)
		put(addr, 5);
	unwind_forget(from, to);
	for (uint64_t addr = from - 2000; addr < to + 2000; addr++)
		assert_int_equal(unwind_cache_find(addr), addr >= from && addr < to ? 0 : 5);
}

/* What was begun to be learnt before a forgetting, and comes after it, does not count. */
TEST(what_is_learnt_too_late_does_not_count)
{
	uint64_t begun = unwind_cache_begin();

	unwind_forget(0x5000, 0x6000);
	unwind_cache_put(0x5800, 5, begun);
	assert_int_equal(unwind_cache_find(0x5800), 0);
	unwind_cache_put(0x5800, 5, unwind_cache_begin());
	assert_int_equal(unwind_cache_find(0x5800), 5);
}

/* The step tells the address, so that one that is not its own is seen. */
static uint32_t step_of(uint64_t addr)
{
	return (uint32_t)(addr * 0x9e3779b97f4a7c15u >> 32) | 1;
}

static void *put_and_find(void *seed)
{
	uint64_t random = (uintptr_t)seed, wrong = 0;

	for (int i = 0; i < 300000; i++) {
		/* few sets, many addresses */
		uint64_t addr = next_random(&random) % 64 << 40 | next_random(&random) % 8;
		uint32_t found = unwind_cache_find(addr);

		wrong += found && found != step_of(addr);
		put(addr, step_of(addr));
		if (i % 1000 == 0)
			unwind_forget(addr, addr + 1);
	}
	return (void *)(uintptr_t)wrong;
}

TEST(threads_find_nothing_wrong)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, put_and_find, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}
