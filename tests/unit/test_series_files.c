/* The files of a series: what the next is called. Which ones go: test_series_prune.c. */
#include "tests/unit/t.h"

#include "tests/unit/series_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#undef TEST_AROUND
#define TEST_AROUND NULL, empty_scene

TEST(a_pattern_that_is_none_is_refused)
{
	const struct series_plan plan = {.out = "{time}/a", .limits = NO_LIMITS};
	struct err err = {0};

	assert_null(series_files_new(&plan, "a", 1, 1, &err));
	assert_int_equal(err.code, ERR_USAGE);
	assert_string_equal(err.place, plan.out);
	series_files_free(NULL);
}

TEST(without_a_time_and_a_number_there_is_one_name)
{
	struct series_files *files = new_series("{name}-{pid}.txt", NO_LIMITS);

	write_next(files, TIME_MS, 300);
	check_name(files, TIME_MS, 0, "my app-42.txt");
	series_files_free(files);
}

TEST(names_are_made_of_the_time)
{
	struct series_files *files = new_series("{name}-{pid}-{time}.txt", NO_LIMITS);

	check_name(files, TIME_MS, 0, "my app-42-20261120T102548Z.txt");
	check_name(files, TIME_MS, 1, "my app-42-20261120T102548Z_2.txt");
	check_name(files, TIME_MS, 2, "my app-42-20261120T102548Z_3.txt");
	check_name(files, TIME_MS + 1000, 0, "my app-42-20261120T102549Z.txt");
	check_name(files, -1, 0, "my app-42-19691231T235959Z.txt");
	series_files_free(files);
}

TEST(names_in_the_same_second_differ)
{
	struct series_files *files = new_series("{time}.txt", NO_LIMITS);

	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS + 1, 300);
	write_next(files, TIME_MS + 876, 300);
	write_next(files, TIME_MS + 877, 300); /* the next second */
	check_files("20261120T102548Z.txt 20261120T102548Z_2.txt 20261120T102548Z_3.txt "
		    "20261120T102549Z.txt ");
	series_files_free(files);
}

TEST(what_was_written_and_taken_away_is_no_number_again)
{
	struct series_files *files = new_series("{n}.txt", NO_LIMITS);

	write_next(files, TIME_MS, 300);
	assert_int_equal(empty_scene(NULL), 0);
	check_name(files, TIME_MS, 0, "000002.txt");
	series_files_free(files);
}

TEST(numbers_go_on_behind_the_highest)
{
	struct series_files *files = new_series("{name}-{n}.txt", NO_LIMITS);

	check_name(files, TIME_MS, 0, "my app-000001.txt");
	put_text(in_scene("my app-000007.txt"), "not even a dump");
	put_text(in_scene("my app-000003.txt"), "");
	put_text(in_scene("my app-99.txt"), "");
	put_text(in_scene("my app-000099.txt.tmp"), "");
	put_text(in_scene("other-000099.txt"), "");
	assert_int_equal(mkdir(in_scene("my app-000008.txt"), 0700), 0);
	assert_int_equal(symlink("none", in_scene("my app-000009.txt")), 0);
	check_name(files, TIME_MS, 0, "my app-000010.txt");
	write_next(files, TIME_MS, 300);
	check_files("my app-000003.txt my app-000007.txt my app-000008.txt my app-000009.txt "
		    "my app-000010.txt my app-000099.txt.tmp my app-99.txt other-000099.txt ");
	series_files_free(files);
	files = new_series("{name}-{n}.txt", NO_LIMITS); /* another start */
	check_name(files, TIME_MS, 0, "my app-000011.txt");
	put_text(in_scene("my app-999999.txt"), "");
	check_name(files, TIME_MS, 0, "my app-1000000.txt");
	series_files_free(files);
}

/* Each time another hsnap is faster: its file is seen when the next name is looked for. */
TEST(a_race_leaves_no_gap)
{
	struct series_files *numbered = new_series("{n}", NO_LIMITS);

	check_name(numbered, TIME_MS, 0, "000001");
	put_text(in_scene("000001"), "");
	check_name(numbered, TIME_MS, 1, "000002");
	put_text(in_scene("000002"), "");
	check_name(numbered, TIME_MS, 2, "000003");
	series_files_free(numbered);
}

