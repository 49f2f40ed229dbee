/* The processes of a loop: which one is meant, who comes and goes, and that a pid is not a process. */
#include "tests/unit/t.h"

#include "tests/unit/loop_scene.h"

TEST(test_nobody_is_an_error_at_once)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .every_ms = 1000};
	struct outcome outcome;

	scene_add(scene, 12, 77, 500, NEVER);
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.rc, -ERR_NO_PROCESS);
	assert_string_equal(outcome.err.place, "app.exe");
	assert_int_equal(scene->waits, 0);
	assert_int_equal(scene->said_count, 0); /* the caller says it */
	free(scene);
}

TEST(test_several_are_listed_and_none_is_touched)
{
	for (int waits = 0; waits < 2; waits++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {.name = "app.exe", .every_ms = 1000, .waits = waits};
		struct outcome outcome;

		(void)state;
		scene_add(scene, 12, 1700000000123, 0, NEVER)->bytes = 4096;
		scene_add(scene, 1300, 0, 0, NEVER)->bytes = KEPT_UNKNOWN_BYTES;
		outcome = scene_outcome(scene, &plan);
		assert_int_equal(outcome.rc, -ERR_MANY);
		assert_string_equal(outcome.err.detail,
			"pid 12 started 2023-11-14T22:13:20.123Z "
			"with 4096 private bytes, pid 1300; --all takes each");
		assert_int_equal(scene->takes, 0);
		free(scene);
	}
}

TEST(test_a_long_list_says_how_many_more)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe"};
	struct outcome outcome;
	unsigned shown = 0, more;

	for (uint32_t pid = 1000; pid < 1040; pid++)
		scene_add(scene, pid, 1700000000000 + pid, 0, NEVER);
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.rc, -ERR_MANY);
	for (const char *at = outcome.err.detail; (at = strstr(at, "pid ")); at++)
		shown++;
	assert_non_null(strstr(outcome.err.detail, ", and "));
	more = (unsigned)strtoul(strstr(outcome.err.detail, ", and ") + 6, NULL, 10);
	assert_true(shown > 4);
	assert_int_equal(shown + more, 40);
	free(scene);
}

TEST(test_all_are_taken_once)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .takes_all = true};
	struct outcome outcome;

	for (uint32_t pid = 1; pid <= 40; pid++)
		scene_add(scene, pid, pid, 0, NEVER);
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(scene->shot_count, 40);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(scene->shots[i].pid, i + 1);
	free(scene);
}

TEST(test_those_that_come_and_go_are_series_of_their_own)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .every_ms = 10000, .takes_all = true};
	struct outcome outcome;
	static const uint32_t pids[] = {1, 2, /* 10 s */ 1, 2, 3, /* 20 s */ 2, 3, /* 30 s */ 3};

	scene_add(scene, 1, 1, 0, 15000);
	scene_add(scene, 2, 1, 0, 25000);
	scene_add(scene, 3, 1, 3000, 35000);
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(scene->shot_count, sizeof(pids) / sizeof(*pids));
	for (size_t i = 0; i < scene->shot_count; i++)
		assert_int_equal(scene->shots[i].pid, pids[i]);
	assert_int_equal(scene_said(scene, "pid 1: the process has ended; 2 files of it"), 1);
	assert_int_equal(scene_said(scene, "pid 2: the process has ended; 3 files of it"), 1);
	assert_int_equal(scene_said(scene, "pid 3: the process has ended; 3 files of it"), 1);
	assert_int_equal(scene->clock_ms - SCENE_START_MS, 35000); /* its end is seen at once */
	assert_int_equal(outcome.status, 0);
	free(scene);
}

TEST(test_files_are_counted_for_each_series)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "app.exe", .every_ms = 10000, .takes_all = true, .file_count = 3};
	struct outcome outcome;
	static const uint32_t pids[] = {1, 1, 2, 1, 2, /* the first one has its three */ 2};

	scene_add(scene, 1, 1, 0, NEVER);
	scene_add(scene, 2, 1, 5000, NEVER);
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(scene->shot_count, sizeof(pids) / sizeof(*pids));
	for (size_t i = 0; i < scene->shot_count; i++)
		assert_int_equal(scene->shots[i].pid, pids[i]);
	assert_int_equal(outcome.status, 0);
	free(scene);
}

TEST(test_the_end_of_the_process_is_the_end)
{
	static const struct {
		uint64_t file_count;
		int status;
	} cases[] = {{0, 0}, {3, 2}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {
			.name = "app.exe", .every_ms = 10000, .file_count = cases[i].file_count};
		struct outcome outcome;

		scene_add(scene, 12, 77, 0, 15000);
		outcome = scene_outcome(scene, &plan);
		assert_int_equal(outcome.status, cases[i].status);
		assert_int_equal(scene->shot_count, 2);
		assert_int_equal(scene->clock_ms - SCENE_START_MS, 15000);
		assert_int_equal(
			scene_said(scene, "pid 12: the process has ended; 2 files of it"), 1);
		assert_string_equal(scene->said[scene->said_count - 1], "2 files written");
		free(scene);
	}
}

/* Without waiting nothing goes on with whoever has the pid now. */
TEST(test_a_pid_that_is_used_again_ends_a_series)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.pid = 12, .every_ms = 10000};
	struct outcome outcome;

	scene_add(scene, 12, 77, 0, 15000);
	scene_add(scene, 12, 15000, 15000, NEVER);
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(scene->shot_count, 2);
	free(scene);
}

