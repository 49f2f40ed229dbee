/*
 * The doctor's judgement: what agrees with the truth is ok, and every kind of mistake that a walker
 * or a source of stacks can make turns exactly the row off that is about it.
 */
#include "tests/unit/doctor_scene.h"

static void test_the_truth_is_ok(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL))->expected, 2);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL))->found, 2);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "freed blocks gone")->expected, 1);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "freed blocks gone")->found, 1);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "stacks")->expected, 5);
	assert_int_equal(row(scene, DOCTOR_PROCESS_HEAP, "stacks")->found, 2);
	assert_int_equal(row(scene, DOCTOR_PROCESS_HEAP, "blocks that overlap")->found, 0);
	/* Groups of live blocks; freed and other blocks of two heaps; overlaps and stacks of three */
	assert_int_equal(scene->report.count, 1 + 4 + 1 + 2 * 2 + 3 + 3);
}

static void test_a_source_without_stacks_has_no_row_for_them(void **state)
{
	struct scene *scene = *state;

	scene->found.has_stacks = false;
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	for (size_t i = 0; i < scene->report.count; i++)
		assert_string_not_equal(scene->report.rows[i].what, "stacks");
}

static void test_a_missing_block_is_off(void **state)
{
	struct scene *scene = *state;

	lose(scene, 0x210060);
	judge_off(scene, DOCTOR_GROWABLE, group(DOCTOR_MIDDLE), "stacks");
	assert_int_equal(row(scene, DOCTOR_GROWABLE, group(DOCTOR_MIDDLE))->found, 0);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "stacks")->found, 4);
}

static void test_a_missing_block_of_the_process_heap_is_off(void **state)
{
	struct scene *scene = *state;

	lose(scene, 0x110000);
	judge_off(scene, DOCTOR_PROCESS_HEAP, group(DOCTOR_SMALL), "stacks");
}

static void test_a_wrong_size_is_off(void **state)
{
	struct scene *scene = *state;

	at(scene, LIVE_BIG)->requested_bytes--;
	judge_off(scene, DOCTOR_GROWABLE, group(DOCTOR_BIG), NULL);
}

static void test_a_block_in_the_wrong_heap_is_off(void **state)
{
	struct scene *scene = *state;

	at(scene, 0x410000)->heap = GROWABLE;
	judge_off(scene, DOCTOR_UNLOCKED, group(DOCTOR_SMALL), NULL);
}

static void test_a_block_listed_twice_is_off(void **state)
{
	struct scene *scene = *state;

	find(scene, at(scene, 0x210020));
	judge_off(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL), "blocks that overlap");
	assert_int_equal(row(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL))->found, 1);
}

/* It reaches into the child's first block: each of the two is in the other. */
static void test_blocks_that_share_memory_are_off(void **state)
{
	struct scene *scene = *state;
	const struct doctor_found_block block = {
		.addr = 0x10ff00, .requested_bytes = 0x101, .heap = PROCESS};

	find(scene, &block);
	judge_off(scene, DOCTOR_PROCESS_HEAP, "blocks that overlap", NULL);
	assert_int_equal(row(scene, DOCTOR_PROCESS_HEAP, "blocks that overlap")->found, 2);
}

static void test_two_strange_blocks_that_share_memory_are_off(void **state)
{
	struct scene *scene = *state;
	const struct doctor_found_block block = {
		.addr = 0x110106, .requested_bytes = 1, .heap = PROCESS};

	find(scene, &block);
	judge_off(scene, DOCTOR_PROCESS_HEAP, "blocks that overlap", NULL);
}

static void test_blocks_side_by_side_share_no_memory(void **state)
{
	struct scene *scene = *state;
	const struct doctor_found_block after = {.addr = 0x110107,
						.requested_bytes = 1,
						.heap = PROCESS},
					before = {.addr = 0x10ff00,
						.requested_bytes = 0x100,
						.heap = PROCESS};

	find(scene, &after);
	find(scene, &before);
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
}

/* A block without end must not wrap around. */
static void test_a_block_without_end_overlaps(void **state)
{
	struct scene *scene = *state;
	const struct doctor_found_block block = {
		.addr = 0x110101, .requested_bytes = UINT64_MAX, .heap = PROCESS};

	find(scene, &block);
	judge_off(scene, DOCTOR_PROCESS_HEAP, "blocks that overlap", NULL);
}

