#include "tests/unit/t.h"

#include <pthread.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

static void *ask_for_too_much(void *stop)
{
	uint64_t granted = 0;

	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
		granted += tables_commit(&area, memory.base, area.limit_bytes * 2);
	return (void *)(uintptr_t)granted;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(request_that_is_refused_is_in_nobodys_way)
{
	bool stop = false;
	uint64_t refused = 0;
	void *granted;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ask_for_too_much, &stop), 0);
	for (unsigned i = 0; i < 20000; i++) {
		if (tables_commit(&area, memory.base, TRACER_PAGE))
			tables_share(&area, TRACER_PAGE);
		else
			refused++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, &granted), 0);
	assert_null(granted);
	assert_int_equal(refused, 0);
	assert_int_equal(area.committed_bytes, 0);
	area.committed_bytes = area.limit_bytes - TRACER_PAGE;
	/* Fits exactly, up to the last byte. */
	assert_true(tables_commit(&area, memory.base, TRACER_PAGE));
	assert_false(tables_commit(&area, memory.base, TRACER_PAGE));
	assert_false(tables_commit(&area, memory.base, UINT64_MAX)); /* the sum does not wrap */
	assert_int_equal(area.committed_bytes, area.limit_bytes);
	area.committed_bytes = fake_committed_bytes(); /* adjust for the bytes above */
}

#define MS ((uint64_t)10000)

/* Returns how many sleeps of this length precede the end of a wait. */
static uint64_t sleeps_of(uint64_t length)
{
	struct memory_patience patience = {0};
	uint64_t now = 1000 * MS, count = 1;

	while (memory_is_patient(&patience, now, MEMORY_PATIENCE) && count < UINT32_MAX) {
		now += length;
		count++;
	}
	return count;
}

TEST(waiting_ends_by_time_however_long_sleep_takes)
{
	struct memory_patience patience = {0};

	assert_in_range(sleeps_of(1 * MS), 9990, 10010);
	assert_in_range(sleeps_of(2 * MS), 4990, 5010);
	assert_in_range(sleeps_of(156250), 635, 645); /* 15.625 ms, the usual clock */
	assert_in_range(sleeps_of(0), 1000, 1000000); /* a clock that stands still */
	assert_in_range(sleeps_of(0 - 5 * MS), 1000, 1000000); /* a clock that is set back */
	/* The whole process, including the lock's holder, stood still for an hour. */
	assert_true(memory_is_patient(&patience, 5 * MS, MEMORY_PATIENCE));
	assert_true(memory_is_patient(&patience, 3600000 * MS, MEMORY_PATIENCE));
	assert_true(memory_is_patient(&patience, 3600015 * MS, MEMORY_PATIENCE));
}

/* ---------------------------------------------------------------- layout of the reservation */

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define BASE ((uint64_t)0x7ff000000000)

static const uint64_t limits[] = {MIB, 2 * MIB, 3 * MIB, 7 * MIB, 100 * MIB, 128 * MIB, 1000 * MIB,
	4 * GIB, 5 * GIB, 63 * GIB, 64 * GIB};
#define LIMITS (sizeof(limits) / sizeof(*limits))

static void set(uint64_t limit)
{
	memset(&area, 0xff, sizeof(area)); /* values that an earlier tracer may have left */
	tracer_layout_set(&area, BASE, limit);
}