TEST(test_an_end_in_the_middle_of_a_snapshot_is_no_failure)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .every_ms = 10000};
	struct outcome outcome;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->take_ms = 100;
	scene->fail_from = 1;
	scene->fail_to = 2;
	scene->fails = ERR_GONE;
	scene->fail_ends = 1;
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(outcome.result.failed, 0);
	assert_int_equal(scene->shot_count, 1);
	assert_int_equal(scene_said(scene, "has ended; 1 file of it"), 1);
	assert_int_equal(scene->said_count, 3);
	free(scene);
}

/* One that is killed while its first snapshot is taken: no file is no success, however often it was to be
 * taken. */
TEST(test_an_end_before_the_first_file_is_told_by_the_status)
{
	static const int64_t every_ms[] = {0, 10000};

	for (size_t i = 0; i < 2; i++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {.name = "app.exe", .every_ms = every_ms[i]};
		struct outcome outcome;

		scene_add(scene, 12, 77, 0, NEVER);
		scene->take_ms = 100;
		scene->fail_to = 1;
		scene->fails = ERR_GONE;
		scene->fail_ends = 1;
		outcome = scene_outcome(scene, &plan);
		assert_int_equal(scene->shot_count, 0);
		assert_int_equal(outcome.status, 2);
		assert_int_equal(outcome.result.failed, 0);
		assert_int_equal(scene_said(scene, "has ended; 0 files of it"), 1);
		free(scene);
	}
}

/* A disk that is full when the process ends, too. */
TEST(test_what_is_not_the_end_is_said_though_it_has_ended)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .every_ms = 10000};
	struct outcome outcome;

	scene_add(scene, 12, 77, 0, NEVER);
	scene->fail_from = 1;
	scene->fail_to = 2;
	scene->fails = ERR_WRITE;
	scene->fail_ends = 1;
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(scene->shot_count, 1);
	assert_int_equal(scene_said(scene, "12: cannot write"), 1);
	assert_int_equal(scene_said(scene, "has ended; 1 file of it"), 1);
	assert_int_equal(outcome.status, 2);
	free(scene);
}

TEST(test_one_that_lets_nobody_in_is_said_once)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "app.exe", .every_ms = 10000, .takes_all = true, .file_count = 4};
	struct outcome outcome;

	scene_add(scene, 1, 1, 0, NEVER)->refuses = ERR_RIGHTS;
	scene_add(scene, 2, 1, 0, NEVER);
	scene_add(scene, 3, 1, 0, NEVER)->refuses = ERR_RIGHTS;
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(scene->shot_count, 4);
	assert_int_equal(scene_said(scene, "pid 1: no right"), 1);
	assert_int_equal(scene_said(scene, "pid 3: no right"), 1);
	assert_int_equal(outcome.result.failed, 2);
	assert_int_equal(outcome.status, 2); /* not all of them were taken */
	free(scene);
}

/* The one that has the pid then is another one, and is said, too. */
TEST(test_who_lets_nobody_in_is_known_by_its_start_too)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "app.exe", .every_ms = 10000, .takes_all = true, .file_count = 4};

	scene_add(scene, 1, 1, 0, 15000)->refuses = ERR_RIGHTS;
	scene_add(scene, 1, 15000, 15000, NEVER)->refuses = ERR_RIGHTS;
	scene_add(scene, 2, 1, 0, NEVER);
	assert_int_equal(scene_outcome(scene, &plan).status, 2);
	assert_int_equal(scene_said(scene, "pid 1: no right"), 2);
	free(scene);
}

TEST(test_when_all_let_nobody_in_that_is_the_end)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "app.exe", .every_ms = 10000, .takes_all = true, .waits = true};
	struct outcome outcome;

	scene_add(scene, 1, 1, 0, NEVER)->refuses = ERR_RIGHTS;
	scene_add(scene, 2, 1, 0, NEVER)->refuses = ERR_BITS;
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.status, 2);
	assert_int_equal(outcome.result.failed, 2);
	assert_int_equal(scene_said(scene, "pid 1: no right"), 1);
	assert_int_equal(scene_said(scene, "pid 2: "), 1);
	assert_int_equal(scene->waits, 0);
	free(scene);
}

/* Not being able to look for new ones is said, and does not harm those that are known. */
TEST(test_a_list_that_fails_is_said_and_no_end)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.name = "app.exe", .every_ms = 10000, .takes_all = true, .file_count = 4};
	struct outcome outcome;

	scene_add(scene, 1, 1, 0, NEVER);
	scene->find_fails_from_ms = SCENE_START_MS + 1;
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(scene->shot_count, 4);
	assert_int_equal(scene->looks, 1 + 4);
	assert_int_equal(scene_said(scene, "the list: the system refused"), 1);
	free(scene);
}

TEST(test_a_list_that_fails_at_first_is_the_error)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.name = "app.exe", .every_ms = 10000, .waits = true};

	scene_add(scene, 1, 1, 0, NEVER);
	scene->find_fails_from_ms = SCENE_START_MS;
	assert_int_equal(scene_outcome(scene, &plan).rc, -ERR_SYSTEM);
	assert_int_equal(scene->said_count, 0);
	free(scene);
}