static void test_a_heap_that_is_not_walked_is_off_but_for_segment_heaps(void **state)
{
	struct scene *scene = *state;

	lose(scene, 0x410000);
	scene->heaps[2].unwalked = true;
	judge_off(scene, DOCTOR_UNLOCKED, "walking it", NULL);
	doctor_report_release(&scene->report);
	for (uint32_t i = 0; i < scene->truth.block_count; i++) {
		struct doctor_block *block = &scene->truth.blocks[i];

		if (block->heap == DOCTOR_UNLOCKED)
			block->heap = DOCTOR_SEGMENT;
	}
	scene->truth.heaps[DOCTOR_SEGMENT] = UNLOCKED;
	scene->truth.heaps[DOCTOR_UNLOCKED] = 0;
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	assert_int_equal(row(scene, DOCTOR_SEGMENT, "walking it")->verdict, DOCTOR_NOT_THERE);
	doctor_report_release(&scene->report);
	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
}

/* The tracer's blocks are known of such heaps too. */
static void test_a_heap_that_is_not_walked_may_have_the_tracers_blocks(void **state)
{
	struct scene *scene = *state;

	scene->heaps[2].unwalked = true;
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	assert_int_equal(row(scene, DOCTOR_UNLOCKED, "stacks")->found, 1);
}

static void test_an_absurd_overhead_is_off(void **state)
{
	struct scene *scene = *state;

	at(scene, 0x210000)->overhead_bytes = 4096;
	judge_off(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL), NULL);
}

static uint64_t overhead_max(uint64_t bytes, uint64_t was_bytes)
{
	const struct doctor_block block = {.requested_bytes = bytes, .was_bytes = was_bytes};

	return doctor_overhead_max(&block);
}

static void test_overhead_may_be_what_real_heaps_have(void **state)
{
	(void)state;
	/* The extended prefix with header and rounding; a page; Windows' unit of 64 KiB. */
	assert_true(overhead_max(0, 0) >= 0x30 + 16 + 15);
	assert_true(overhead_max(20000, 0) >= 0x1000 + 0x60);
	assert_true(overhead_max(0x80000, 0) >= 0x10000 + 0x60);
	assert_true(overhead_max(100, 0) < 0x1000);
	/* What was left when a block was made smaller in its place. */
	assert_true(overhead_max(100, 1000) >= 900 + 0x30 + 16 + 15);
	assert_true(overhead_max(300, 2000000) >= 2000000 - 300 + 0x10000);
}

static void test_a_block_that_nobody_made_is_off(void **state)
{
	struct scene *scene = *state;
	const struct doctor_found_block block = {
		.addr = 0x210900, .requested_bytes = 5, .heap = GROWABLE};

	find(scene, &block);
	judge_off(scene, DOCTOR_GROWABLE, "other blocks", NULL);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "other blocks")->found, 1);
}

static void test_more_blocks_without_a_stack_are_off(void **state)
{
	struct scene *scene = *state;

	scene->heaps[1].stackless.block_count = 3;
	judge_off(scene, DOCTOR_GROWABLE, "other blocks", NULL);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "other blocks")->found, 3);
}

static void test_a_block_without_a_stack_is_no_other_block(void **state)
{
	struct scene *scene = *state;

	lose(scene, 0x210000);
	scene->heaps[1].stackless.block_count = 1;
	judge_off(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL), "stacks");
}

static void test_a_freed_block_that_is_listed_is_off(void **state)
{
	struct scene *scene = *state;
	const struct doctor_found_block block = {
		.addr = FREED, .requested_bytes = 20, .heap = GROWABLE};

	find(scene, &block);
	judge_off(scene, DOCTOR_GROWABLE, "freed blocks gone", NULL);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "freed blocks gone")->found, 0);
}

static void test_the_place_of_a_freed_block_may_be_another_heaps(void **state)
{
	struct scene *scene = *state;
	const struct doctor_found_block block = {
		.addr = FREED, .requested_bytes = 20, .heap = PROCESS};

	find(scene, &block);
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
}

static void test_a_stack_through_another_site_is_off(void **state)
{
	struct scene *scene = *state;
	const unsigned site = doctor_truth_find(&scene->truth, 0x210020)->site;

	at(scene, 0x210020)->frames = scene->frames[(site + 1) % DOCTOR_SITES];
	judge_off(scene, DOCTOR_GROWABLE, "stacks", NULL);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "stacks")->found, 4);
}

static void test_a_heap_that_is_not_listed_is_off(void **state)
{
	struct scene *scene = *state;

	lose(scene, 0x410000);
	scene->found.heap_count = 2;
	judge_off(scene, DOCTOR_UNLOCKED, group(DOCTOR_SMALL), "stacks");
}

static bool fits(struct scene *scene, const struct doctor_block *block, const uint64_t *frames,
	uint32_t count)
{
	return doctor_stack_fits(&scene->truth, block, frames, count);
}

