/* Waiting for a process to come, and to come back (--on-exit wait): who is taken then, and how soon. */
#include "tests/unit/t.h"

#include "tests/unit/loop_scene.h"

/* Their private bytes change all the time; who they are does not. */
TEST(test_several_are_listed_once_while_it_waits)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .every_ms = 1000, .waits = true};

	scene_add(scene, 12, 77, 1000, NEVER)->bytes_per_s = 4096;
	scene_add(scene, 13, 78, 1000, NEVER)->bytes_per_s = 1;
	scene->interrupt_ms = SCENE_START_MS + 60000;
	assert_int_equal(scene_outcome(scene, &plan).status, 0);
	assert_int_equal(scene->takes, 0);
	assert_true(scene->looks > 50);
	assert_int_equal(scene_said(scene, "several processes have this name"), 1);
	free(scene);
}

/* The new process is a series of its own: it begins when it is seen, and has a count of its own. */
TEST(test_the_process_is_waited_for)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "app.exe", .every_ms = 10000, .file_count = 3, .waits = true};
	struct outcome outcome;
	static const int64_t at[] = {2000, 12000, 31000, 41000, 51000};

	scene_add(scene, 12, 77, 1500, 15000);
	scene_add(scene, 13, 99, 30900, NEVER);
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(scene->shot_count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(scene_at(scene, i), at[i]);
		assert_int_equal(scene->shots[i].pid, i < 2 ? 12 : 13);
	}
	assert_int_equal(scene_said(scene, "app.exe: waiting for such a process"), 2);
	/* once a second: 0 to 2 s, and from 22 s, ten behind the last snapshot, to 31 s */
	assert_int_equal(scene->looks, 3 + 10);
	assert_int_equal(outcome.status, 0);
	free(scene);
}

TEST(test_a_wait_for_nobody_ends_by_an_interrupt)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .every_ms = 10000, .waits = true};
	struct outcome outcome;

	scene->interrupt_ms = SCENE_START_MS + 4321;
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(scene->clock_ms, scene->interrupt_ms);
	assert_int_equal(scene_said(scene, "interrupted: 0 files written"), 1);
	free(scene);
}

/* It is in the list, and gone when it is to be opened: as if it had not been seen. */
TEST(test_one_that_is_gone_when_it_is_opened_is_waited_for)
{
	static const enum err_code codes[] = {ERR_GONE, ERR_NO_PROCESS};

	for (size_t i = 0; i < 2; i++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {
			.name = "app.exe", .every_ms = 10000, .file_count = 1, .waits = true};
		struct outcome outcome;

		scene_add(scene, 12, 77, 0, 500)->refuses = codes[i];
		scene_add(scene, 13, 99, 1500, NEVER);
		outcome = scene_outcome(scene, &plan);
		assert_int_equal(outcome.rc, 0);
		assert_int_equal(outcome.status, 0);
		assert_int_equal(scene->shot_count, 1);
		assert_int_equal(scene_at(scene, 0), 2000);
		free(scene);
	}
}

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)

/* Of a process that dies at once, and is started again as soon as it is looked for, there are no more files than of
 * one that lives: one each time T has passed, or when it is watched each ten minutes. */
TEST(test_a_crash_loop_is_taken_no_more_often_than_one_that_lives)
{
	static const struct {
		int64_t every_ms;
		uint64_t growth_bytes;
		size_t least,
			most; /* in ten hours; a second is lost, until it is looked for again */
	} cases[] = {{10000, 0, 3272, 3600}, {60000, 0, 590, 600}, {30 * MINUTE_MS, 0, 20, 20},
		{1000, 1 << 20, 59, 60}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct scene *scene = scene_new();
		const struct series_plan plan = {.name = "a",
			.every_ms = cases[i].every_ms,
			.growth_bytes = cases[i].growth_bytes,
			.waits = true};

		scene->take_ms = 10;
		scene->restarts = scene_add(scene, 12, 77, 0, 50);
		scene->interrupt_ms = SCENE_START_MS + 10 * HOUR_MS;
		assert_int_equal(scene_outcome(scene, &plan).status, 0);
		assert_in_range(scene->shot_count, cases[i].least, cases[i].most);
		for (size_t shot = 1; shot < scene->shot_count; shot++)
			assert_true(scene->shots[shot].start_ms != scene->shots[shot - 1].start_ms);
		free(scene);
	}
}

/* One that is watched and comes back is taken at once when the last snapshot was long ago. */
TEST(test_a_restart_is_taken_soon)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "a", .every_ms = 1000, .growth_bytes = 1 << 20, .waits = true};

	scene_add(scene, 12, 77, 0, 900000);
	scene_add(scene, 13, 99, 900000, NEVER);
	scene->interrupt_ms = SCENE_START_MS + 1000000;
	assert_int_equal(scene_outcome(scene, &plan).status, 0);
	assert_int_equal(scene->shot_count, 2);
	assert_int_equal(scene_at(scene, 1), 900000);
	free(scene);
}

/* At the very moment when one ends another one with its pid is there. */
TEST(test_a_pid_that_is_used_again_is_another_series)
{
	for (int is_all = 0; is_all < 2; is_all++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {.name = "app.exe",
			.every_ms = 10000,
			.file_count = 3,
			.takes_all = is_all,
			.waits = true};
		struct outcome outcome;

		(void)state;
		scene_add(scene, 12, 77, 0, 15000);
		scene_add(scene, 12, 15000, 15000, NEVER);
		outcome = scene_outcome(scene, &plan);
		assert_int_equal(outcome.status, 0);
		assert_int_equal(scene->shot_count, 5);
		for (size_t i = 0; i < 5; i++)
			assert_int_equal(scene->shots[i].start_ms, i < 2 ? 77 : 15000);
		assert_int_equal(scene_at(scene, 2), 20000); /* ten seconds behind the last */
		free(scene);
	}
}

/* Asked to wait for a process it waits until there is a file of one. */
TEST(test_once_with_a_wait_is_until_there_is_a_file)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .waits = true};
	struct outcome outcome;

	scene_add(scene, 12, 77, 0, NEVER);
	scene_add(scene, 13, 99, 5500, NEVER);
	scene->take_ms = 100;
	scene->fail_to = 1;
	scene->fails = ERR_GONE;
	scene->fail_ends = 1;
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(scene->shot_count, 1);
	assert_int_equal(scene->shots[0].pid, 13);
	assert_in_range(scene_at(scene, 0), 5500, 6500);
	assert_int_equal(outcome.status, 0);
	free(scene);
}

/* But what fails while it lives is told, and not tried for ever. */
TEST(test_once_with_a_wait_fails_once)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .waits = true};

	scene_add(scene, 12, 77, 0, NEVER);
	scene->fail_to = UINT64_MAX;
	scene->fails = ERR_WRITE;
	assert_int_equal(scene_outcome(scene, &plan).status, 2);
	assert_int_equal(scene->takes, 1);
	assert_int_equal(scene->waits, 0);
	free(scene);
}
