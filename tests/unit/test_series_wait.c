/* Waiting for a process to come, and to come back (--on-exit wait): who is taken then, and how soon. */
#include "tests/unit/loop_scene.h"

/* Their private bytes change all the time; who they are does not. */
static void test_several_are_listed_once_while_it_waits(void **state)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.what = "app.exe", .every_ms = 1000, .waits = true};

	(void)state;
	scene_add(scene, 12, 77, 1000, NEVER)->bytes_per_s = 4096;
	scene_add(scene, 13, 78, 1000, NEVER)->bytes_per_s = 1;
	scene_add(scene, 13, 79, 20500, 40500); /* a third one is news, and so is its end */
	scene->interrupt_ms = SCENE_START_MS + 60000;
	assert_int_equal(scene_outcome(scene, &plan).status, 0);
	assert_int_equal(scene->takes, 0);
	assert_true(scene->looks > 50);
	assert_int_equal(scene_said(scene, "several processes have this name"), 3);
	free(scene);
}

/* The new process is a series of its own: it begins when it is seen, and has a count of its own. */
static void test_the_process_is_waited_for(void **state)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.what = "app.exe", .every_ms = 10000, .file_count = 3, .waits = true};
	struct outcome outcome;
	static const int64_t at[] = {2000, 12000, 31000, 41000, 51000};

	(void)state;
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

static void test_a_wait_for_nobody_ends_by_an_interrupt(void **state)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.what = "app.exe", .every_ms = 10000, .waits = true};
	struct outcome outcome;

	(void)state;
	scene->interrupt_ms = SCENE_START_MS + 4321;
	outcome = scene_outcome(scene, &plan);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(scene->clock_ms, scene->interrupt_ms);
	assert_int_equal(scene_said(scene, "interrupted: 0 files written"), 1);
	free(scene);
}

/* It is in the list, and gone when it is to be opened: as if it had not been seen. */
static void test_one_that_is_gone_when_it_is_opened_is_waited_for(void **state)
{
	static const enum err_code codes[] = {ERR_GONE, ERR_NO_PROCESS};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {
			.what = "app.exe", .every_ms = 10000, .file_count = 1, .waits = true};
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

/* A process that lives for so long, and is started again as soon as it is looked for: for so long. */
static struct scene *crash_loop(const struct series_plan *plan, int64_t life_ms, int64_t until_ms)
{
	struct scene *scene = scene_new();

	scene->take_ms = 10;
	scene->restarts = scene_add(scene, 12, 77, 0, life_ms);
	scene->interrupt_ms = SCENE_START_MS + until_ms;
	assert_int_equal(scene_outcome(scene, plan).status, 0);
	assert_true(scene->said_count < 3 * scene->shot_count + 10);
	return scene;
}

/* Each time a second or so is lost, until it is looked for again. */
static void assert_minutes(const struct scene *scene, const int64_t *minutes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_in_range(scene_at(scene, i), minutes[i] * MINUTE_MS,
			minutes[i] * MINUTE_MS + (int64_t)i * 2000);
}

/* The gap doubles from a minute to what was asked for. */
static void test_a_crash_loop_is_taken_less_and_less(void **state)
{
	static const struct series_plan half_hourly = {
		.what = "a", .every_ms = 30 * MINUTE_MS, .waits = true};
	static const struct series_plan watched = {
		.what = "a", .every_ms = 1000, .growth_bytes = 1 << 20, .waits = true};
	static const struct series_plan *const plans[] = {&half_hourly, &watched};
	static const int64_t minutes[] = {0, 1, 3, 7, 15, 31, 61, 91, 121, 151};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		struct scene *scene = crash_loop(plans[i], 50, 24 * HOUR_MS);

		assert_minutes(scene, minutes, sizeof(minutes) / sizeof(*minutes));
		assert_in_range(scene->shot_count, 50, 53); /* 48 halves of hours, 4 before them */
		for (size_t shot = 1; shot < scene->shot_count; shot++)
			assert_true(scene->shots[shot].start_ms != scene->shots[shot - 1].start_ms);
		free(scene);
	}
}

static void test_a_crash_loop_is_taken_no_more_often_than_one_that_lives(void **state)
{
	static const struct {
		int64_t every_ms;
		size_t least,
			most; /* in an hour; where a process dies before the next look, one later */
	} cases[] = {{10000, 300, 360}, {60000, 58, 60}, {90000, 38, 41}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct series_plan plan = {
			.what = "a", .every_ms = cases[i].every_ms, .waits = true};
		struct scene *scene = crash_loop(&plan, 50, HOUR_MS);

		assert_in_range(scene->shot_count, cases[i].least, cases[i].most);
		free(scene);
	}
}

