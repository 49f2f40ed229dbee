/*
 * The doctor's judgement: what agrees with the truth is ok, and every kind of mistake that a walker
 * or a source of stacks can make turns exactly the row off that is about it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/doctor/doctor_judge.h"

#define PROCESS 0x10000u
#define GROWABLE 0x20000u
#define UNLOCKED 0x30000u
#define LIVE_BIG 0x300000u
#define FREED 0x210040u
#define OUTER_FRAME 0x140005010u
#define MAIN_FRAME 0x140006020u
#define SYSTEM_FRAME 0x7ff000001000u

struct scene {
	struct doctor_truth truth;
	struct doctor_found found;
	struct doctor_report report;
	struct heap heaps[3];
	struct doctor_found_block blocks[32];
	uint64_t frames[DOCTOR_SITES + 1][4]; /* stacks through each site */
};

static struct doctor_range site_code(unsigned site)
{
	return (struct doctor_range){0x140001000 + site * 0x100, 0x140001080 + site * 0x100};
}

static void put(struct scene *scene, uint64_t addr, uint64_t bytes, enum doctor_heap heap,
	enum doctor_group group)
{
	struct doctor_truth *truth = &scene->truth;
	const struct doctor_block block = {.addr = addr,
		.requested_bytes = bytes,
		.heap = (uint8_t)heap,
		.group = (uint8_t)group,
		.site = (uint8_t)(truth->block_count % DOCTOR_SITES),
		.was_bytes = group == DOCTOR_RESIZED ? 9 : 0};

	assert_true(doctor_truth_add(truth, &block));
}

static void put_all(struct scene *scene)
{
	const struct doctor_block freed = {
		.addr = FREED, .requested_bytes = 20, .heap = DOCTOR_GROWABLE, .is_freed = true};

	put(scene, 0x110000, 0, DOCTOR_PROCESS_HEAP, DOCTOR_SMALL);
	put(scene, 0x110020, 100, DOCTOR_PROCESS_HEAP, DOCTOR_SMALL);
	put(scene, 0x210000, 1, DOCTOR_GROWABLE, DOCTOR_SMALL);
	put(scene, 0x210020, 24, DOCTOR_GROWABLE, DOCTOR_SMALL);
	put(scene, 0x210060, 2000, DOCTOR_GROWABLE, DOCTOR_MIDDLE);
	put(scene, 0x211000, 70000, DOCTOR_GROWABLE, DOCTOR_RESIZED);
	put(scene, LIVE_BIG, 0x100000, DOCTOR_GROWABLE, DOCTOR_BIG);
	put(scene, 0x410000, 20, DOCTOR_UNLOCKED, DOCTOR_SMALL);
	assert_true(doctor_truth_add(&scene->truth, &freed));
	doctor_truth_settle(&scene->truth);
}

/* What a source finds that makes no mistake: all live blocks, and one more in the process heap. */
static void find_all(struct scene *scene)
{
	struct doctor_found *found = &scene->found;

	found->blocks = scene->blocks;
	found->block_count = 0;
	for (uint32_t i = 0; i < scene->truth.block_count; i++) {
		const struct doctor_block *block = &scene->truth.blocks[i];

		if (block->is_freed)
			continue;
		found->blocks[found->block_count++] =
			(struct doctor_found_block){.addr = block->addr,
				.requested_bytes = block->requested_bytes,
				.overhead_bytes = 16,
				.heap = scene->truth.heaps[block->heap],
				.frames = scene->frames[block->site],
				.frame_count = 4};
	}
	found->blocks[found->block_count++] = (struct doctor_found_block){
		.addr = 0x110100, .requested_bytes = 7, .heap = PROCESS};
	doctor_found_sort(found);
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	scene->truth.magic = DOCTOR_MAGIC;
	scene->truth.heaps[DOCTOR_PROCESS_HEAP] = PROCESS;
	scene->truth.heaps[DOCTOR_GROWABLE] = GROWABLE;
	scene->truth.heaps[DOCTOR_UNLOCKED] = UNLOCKED;
	scene->truth.image = (struct doctor_range){0x140000000, 0x140010000};
	scene->truth.outer = (struct doctor_range){0x140005000, 0x140005100};
	for (unsigned i = 0; i <= DOCTOR_SITES; i++) {
		const uint64_t frames[4] = {SYSTEM_FRAME, site_code(i).to, OUTER_FRAME, MAIN_FRAME};

		scene->truth.sites[i] = site_code(i);
		memcpy(scene->frames[i], frames, sizeof(frames));
	}
	put_all(scene);
	scene->heaps[0].addr = PROCESS;
	scene->heaps[1].addr = GROWABLE;
	scene->heaps[2].addr = UNLOCKED;
	scene->found = (struct doctor_found){
		.source = "test", .has_stacks = true, .heaps = scene->heaps, .heap_count = 3};
	find_all(scene);
	assert_true(doctor_truth_is_sound(&scene->truth));
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	doctor_report_release(&scene->report);
	free(scene);
	return 0;
}

