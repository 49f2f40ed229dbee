/*
 * Where stacks come from in a snapshot, what is said when they are not there, and files, of which
 * what is there is shown.
 */
#include "tests/unit/t.h"

#include "tests/unit/capture_scene.h"

#define PEB_GLOBAL_FLAG 0xbc /* PEB.NtGlobalFlag, x64 */

/* ---------------------------------------------------------------- where stacks come from */

static void assert_census_of_all(const struct scene *scene)
{
	const struct truth *truth = &scene->image->truth;

	assert_int_equal(scene->snapshot.block_count, 0);
	assert_int_equal(scene->snapshot.heap_count, truth->heap_count);
	assert_int_equal(snapshot_total(&scene->snapshot).block_count, truth->block_count);
	assert_string_equal(scene->snapshot.stack_source, "none");
}

TEST(a_process_without_stacks_is_a_census_and_says_so)
{
	struct scene *scene = *state;

	scene->fake->module_count = 1;
	assert_int_equal(take(scene), 0);
	assert_census_of_all(scene);
	assert_true(has_warning(scene, "no block has a stack"));
	assert_int_equal(scene->snapshot.warning_count, 1);
	assert_false(scene->snapshot.records.is_known);
}

TEST(the_flag_of_ust_without_records_is_said)
{
	struct scene *scene = *state;

	scene->fake->module_count = 1;
	fake_put(scene->fake, FAKE_PEB + PEB_GLOBAL_FLAG, 0x1070, 4);
	assert_int_equal(take(scene), 0);
	assert_string_equal(scene->snapshot.stack_source, "ust");
	assert_true(has_warning(scene, "started with +ust, but no block leads to a stack"));
	assert_true(scene->snapshot.records.is_known);
	assert_int_equal(scene->snapshot.records.record_count, 0);
}

TEST(a_traced_process_with_the_flag_of_ust_is_as_without)
{
	struct scene *scene = *state;

	fake_put(scene->fake, FAKE_PEB + PEB_GLOBAL_FLAG, 0x1000, 4);
	assert_int_equal(take(scene), 0);
	assert_whole(scene);
	assert_string_equal(scene->snapshot.stack_source, "tracer");
	assert_int_equal(scene->snapshot.warning_count, 1); /* of sizes and heaps */
}

TEST(stacks_that_were_asked_for_have_to_be_there)
{
	struct scene *scene = *state;

	scene->options.stacks = STACKS_UST;
	assert_int_equal(take(scene), -ERR_NO_STACKS);
	assert_non_null(strstr(scene->err.detail, "it was not started with +ust"));
	fake_put(scene->fake, FAKE_PEB + PEB_GLOBAL_FLAG, 0x1000, 4);
	assert_int_equal(take(scene), -ERR_NO_STACKS);
	assert_non_null(strstr(scene->err.detail, "no block leads to a record"));
	scene->options.stacks = STACKS_OS;
	assert_int_equal(take(scene), -ERR_NO_STACKS);
	assert_int_equal(scene->fake->suspends, 0);
}

TEST(without_the_tracer_wanted_it_is_not_read)
{
	struct scene *scene = *state;

	AREA_PUT(scene->fake, version, 9);
	assert_int_equal(take(scene), -ERR_TARGET);
	scene->options.stacks = STACKS_UST;
	assert_int_equal(take(scene), -ERR_NO_STACKS);
}

TEST(a_process_that_was_detached_is_a_census_that_says_so)
{
	struct scene *scene = *state;

	AREA_PUT(scene->fake, state, TRACER_OFF);
	assert_int_equal(take(scene), 0);
	assert_census_of_all(scene);
	assert_true(has_warning(scene, "is detached"));
	assert_int_equal(scene->snapshot.warning_count, 1);
	scene->options.stacks = STACKS_TRACER;
	assert_int_equal(take(scene), -ERR_NOT_TRACED);
	assert_non_null(strstr(scene->err.detail, "detached"));
}

static void detach(struct fake *fake)
{
	AREA_PUT(fake, state, TRACER_OFF);
}

/* Found at work, and gone when the process is held. */
TEST(a_process_that_is_detached_meanwhile_is_a_census_too)
{
	struct scene *scene = *state;

	scene->fake->on_suspend = detach;
	assert_int_equal(take(scene), 0);
	assert_census_of_all(scene);
	assert_true(has_warning(scene, "is detached"));
	assert_string_equal(scene->snapshot.stack_source, "none");
	AREA_PUT(scene->fake, state, TRACER_ON);
	scene->options.stacks = STACKS_TRACER;
	assert_int_equal(take(scene), -ERR_NOT_TRACED);
	assert_non_null(strstr(scene->err.detail, "detached"));
}

static void change_ranges(struct fake *fake)
{
	AREA_PUT(fake, ranges.changing, fake->suspends < 4);
}

TEST(a_process_that_changes_its_ranges_is_let_go_and_held_again)
{
	struct scene *scene = *state;

	scene->fake->on_suspend = change_ranges;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 4);
	assert_whole(scene);
}

/* ---------------------------------------------------------------- files */

TEST(a_file_is_walked_once_however_busy_and_broken_it_is)
{
	struct scene *scene = *state;

	scene->fake->target.is_file = true;
	be_busy_at(scene, HEAP_A + HEAP_LOCK_OWNER, UINT64_MAX);
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 1);
	assert_true(has_warning(scene, "had their lock held all the time"));
	assert_whole(scene);
	fake_put(scene->fake, HEAP_A + HEAP_LOCK_OWNER, 0, 8);
	be_busy_at(scene, SUB_A2 + SUBHEAP_LINKS + 8, UINT64_MAX);
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 1);
	assert_true(has_warning(scene, "broken list at 600020"));
}

TEST(a_file_without_heaps_is_a_list_of_modules_with_a_warning)
{
	struct scene *scene = *state;

	fake_unmap(scene->fake, FAKE_PEB);
	assert_int_equal(take(scene), -ERR_TARGET);
	scene->fake->target.is_file = true;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->snapshot.heap_count, 0);
	assert_int_equal(scene->snapshot.module_count, 2);
	assert_true(has_warning(scene, "its heaps are not listed"));
	assert_true(has_warning(scene, "unreadable PEB at 7FFD0000"));
}

TEST(a_file_with_a_tracer_that_cannot_be_read_is_a_census)
{
	struct scene *scene = *state;

	scene->fake->target.is_file = true;
	SHARD_PUT(scene->fake, 5, table, 0xdead0000 | 11);
	assert_int_equal(take(scene), 0);
	assert_census_of_all(scene);
	assert_true(has_warning(scene, "its tracer was not read"));
	scene->options.stacks = STACKS_TRACER;
	assert_int_equal(take(scene), -ERR_TARGET);
}

TEST(a_files_time_is_that_of_its_process)
{
	struct scene *scene = *state;

	scene->fake->target.is_file = true;
	scene->fake->target.time_ms = 123456789;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->snapshot.time_ms, 123456789);
}

TEST(what_a_file_says_of_a_modules_build_stays)
{
	struct scene *scene = *state;

	scene->fake->modules[1].has_identity = true;
	scene->fake->modules[1].timestamp = 77;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->snapshot.modules[1].timestamp, 77);
}