TEST(a_failed_snapshot_takes_no_number)
{
	struct series_files *files = new_series("{n}{time}", NO_LIMITS);

	check_name(files, TIME_MS, 0, "00000120261120T102548Z");
	check_name(files, TIME_MS, 0, "00000120261120T102548Z");
	write_next(files, TIME_MS, 300);
	check_name(files, TIME_MS, 0, "00000220261120T102548Z"); /* no "_2": the number differs */
	series_files_free(files);
}

TEST(names_come_to_an_end)
{
	struct series_files *files = new_series("{pid}{{{n}", NO_LIMITS);
	struct err err = {0};
	struct buf path;

	put_text(in_scene("42{999999999998"), "");
	check_name(files, TIME_MS, 0, "42{999999999999");
	put_text(in_scene("42{999999999999"), "");
	buf_init(&path);
	assert_int_equal(series_files_name(files, TIME_MS, 0, &path, &err), -ERR_EXISTS);
	assert_string_equal(err.place, "42{{{n}");
	assert_null(path.data);
	buf_release(&path);
	series_files_free(files);
}

TEST(packed_files_are_called_so)
{
	static const struct {
		const char *pattern, *name;
	} cases[] = {{"{n}.txt", "000001.txt.gz"}, {"{n}.txt.gz", "000001.txt.gz"},
		{"{n}.gz.txt", "000001.gz.txt.gz"}, {"{n}", "000001.gz"}, {"{n}gz", "000001gz.gz"},
		{"{n}.GZ", "000001.GZ"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct series_files *files = new_packed_series(cases[i].pattern, NO_LIMITS, true);

		check_name(files, TIME_MS, 0, cases[i].name);
		series_files_free(files);
	}
}

TEST(folders_may_have_words_too)
{
	struct series_files *files = new_series("{name} {pid} {{x/{n}", NO_LIMITS);
	struct err err = {0};
	struct buf path;

	buf_init(&path);
	assert_int_equal(series_files_name(files, TIME_MS, 0, &path, &err), -ERR_OPEN);
	assert_string_equal(err.place, in_scene("my app 42 {x/"));
	assert_int_equal(mkdir(in_scene("my app 42 {x"), 0700), 0);
	check_name(files, TIME_MS, 0, "my app 42 {x/000001");
	buf_release(&path);
	series_files_free(files);
}

TEST(without_a_folder_it_is_the_current_one)
{
	char *here = getcwd(NULL, 0);
	const struct series_plan plan = {.out = "{n}", .limits = NO_LIMITS};
	struct series_files *files = series_files_new(&plan, "a", PID, START_MS, NULL);
	struct buf path;
	int rc;

	assert_non_null(files);
	put_text(in_scene("000004"), "");
	buf_init(&path);
	assert_int_equal(chdir(scene_folder), 0);
	rc = series_files_name(files, TIME_MS, 0, &path, NULL);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(rc, 0);
	assert_string_equal(path.data, "000005");
	buf_release(&path);
	series_files_free(files);
	free(here);
}

static void check_folder(const char *out, int expected, const char *place)
{
	const struct series_plan plan = {.out = out, .limits = NO_LIMITS};
	struct err err = {0};

	assert_int_equal(series_files_check(&plan, &err), expected);
	if (expected)
		assert_string_equal(err.place, place);
}

TEST(a_folder_is_tried_before_the_first_file)
{
	char path[600];

	put_text(in_scene("file"), "");
	check_folder(in_scene("{time}"), 0, NULL);
	check_folder(in_scene("{name}/{n}"), 0, NULL); /* which it is cannot be known */
	check_folder(in_scene("none/a"), 0, NULL); /* no series */
	snprintf(path, sizeof(path), "%s", in_scene("none/"));
	check_folder(in_scene("none/{n}"), -ERR_OPEN, path);
	snprintf(path, sizeof(path), "%s", in_scene("file/"));
	check_folder(in_scene("file/{n}"), -ERR_OPEN, path);
	check_files("file ");
	/* it can be listed, and nobody can make a file there */
	check_folder("/proc/self/{n}.txt", -ERR_CREATE, "/proc/self/000001.txt");
}

GROUP(make_scene, remove_scene)
