#include "tests/unit/t.h"

#include "core/base/hash.h"

#define COUNT 100000u

/* Returns distinct numbers: multiplying by an odd factor permutes the 64-bit numbers. */
static uint64_t number_of(uint32_t i)
{
	return i * UINT64_C(0x9e3779b97f4a7c15) * (i % 3 ? 1 : UINT64_C(1) << 20);
}

TEST(what_was_put_is_found_and_nothing_else)
{
	struct u64map map;
	uint32_t value;

	u64map_init(&map);
	assert_false(u64map_find(&map, 0, &value));
	u64map_reserve(&map, 1000);
	assert_true(map.index.cap >= 1000 && map.index.cap < 8000);
	for (uint32_t i = 1; i < COUNT; i++) {
		value = i;
		assert_int_equal(u64map_add(&map, i % 2 ? i : number_of(i), &value), 1);
	}
	assert_int_equal(map.index.count, COUNT - 1);
	for (uint32_t i = 1; i < COUNT; i++) {
		value = 0;
		assert_true(u64map_find(&map, i % 2 ? i : number_of(i), &value));
		assert_int_equal(value, i);
		value = 0;
		assert_int_equal(u64map_add(&map, i % 2 ? i : number_of(i), &value), 0);
		assert_int_equal(value, i);
		value = 77;
		assert_false(u64map_find(&map, ((uint64_t)1 << 63) + i, &value));
		assert_int_equal(value, 77);
	}
	u64map_release(&map);
}

TEST(zero_and_last_number_are_numbers)
{
	const uint64_t numbers[] = {0, UINT64_MAX};
	struct u64map map;
	uint32_t value;

	u64map_init(&map);
	for (uint32_t i = 0; i < 2; i++) {
		value = i;
		assert_int_equal(u64map_add(&map, numbers[i], &value), 1);
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(u64map_find(&map, numbers[i], &value));
		assert_int_equal(value, i);
	}
	u64map_release(&map);
	assert_false(u64map_find(&map, 0, &value));
}
