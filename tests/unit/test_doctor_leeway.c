/*
 * What may differ without a mistake of ours: what was in a heap before the child used it, a few blocks of
 * the heap's own, a few freed blocks that were put aside. And what may not.
 */
#include "tests/unit/doctor_scene.h"

#define MANY 0x500000u /* where the many blocks are */
#define STEP 0x100u

enum {
	MANY_LIVE = 192, /* and the 5 there are: 3 others are few, 4 are not */
	MANY_FREED = 63, /* and the one: 8 that are still listed are few, 9 are not */
};

static uint64_t live_addr(unsigned i)
{
	return MANY + i * STEP;
}

static uint64_t freed_addr(unsigned i)
{
	return live_addr(MANY_LIVE + i);
}

static uint64_t other_addr(unsigned i)
{
	return live_addr(MANY_LIVE + MANY_FREED + i);
}

/* The scene with many more blocks in the growable heap, which is of a kind of Windows'. */
static int set_up_many(void **state)
{
	struct scene *scene;

	set_up(state);
	scene = *state;
	for (unsigned i = 0; i < MANY_LIVE; i++)
		put(scene, live_addr(i), 32, DOCTOR_GROWABLE, DOCTOR_SMALL);
	for (unsigned i = 0; i < MANY_FREED; i++) {
		const struct doctor_block freed = {.addr = freed_addr(i),
			.requested_bytes = 32,
			.heap = DOCTOR_GROWABLE,
			.is_freed = true};

		assert_true(doctor_truth_add(&scene->truth, &freed));
	}
	doctor_truth_settle(&scene->truth);
	find_all(scene);
	scene->heaps[1].kind = "nt";
	assert_true(doctor_truth_is_sound(&scene->truth));
	return 0;
}

static void find_at(struct scene *scene, uint64_t addr)
{
	const struct doctor_found_block block = {
		.addr = addr, .requested_bytes = 48, .heap = GROWABLE};

	find(scene, &block);
}

/* Judges; no row but this one is not ok. */
static const struct doctor_row *judge_one(
	struct scene *scene, const struct doctor_found *before, const char *what)
{
	size_t strange = 0;

	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, before), 0);
	for (size_t i = 0; i < scene->report.count; i++)
		strange += scene->report.rows[i].verdict != DOCTOR_OK;
	assert_int_equal(strange, row(scene, DOCTOR_GROWABLE, what)->verdict != DOCTOR_OK);
	return row(scene, DOCTOR_GROWABLE, what);
}

static void test_a_few_blocks_of_the_heaps_own_are_a_note(void **state)
{
	struct scene *scene = *state;
	const struct doctor_row *others;

	scene->found.has_stacks = false;
	for (unsigned i = 0; i < 3; i++)
		find_at(scene, other_addr(i));
	others = judge_one(scene, NULL, "other blocks");
	assert_int_equal(others->verdict, DOCTOR_NOTE);
	assert_int_equal(others->found, 3);
	assert_non_null(strstr(others->detail, "144 bytes")); /* 3 of 48 */
	assert_int_equal(doctor_report_off(&scene->report), 0);
}

static void test_more_than_a_few_are_off(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 0; i < 4; i++)
		find_at(scene, other_addr(i));
	assert_int_equal(judge_one(scene, NULL, "other blocks")->verdict, DOCTOR_OFF);
}

static void test_a_block_inside_one_of_the_childs_is_no_block_of_the_heaps_own(void **state)
{
	struct scene *scene = *state;

	find_at(scene, live_addr(7) + 16);
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 1);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "blocks that overlap")->verdict, DOCTOR_OFF);
}

/* Of those that are counted without a stack there is no size. */
static void test_a_few_blocks_without_a_stack_are_a_note(void **state)
{
	struct scene *scene = *state;
	const struct doctor_row *others;

	scene->heaps[1].stackless.block_count = 3;
	others = judge_one(scene, NULL, "other blocks");
	assert_int_equal(others->verdict, DOCTOR_NOTE);
	assert_null(strstr(others->detail, "bytes"));
}

/* One that is listed for a block of the child's, which is not, is wrong whatever it is. */
static void test_a_block_over_a_missing_one_overlaps(void **state)
{
	struct scene *scene = *state;

	lose(scene, live_addr(7));
	find_at(scene, live_addr(7) + 8);
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, "blocks that overlap")->verdict, DOCTOR_OFF);
	assert_int_equal(row(scene, DOCTOR_GROWABLE, group(DOCTOR_SMALL))->verdict, DOCTOR_OFF);
}

static void test_no_block_is_wines_own(void **state)
{
	struct scene *scene = *state;

	scene->heaps[1].kind = "wine";
	find_at(scene, other_addr(0));
	assert_int_equal(judge_one(scene, NULL, "other blocks")->verdict, DOCTOR_OFF);
}

