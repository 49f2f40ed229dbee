/*
 * What a walk or a snapshot holds, as the doctor compares it: every block with its heap, and the stack
 * where there is one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "snapshot/doctor/doctor.h"

static void test_a_snapshots_blocks_have_its_heaps_and_stacks(void **state)
{
	const uint64_t frames[] = {0x1111, 0x2222};
	const struct stack stack = {.id = "A1", .frames = frames, .frame_count = 2};
	struct snapshot snapshot;
	struct doctor_found found;
	struct block *block;
	uint32_t index;

	(void)state;
	snapshot_init(&snapshot);
	snapshot_add_heap(&snapshot)->addr = 0x5000;
	snapshot_add_heap(&snapshot)->addr = 0x6000;
	assert_int_equal(stackset_put(&snapshot.stacks, &stack, 2, &index), 0);
	for (unsigned i = 0; i < 2; i++) {
		block = snapshot_add_block(&snapshot);
		assert_non_null(block);
		*block = (struct block){.addr = 0x9000 - i * 0x100,
			.requested_bytes = 10 + i,
			.overhead_bytes = 3,
			.heap = i,
			.stack = index};
	}
	assert_int_equal(doctor_found_by_snapshot(&found, &snapshot), 0);
	assert_true(found.has_stacks);
	assert_int_equal(found.block_count, 2);
	assert_int_equal(found.blocks[0].addr, 0x8f00);
	assert_int_equal(found.blocks[0].requested_bytes, 11);
	assert_int_equal(found.blocks[0].overhead_bytes, 3);
	assert_int_equal(found.blocks[0].heap, 0x6000);
	assert_int_equal(found.blocks[1].heap, 0x5000);
	assert_int_equal(found.blocks[1].frame_count, 2);
	assert_int_equal(found.blocks[1].frames[1], 0x2222);
	assert_ptr_equal(doctor_found_heap(&found, 0x6000), &snapshot.heaps[1]);
	assert_null(doctor_found_heap(&found, 0x7000));
	assert_null(doctor_found_at(&found, 0x8f01));
	doctor_found_release(&found);
	snapshot_release(&snapshot);
}

static void test_a_walks_blocks_have_no_stacks(void **state)
{
	const struct heap heap = {.addr = 0x5000};
	struct doctor_found found;
	struct walk walk;

	(void)state;
	walk_init(&walk);
	assert_int_equal(doctor_found_by_walk(&found, &walk), 0);
	assert_int_equal(found.block_count, 0);
	doctor_found_release(&found);
	assert_int_equal(walk_add_heap(&walk, &heap), 0);
	assert_int_equal(walk_add_block(&walk, 0x5100, 12, 4, 0), 0);
	assert_int_equal(doctor_found_by_walk(&found, &walk), 0);
	assert_false(found.has_stacks);
	assert_int_equal(found.block_count, 1);
	assert_int_equal(found.blocks[0].heap, 0x5000);
	assert_int_equal(found.blocks[0].requested_bytes, 12);
	assert_null(found.blocks[0].frames);
	doctor_found_release(&found);
	walk_release(&walk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_snapshots_blocks_have_its_heaps_and_stacks),
		cmocka_unit_test(test_a_walks_blocks_have_no_stacks),
	};

	return cmocka_run_group_tests_name("doctor found", tests, NULL, NULL);
}
