/* Snapshots again and again, by a made clock: when they are due, what fails, and how it ends. The truth is
 * arithmetic. */
#include "tests/unit/t.h"

#include "tests/unit/loop_scene.h"

static const struct series_plan hourly = {.name = "app.exe", .every_ms = 3600000};

TEST(test_a_thousand_snapshots_do_not_drift)
{
	struct scene *scene = scene_new();
	struct series_plan plan = hourly;
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->take_ms = 1234567;
	plan.file_count = 1000;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->shot_count, 1000);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(scene_at(scene, i), (int64_t)i * 3600000);
	assert_int_equal(series_exit_status(&result), 0);
	assert_int_equal(scene_said(scene, "left out"), 0);
	free(scene);
}

TEST(test_times_that_passed_are_left_out_and_said)
{
	static const struct {
		int64_t take_ms, step_ms;
		const char *words;
	} cases[] = {
		{10000, 10000, NULL}, /* done just when the next one is due */
		{10001, 20000, "1 time left out: the last snapshot was done 10s after"},
		{20000, 20000, "1 time left out"},
		{25000, 30000, "2 times left out: the last snapshot was done 25s after"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {.name = "a", .every_ms = 10000, .file_count = 5};
		struct series_result result;
		struct err err;

		scene_add(scene, 12, 77, 0, NEVER);
		scene->take_ms = cases[i].take_ms;
		assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
		assert_int_equal(scene->shot_count, 5);
		for (size_t shot = 0; shot < 5; shot++)
			assert_int_equal(scene_at(scene, shot), (int64_t)shot * cases[i].step_ms);
		assert_int_equal(scene_said(scene, "left out"), cases[i].words ? 4 : 0);
		if (cases[i].words)
			assert_int_equal(scene_said(scene, cases[i].words), 4);
		assert_int_equal(series_exit_status(&result), 0);
		free(scene);
	}
}

TEST(test_one_that_fails_is_tried_again_when_the_next_is_due)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "a", .every_ms = 10000, .file_count = 5};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->fail_from = 2;
	scene->fail_to = 5;
	scene->fails = ERR_WRITE;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->shot_count, 5);
	assert_int_equal(scene_at(scene, 1), 10000);
	assert_int_equal(scene_at(scene, 2), 50000); /* those due at 20, 30 and 40 s failed */
	assert_int_equal(scene_at(scene, 4), 70000);
	assert_int_equal(scene_said(scene, "12: cannot write"), 3);
	assert_int_equal(scene->takes, 8);
	assert_int_equal(result.failed, 3);
	assert_int_equal(series_exit_status(&result), 2);
	free(scene);
}

/* It is a file as any: what is missing now may be there the next time. */
TEST(test_one_that_lacks_something_is_written_and_makes_the_status_2)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "a", .every_ms = 10000, .file_count = 3};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->incomplete_at = 2;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->shot_count, 3);
	assert_int_equal(scene_at(scene, 2), 20000);
	assert_int_equal(result.failed, 0);
	assert_int_equal(result.incomplete, 1);
	assert_int_equal(series_exit_status(&result), 2);
	free(scene);
}

/* A disk that stays full: one try each time it is due, and no end of its own. */
TEST(test_what_fails_for_good_never_spins)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "a", .every_ms = 10000, .file_count = 5};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->fail_to = UINT64_MAX;
	scene->fails = ERR_CREATE;
	scene->interrupt_ms = SCENE_START_MS + 1000001;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->takes, 101); /* at 0, 10, ... 1000 s */
	assert_true(scene->waits <= 102);
	assert_int_equal(scene_said(scene, "interrupted: 0 files written"), 1);
	assert_int_equal(series_exit_status(&result), 2);
	free(scene);
}

TEST(test_a_taken_name_is_followed_by_the_next)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "a", .out = "{pid}-{time}", .every_ms = 10000, .file_count = 2};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->names_taken = SERIES_TRIES - 1;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(scene->shots[i].path + strlen("12-20261120T102548"), "Z_10");
	assert_int_equal(scene->looks_taken, 2); /* the process was held for no name */
	assert_int_equal(series_exit_status(&result), 0);
	free(scene);
}

TEST(test_names_are_not_tried_for_ever)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "a", .out = "{pid}-{time}"};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->names_taken = SERIES_TRIES;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->shot_count, 0);
	assert_int_equal(scene->looks_taken, 1);
	assert_int_equal(scene_said(scene, "Z_10: is there already"), 1);
	assert_int_equal(series_exit_status(&result), 2);
	free(scene);
}