static void test_what_was_in_the_heap_before_is_no_other_block(void **state)
{
	struct scene *scene = *state;
	struct doctor_found_block blocks[40] = {0};
	const struct doctor_found before = {.blocks = blocks, .block_count = 40};

	scene->heaps[1].kind = "wine";
	for (unsigned i = 0; i < 40; i++) {
		blocks[i] = (struct doctor_found_block){.addr = other_addr(i), .heap = GROWABLE};
		find_at(scene, other_addr(i));
	}
	assert_int_equal(judge_one(scene, &before, "other blocks")->verdict, DOCTOR_OK);
	find_at(scene, other_addr(40));
	doctor_report_release(&scene->report);
	assert_int_equal(judge_one(scene, &before, "other blocks")->found, 1);
}

static void test_what_was_there_before_may_be_counted_without_a_stack(void **state)
{
	struct scene *scene = *state;
	struct doctor_found_block blocks[2] = {{.addr = other_addr(0), .heap = GROWABLE},
		{.addr = other_addr(1), .heap = GROWABLE}};
	const struct doctor_found before = {.blocks = blocks, .block_count = 2};

	scene->heaps[1].kind = "wine";
	scene->heaps[1].stackless.block_count = 2;
	assert_int_equal(judge_one(scene, &before, "other blocks")->verdict, DOCTOR_OK);
	scene->heaps[1].stackless.block_count = 3;
	doctor_report_release(&scene->report);
	assert_int_equal(judge_one(scene, &before, "other blocks")->found, 1);
}

static void find_freed(struct scene *scene, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		find_at(scene, freed_addr(i));
}

static void test_a_few_freed_blocks_that_are_put_aside_are_a_note(void **state)
{
	struct scene *scene = *state;
	const struct doctor_row *freed;

	find_freed(scene, 8);
	freed = judge_one(scene, NULL, "freed blocks gone");
	assert_int_equal(freed->verdict, DOCTOR_NOTE);
	assert_int_equal(freed->expected, MANY_FREED + 1);
	assert_int_equal(freed->found, MANY_FREED + 1 - 8);
	assert_non_null(strstr(freed->detail, "put blocks aside"));
}

static void test_more_freed_blocks_that_are_listed_are_off(void **state)
{
	struct scene *scene = *state;

	find_freed(scene, 9);
	assert_int_equal(judge_one(scene, NULL, "freed blocks gone")->verdict, DOCTOR_OFF);
}

static void test_wine_puts_no_freed_block_aside(void **state)
{
	struct scene *scene = *state;

	scene->heaps[1].kind = "wine";
	find_freed(scene, 1);
	assert_int_equal(judge_one(scene, NULL, "freed blocks gone")->verdict, DOCTOR_OFF);
}

/* The other heap has one live block: a block more is no small part. */
static void test_nothing_is_few_in_a_small_heap(void **state)
{
	struct scene *scene = *state;
	const struct doctor_found_block block = {
		.addr = 0x410100, .requested_bytes = 5, .heap = UNLOCKED};

	scene->heaps[2].kind = "nt";
	find(scene, &block);
	judge_off(scene, DOCTOR_UNLOCKED, "other blocks", NULL);
}

/* The sums of a dump are held against what the walk listed, once that was judged. */
static void test_sums_expect_what_the_walk_listed(void **state)
{
	struct scene *scene = *state;
	struct doctor_found walked;

	find_at(scene, other_addr(0));
	find_at(scene, freed_addr(3));
	walked = scene->found;
	assert_int_equal(
		doctor_judge_sums(&scene->report, &scene->truth, &scene->found, &walked), 0);
	assert_int_equal(doctor_report_off(&scene->report), 0);
	assert_int_equal(
		row(scene, DOCTOR_GROWABLE, "number of blocks")->expected, 5 + MANY_LIVE + 2);
	doctor_report_release(&scene->report);
	assert_int_equal(doctor_judge_sums(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), 2);
}

#define MANY_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up_many, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MANY_SCENE(test_a_few_blocks_of_the_heaps_own_are_a_note),
		MANY_SCENE(test_more_than_a_few_are_off),
		MANY_SCENE(test_a_few_blocks_without_a_stack_are_a_note),
		MANY_SCENE(test_a_block_inside_one_of_the_childs_is_no_block_of_the_heaps_own),
		MANY_SCENE(test_a_block_over_a_missing_one_overlaps),
		MANY_SCENE(test_no_block_is_wines_own),
		MANY_SCENE(test_what_was_in_the_heap_before_is_no_other_block),
		MANY_SCENE(test_what_was_there_before_may_be_counted_without_a_stack),
		MANY_SCENE(test_a_few_freed_blocks_that_are_put_aside_are_a_note),
		MANY_SCENE(test_more_freed_blocks_that_are_listed_are_off),
		MANY_SCENE(test_wine_puts_no_freed_block_aside),
		SCENE(test_nothing_is_few_in_a_small_heap),
		MANY_SCENE(test_sums_expect_what_the_walk_listed),
	};

	return cmocka_run_group_tests_name("doctor leeway", tests, NULL, NULL);
}
