/*
 * Where the tracer's tables lie in the range that is reserved for them.
 */
#include "tests/unit/t.h"

#include "snapshot/control/patch_plan.h"
#include "snapshot/tracer/tables.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define BASE ((uint64_t)0x7ff000000000)

static struct tracer_area area;

static const uint64_t limits[] = {MIB, 2 * MIB, 3 * MIB, 7 * MIB, 100 * MIB, 128 * MIB, 1000 * MIB,
	4 * GIB, 5 * GIB, 63 * GIB, 64 * GIB};
#define LIMITS (sizeof(limits) / sizeof(*limits))

static void set(uint64_t limit)
{
	memset(&area, 0xff, sizeof(area)); /* as an earlier tracing may have left it */
	tracer_layout_set(&area, BASE, limit);
}

TEST(parts_lie_side_by_side_in_the_reservation)
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

TEST(everything_in_them_is_empty)
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

TEST(every_stack_can_have_an_id)
{
	for (size_t k = 0; k < LIMITS; k++) {
		set(limits[k]);
		assert_true((area.stacks_limit - 1) / 8 < (uint64_t)1 << TRACER_STACK_BITS);
		assert_int_equal(area.stacks_limit % TRACER_PAGE, 0);
		assert_true(area.stacks_limit <= limits[k]);
		assert_true(area.stacks_limit >= limits[k] / 2 || area.stacks_limit == GIB);
	}
}

/* Tables of 1, 2, 4, ... times the first one, behind one another, up to so many bytes. */
TEST(shards_have_room_for_what_may_be_committed)
{
	for (size_t k = 0; k < LIMITS; k++) {
		uint64_t end = 0, largest = 0;

		set(limits[k]);
		for (uint64_t bytes = BLOCKTABLE_FIRST_BYTES; end + bytes <= area.shard_bytes;
			bytes *= 2) {
			end += bytes;
			largest = bytes;
		}
		assert_true(largest * TRACER_SHARDS <= limits[k]);
		assert_true(largest * TRACER_SHARDS > limits[k] / 2);
		assert_true(largest / sizeof(struct tracer_block) <= (uint64_t)1 << 26);
	}
}

TEST(a_32_bit_target_keeps_its_address_space)
{
	assert_true(tracer_layout_bytes(128 * MIB) < 400 * MIB);
}

TEST(a_reservation_is_no_more_than_needed)
{
	for (size_t k = 0; k < LIMITS; k++)
		assert_true(tracer_layout_bytes(limits[k]) < 3 * limits[k] + 4 * MIB);
}

/* The tracer's own count goes on; of each session only its own part is told. */
TEST(what_was_found_wrong_in_earlier_sessions_is_remembered)
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