static struct doctor_found_block *at(struct scene *scene, uint64_t addr)
{
	for (size_t i = 0; i < scene->found.block_count; i++) {
		if (scene->found.blocks[i].addr == addr)
			return &scene->found.blocks[i];
	}
	fail_msg("no block at %llx", (unsigned long long)addr);
	return NULL;
}

static void find(struct scene *scene, const struct doctor_found_block *block)
{
	scene->blocks[scene->found.block_count++] = *block;
	doctor_found_sort(&scene->found);
}

static void lose(struct scene *scene, uint64_t addr)
{
	struct doctor_found_block *block = at(scene, addr);

	*block = scene->blocks[--scene->found.block_count];
	doctor_found_sort(&scene->found);
}

static const struct doctor_row *row(
	const struct scene *scene, enum doctor_heap heap, const char *what)
{
	for (size_t i = 0; i < scene->report.count; i++) {
		const struct doctor_row *row = &scene->report.rows[i];

		if (!strcmp(row->heap, doctor_heap_name(heap)) && !strcmp(row->what, what))
			return row;
	}
	fail_msg("no row for %s", what);
	return NULL;
}

/* The rows named are off, with a word why, and no other. */
static void judge_off(
	struct scene *scene, enum doctor_heap heap, const char *what, const char *also)
{
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found), 0);
	assert_int_equal(doctor_report_off(&scene->report), also ? 2 : 1);
	assert_int_equal(row(scene, heap, what)->verdict, DOCTOR_OFF);
	assert_true(row(scene, heap, what)->detail[0]);
	if (also)
		assert_int_equal(row(scene, heap, also)->verdict, DOCTOR_OFF);
}

static const char *group(enum doctor_group group)
{
	return doctor_group_name(group);
}

static void test_the_truth_is_ok(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL))->expected, 2);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL))->found, 2);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "freed blocks gone")->expected, 1);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "freed blocks gone")->found, 1);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "stacks")->expected, 5);
	assert_int_equal(row(scene, DOCTOR_PROCESS_HEAP, "stacks")->found, 2);
	/* 2 + 1 + 1 + 1 groups of live blocks; freed and other blocks of two heaps; stacks of three */
	assert_int_equal(scene->report.count, 1 + 4 + 1 + 2 * 2 + 3);
}

static void test_a_source_without_stacks_has_no_row_for_them(void **state)
{
	struct scene *scene = *state;

	scene->found.has_stacks = false;
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found), 0);
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
	judge_off(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL), NULL);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL))->found, 1);
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
		.addr = 0x210100, .requested_bytes = 5, .heap = GROWABLE};

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
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found), 0);
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
	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found), 0);
	assert_int_equal(scene->report.count, 4);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "number of blocks")->expected, 5);
}

static void test_listed_blocks_are_in_the_sums(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	scene->heaps[1].stackless.block_count = 1;
	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found), 0);
	assert_int_equal(doctor_report_off(&scene->report), 1);
}

static void test_a_wrong_sum_is_off(void **state)
{
	struct scene *scene = *state;

	count_all(scene);
	scene->heaps[1].stackless.block_count--;
	scene->heaps[2].stackless.requested_bytes++;
	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found), 0);
	assert_int_equal(doctor_report_off(&scene->report), 2);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "number of blocks")->verdict, DOCTOR_OFF);
	assert_int_equal(row(scene, DOCTOR_UNLOCKED, "bytes in them")->verdict, DOCTOR_OFF);
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

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