static void test_a_stack_is_its_innermost_own_frame_and_the_outer_function(void **state)
{
	struct scene *scene = *state;
	const struct doctor_block block = {.site = 1};
	const struct doctor_range code = site_code(1);
	uint64_t frames[4] = {SYSTEM_FRAME, code.from + 1, OUTER_FRAME, MAIN_FRAME};

	assert_true(fits(scene, &block, frames, 4));
	frames[1] = code.to; /* the call may be the last instruction */
	assert_true(fits(scene, &block, frames, 4));
	assert_true(fits(scene, &block, frames, 3));
	assert_true(fits(scene, &block, frames + 1, 3));
	assert_false(fits(scene, &block, frames, 2)); /* cut before the outer function */
	assert_false(fits(scene, &block, frames, 1));
	assert_false(fits(scene, &block, frames, 0));
	frames[1] = code.from; /* no call lies before a function's first byte */
	assert_false(fits(scene, &block, frames, 4));
	frames[1] = code.to + 1;
	assert_false(fits(scene, &block, frames, 4));
	frames[0] = MAIN_FRAME; /* an own frame further in */
	frames[1] = code.to;
	assert_false(fits(scene, &block, frames, 4));
}

static void test_either_site_may_be_on_a_reallocated_blocks_stack(void **state)
{
	struct scene *scene = *state;
	const struct doctor_block block = {.site = 2, .was_bytes = 5}, plain = {.site = 2};

	assert_true(fits(scene, &block, scene->frames[2], 4));
	assert_true(fits(scene, &block, scene->frames[DOCTOR_RESIZE_SITE], 4));
	assert_false(fits(scene, &block, scene->frames[1], 4));
	assert_false(fits(scene, &plain, scene->frames[DOCTOR_RESIZE_SITE], 4));
}

/* Of the growable heap: 1 + 24 + 2000 + 70000 + 0x100000 bytes in 5 blocks; of the other: 20 in 1. */
static void count_all(struct scene *scene)
{
	scene->found.block_count = 0;
	scene->heaps[0].stackless = (struct census){1000, 12345, 1};
	scene->heaps[1].stackless = (struct census){5, 72025 + 0x100000, 80};
	scene->heaps[2].stackless = (struct census){1, 20, 16};
}

static void test_sums_are_those_of_the_childs_own_heaps(void **state)
{
	struct scene *scene = *state;

	count_all(scene);
	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(scene->report.count, 4);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "number of blocks")->expected, 5);
}

static void test_listed_blocks_are_in_the_sums(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	scene->heaps[1].stackless.block_count = 1;
	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 1);
}

static void test_a_wrong_sum_is_off(void **state)
{
	struct scene *scene = *state;

	count_all(scene);
	scene->heaps[1].stackless.block_count--;
	scene->heaps[2].stackless.requested_bytes++;
	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 2);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "number of blocks")->verdict, DOCTOR_OFF);
	assert_int_equal(row(scene, DOCTOR_UNLOCKED, "bytes in them")->verdict, DOCTOR_OFF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(test_the_truth_is_ok),
		SCENE(test_a_source_without_stacks_has_no_row_for_them),
		SCENE(test_a_missing_block_is_off),
		SCENE(test_a_missing_block_of_the_process_heap_is_off),
		SCENE(test_a_wrong_size_is_off),
		SCENE(test_a_block_in_the_wrong_heap_is_off),
		SCENE(test_a_block_listed_twice_is_off),
		SCENE(test_blocks_that_share_memory_are_off),
		SCENE(test_two_strange_blocks_that_share_memory_are_off),
		SCENE(test_blocks_side_by_side_share_no_memory),
		SCENE(test_a_block_without_end_overlaps),
		SCENE(test_a_heap_that_is_not_walked_is_off_but_for_segment_heaps),
		SCENE(test_a_heap_that_is_not_walked_may_have_the_tracers_blocks),
		SCENE(test_an_absurd_overhead_is_off),
		cmocka_unit_test(test_overhead_may_be_what_real_heaps_have),
		SCENE(test_a_block_that_nobody_made_is_off),
		SCENE(test_more_blocks_without_a_stack_are_off),
		SCENE(test_a_block_without_a_stack_is_no_other_block),
		SCENE(test_a_freed_block_that_is_listed_is_off),
		SCENE(test_the_place_of_a_freed_block_may_be_another_heaps),
		SCENE(test_a_stack_through_another_site_is_off),
		SCENE(test_a_heap_that_is_not_listed_is_off),
		SCENE(test_a_stack_is_its_innermost_own_frame_and_the_outer_function),
		SCENE(test_either_site_may_be_on_a_reallocated_blocks_stack),
		SCENE(test_sums_are_those_of_the_childs_own_heaps),
		SCENE(test_listed_blocks_are_in_the_sums),
		SCENE(test_a_wrong_sum_is_off),
	};

	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