/* Of each process two files, so that each restart is taken after a minute. */
static void test_one_that_stays_for_two_files_comes_back_soon(void **state)
{
	static const struct series_plan plan = {
		.what = "a", .every_ms = 10 * MINUTE_MS, .waits = true};
	static const int64_t minutes[] = {0, 10, 11, 21, 22, 32, 33};
	struct scene *scene = crash_loop(&plan, 10 * MINUTE_MS + 500, 34 * MINUTE_MS);

	(void)state;
	assert_minutes(scene, minutes, sizeof(minutes) / sizeof(*minutes));
	free(scene);
}

/* Three that die at once, one that lives for two files, and one that dies at once: the gap is short again. */
static void test_the_gap_begins_anew_after_one_that_stayed(void **state)
{
	struct scene *scene = scene_new();
	static const struct series_plan plan = {
		.what = "a", .every_ms = 10 * MINUTE_MS, .waits = true};
	static const int64_t minutes[] = {0, 1, 3, 7, 17, 18, 19};

	(void)state;
	scene_add(scene, 12, 1, 0, 500);
	scene_add(scene, 13, 2, 500, MINUTE_MS + 500);
	scene_add(scene, 14, 3, MINUTE_MS + 500, 3 * MINUTE_MS + 500);
	scene_add(scene, 15, 4, 3 * MINUTE_MS + 500, 17 * MINUTE_MS + 5000);
	scene_add(scene, 16, 5, 17 * MINUTE_MS + 5000, 18 * MINUTE_MS + 5000);
	scene_add(scene, 17, 6, 18 * MINUTE_MS + 5000, NEVER);
	scene->interrupt_ms = SCENE_START_MS + 20 * MINUTE_MS;
	assert_int_equal(scene_outcome(scene, &plan).status, 0);
	assert_int_equal(scene->shot_count, sizeof(minutes) / sizeof(*minutes));
	assert_minutes(scene, minutes, sizeof(minutes) / sizeof(*minutes));
	free(scene);
}

/* One that does not grow has one file, however long it lives: that is no crash loop. */
static void test_one_that_is_watched_and_lives_long_comes_back_soon(void **state)
{
	static const struct series_plan plan = {
		.what = "a", .every_ms = 1000, .growth_bytes = 1 << 20, .waits = true};
	struct scene *scene = crash_loop(&plan, HOUR_MS, 10 * HOUR_MS);

	(void)state;
	assert_in_range(scene->shot_count, 10, 11); /* as soon as each is there */
	free(scene);
}

/* One that is watched and comes back is taken at once when the last snapshot was long ago. */
static void test_a_restart_is_taken_soon(void **state)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {
		.what = "a", .every_ms = 1000, .growth_bytes = 1 << 20, .waits = true};

	(void)state;
	scene_add(scene, 12, 77, 0, 300000);
	scene_add(scene, 13, 99, 300000, NEVER);
	scene->interrupt_ms = SCENE_START_MS + 400000;
	assert_int_equal(scene_outcome(scene, &plan).status, 0);
	assert_int_equal(scene->shot_count, 2);
	assert_int_equal(scene_at(scene, 1), 300000);
	free(scene);
}

/* At the very moment when one ends another one with its pid is there. */
static void test_a_pid_that_is_used_again_is_another_series(void **state)
{
	for (int is_all = 0; is_all < 2; is_all++) {
		struct scene *scene = scene_new();
		struct series_plan plan = {.what = "app.exe",
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
static void test_once_with_a_wait_is_until_there_is_a_file(void **state)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.what = "app.exe", .waits = true};
	struct outcome outcome;

	(void)state;
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
static void test_once_with_a_wait_fails_once(void **state)
{
	struct scene *scene = scene_new();
	struct series_plan plan = {.what = "app.exe", .waits = true};

	(void)state;
	scene_add(scene, 12, 77, 0, NEVER);
	scene->fail_to = UINT64_MAX;
	scene->fails = ERR_WRITE;
	assert_int_equal(scene_outcome(scene, &plan).status, 2);
	assert_int_equal(scene->takes, 1);
	assert_int_equal(scene->waits, 0);
	free(scene);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_are_listed_once_while_it_waits),
		cmocka_unit_test(test_the_process_is_waited_for),
		cmocka_unit_test(test_a_wait_for_nobody_ends_by_an_interrupt),
		cmocka_unit_test(test_one_that_is_gone_when_it_is_opened_is_waited_for),
		cmocka_unit_test(test_a_crash_loop_is_taken_less_and_less),
		cmocka_unit_test(test_a_crash_loop_is_taken_no_more_often_than_one_that_lives),
		cmocka_unit_test(test_one_that_stays_for_two_files_comes_back_soon),
		cmocka_unit_test(test_the_gap_begins_anew_after_one_that_stayed),
		cmocka_unit_test(test_one_that_is_watched_and_lives_long_comes_back_soon),
		cmocka_unit_test(test_a_restart_is_taken_soon),
		cmocka_unit_test(test_a_pid_that_is_used_again_is_another_series),
		cmocka_unit_test(test_once_with_a_wait_is_until_there_is_a_file),
		cmocka_unit_test(test_once_with_a_wait_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