TEST(test_an_interrupt_ends_the_wait_at_once)
{
	struct scene *scene = scene_new();
	struct series_plan plan = hourly;
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	plan.file_count = 9;
	scene->interrupt_ms = SCENE_START_MS + 3600000 + 5;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->clock_ms, scene->interrupt_ms);
	assert_int_equal(scene->shot_count, 2);
	assert_string_equal(scene->said[scene->said_count - 1], "interrupted: 2 files written");
	assert_int_equal(series_exit_status(&result), 0); /* it was asked to end */
	free(scene);
}

TEST(test_an_interrupt_lets_the_file_at_hand_be_finished)
{
	struct scene *scene = scene_new();
	struct series_plan plan = hourly;
	struct series_result result;
	struct err err;

	for (uint32_t pid = 1; pid <= 3; pid++)
		scene_add(scene, pid, 77, 0, NEVER);
	plan.takes_all = true;
	scene->take_ms = 1000;
	scene->interrupt_ms = SCENE_START_MS + 1500; /* while the second one is taken */
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->shot_count, 2);
	assert_int_equal(scene->clock_ms - SCENE_START_MS, 2000);
	assert_int_equal(scene->waits, 0);
	assert_string_equal(scene->said[scene->said_count - 1], "interrupted: 2 files written");
	assert_int_equal(series_exit_status(&result), 0);
	free(scene);
}

TEST(test_each_file_is_said)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "a", .every_ms = 1000, .file_count = 2};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->said_count, 3);
	assert_string_equal(scene->said[0], "12: 112 blocks, 5000 bytes, held 7 ms");
	assert_string_equal(scene->said[1], "12: 112 blocks, 5000 bytes, held 7 ms");
	assert_string_equal(scene->said[2], "2 files written");
	free(scene);
}

TEST(test_once_is_once)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "a"};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->shot_count, 1);
	assert_int_equal(scene->waits, 0);
	assert_int_equal(scene->said_count, 1); /* the file's line */
	assert_int_equal(series_exit_status(&result), 0);
	free(scene);
}

/* A first snapshot at once, then one each time enough was added since the last. */
TEST(test_growth_is_what_is_watched)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "a", .every_ms = 1000, .growth_bytes = 1000, .file_count = 5};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->processes[0].bytes = 50000;
	scene->processes[0].bytes_per_s = 300;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->shot_count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(scene_at(scene, i), (int64_t)i * 4000); /* 1200 of them */
	assert_string_equal(
		scene->said[0], "12: 112 blocks, 5000 bytes, held 7 ms, private bytes 50000");
	assert_string_equal(scene->said[1],
		"12: 112 blocks, 5000 bytes, held 7 ms, private bytes 50000 to 51200");
	assert_string_equal(scene->said[4],
		"12: 112 blocks, 5000 bytes, held 7 ms, private bytes 53600 to 54800");
	free(scene);
}

TEST(test_growth_of_just_so_much_is_enough_and_less_is_not)
{
	static const struct {
		uint64_t bytes_per_s;
		size_t shots;
	} cases[] = {{100, 2}, {99, 1}, {0, 1}, {UINT64_MAX, 1} /* it shrinks */};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {.name = "a", .every_ms = 1000, .growth_bytes = 1000};
		struct series_result result;
		struct err err;

		scene_add(scene, 12, 77, 0, 10500);
		scene->processes[0].bytes = 50000;
		scene->processes[0].bytes_per_s = cases[i].bytes_per_s;
		assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
		assert_int_equal(scene->shot_count, cases[i].shots);
		assert_int_equal(series_exit_status(&result), 0);
		free(scene);
	}
}

/* A full disk must not hold a process that has grown once a second. */
TEST(test_watching_tries_again_after_a_minute)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "a", .every_ms = 1000, .growth_bytes = 1000};
	struct series_result result;
	struct err err;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->fail_to = UINT64_MAX;
	scene->fails = ERR_WRITE;
	scene->interrupt_ms = SCENE_START_MS + 3600500;
	assert_int_equal(scene_run(scene, &plan, &result, &err), 0);
	assert_int_equal(scene->takes, 1 + 60);
	assert_int_equal(result.failed, scene->takes);
	free(scene);
}