TEST_WITH(parts_lie_side_by_side_in_the_reservation, NULL, NULL)
{
	for (size_t k = 0; k < LIMITS; k++) {
		set(limits[k]);

		const struct {
			uint64_t addr, bytes;
		} parts[] = {
			{area.stack_buckets,
				stacktable_index_offset(stacktable_levels(area.stacks_limit))},
			{area.stacks, area.stacks_limit},
			{area.shard_tables, area.shard_bytes * TRACER_SHARDS},
			{area.modules, area.modules_limit},
			{area.unloads, area.unload_limit * sizeof(struct tracer_unload)},
			{area.ranges.nodes, area.ranges.node_limit * sizeof(struct tracer_range)},
		};
		enum { COUNT = sizeof(parts) / sizeof(*parts) };

		assert_int_equal(area.reserved, BASE);
		assert_int_equal(area.reserved_bytes, tracer_layout_bytes(limits[k]));
		assert_int_equal(area.limit_bytes, limits[k]);
		for (unsigned i = 0; i < COUNT; i++) {
			assert_int_equal(parts[i].addr % 65536, 0);
			assert_int_not_equal(parts[i].bytes, 0);
			assert_true(parts[i].addr >= BASE);
			assert_true(parts[i].addr + parts[i].bytes <= BASE + area.reserved_bytes);
			for (unsigned other = 0; other < i; other++) {
				assert_true(
					parts[i].addr + parts[i].bytes <= parts[other].addr ||
					parts[other].addr + parts[other].bytes <= parts[i].addr);
			}
		}
	}
}

TEST_WITH(everything_in_them_is_empty, NULL, NULL)
{
	set(GIB);
	assert_int_equal(area.committed_bytes, 0);
	assert_int_equal(area.stacks_committed, 0);
	assert_int_equal(area.stacks_top, 8);
	assert_int_equal(area.modules_top + area.unload_count, 0);
	assert_int_equal(area.unload_lock + area.unload_broken, 0);
	assert_int_equal(area.dropped_blocks + area.dropped_stacks, 0);
	assert_int_equal(area.dropped_ranges + area.dropped_unloads + area.unwind_mismatches, 0);
	assert_false(tracer_unload_is_lost(&area, 0, BASE));
	assert_int_equal(area.ranges.node_count + area.ranges.root + area.ranges.lock, 0);
	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		static const struct tracer_shard empty;

		assert_memory_equal(&area.shards[i], &empty, sizeof(empty));
	}
	for (unsigned i = 0; i < 1u << TRACER_HEAPS_LOG2; i++)
		assert_int_equal(area.heaps[i], 0);
}

TEST_WITH(every_stack_can_have_an_id, NULL, NULL)
{
	for (size_t k = 0; k < LIMITS; k++) {
		set(limits[k]);
		assert_true((area.stacks_limit - 1) / 8 < (uint64_t)1 << TRACER_STACK_BITS);
		assert_int_equal(area.stacks_limit % TRACER_PAGE, 0);
		assert_true(area.stacks_limit <= limits[k]);
		assert_true(area.stacks_limit >= limits[k] / 2 || area.stacks_limit == GIB);
	}
}

TEST_WITH(shards_have_room_for_what_may_be_committed, NULL, NULL)
{
	for (size_t k = 0; k < LIMITS; k++) {
		set(limits[k]);
		assert_true(area.shard_bytes * TRACER_SHARDS >= limits[k]);
		assert_true(area.shard_bytes <= GIB); /* hsnap's reader has this limit */
	}
}

TEST_WITH(a_32_bit_target_keeps_its_address_space, NULL, NULL)
{
	assert_true(tracer_layout_bytes(128 * MIB) < 400 * MIB);
}

TEST_WITH(a_reservation_is_no_more_than_needed, NULL, NULL)
{
	for (size_t k = 0; k < LIMITS; k++)
		assert_true(tracer_layout_bytes(limits[k]) < 3 * limits[k] + 4 * MIB);
}

/* The tracer's own count continues, but each session reports only its own part. */
TEST_WITH(what_was_found_wrong_in_earlier_sessions_is_remembered, NULL, NULL)
{
	memset(&area, 0, sizeof(area));
	for (uint64_t found = 0, i = 1; i <= 5; i++) {
		tracer_layout_set(&area, BASE, MIB);
		assert_int_equal(area.unwind_base, found);
		assert_int_equal(area.unwind_mismatches, 0);
		area.unwind_mismatches = i;
		found += i;
	}
}
