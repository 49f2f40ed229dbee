/* The files of a series: what the next is called. Which ones go: test_series_prune.c. */
#include "tests/unit/series_folder.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct series_limits no_limits = {SIZE_MAX, UINT64_MAX};

static void check_no_series(const char *pattern)
{
	struct err err = {0};

	assert_null(series_files_new(pattern, "a", 1, 1, &no_limits, false, &err));
	assert_int_equal(err.code, ERR_USAGE);
	assert_string_equal(err.place, pattern);
}

static void each_file_needs_a_name_of_its_own(void **state)
{
	(void)state;
	check_no_series("");
	check_no_series("-");
	check_no_series("{name}-{pid}.txt");
	check_no_series("{{n}");
	check_no_series("{time}/a");
	check_no_series("{n");
	series_files_free(NULL);
}

static void names_are_made_of_the_time(void **state)
{
	struct series_files *files = new_series("{name}-{pid}-{time}.txt", NO_LIMITS);

	(void)state;
	check_name(files, TIME_MS, 0, "my app-42-20261120T102548Z.txt");
	check_name(files, TIME_MS, 1, "my app-42-20261120T102548Z_2.txt");
	check_name(files, TIME_MS, 2, "my app-42-20261120T102548Z_3.txt");
	check_name(files, TIME_MS + 1000, 0, "my app-42-20261120T102549Z.txt");
	check_name(files, -1, 0, "my app-42-19691231T235959Z.txt");
	series_files_free(files);
}

static void names_in_the_same_second_differ(void **state)
{
	struct series_files *files = new_series("{time}.txt", NO_LIMITS);

	(void)state;
	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS + 1, 300);
	write_next(files, TIME_MS + 876, 300);
	write_next(files, TIME_MS + 877, 300); /* the next second */
	check_files("20261120T102548Z.txt 20261120T102548Z_2.txt 20261120T102548Z_3.txt "
		    "20261120T102549Z.txt ");
	/* behind the last, though the first is gone */
	assert_int_equal(remove(in_scene("20261120T102548Z.txt")), 0);
	check_name(files, TIME_MS, 0, "20261120T102548Z_4.txt");
	check_name(files, TIME_MS, 1, "20261120T102548Z_5.txt");
	check_name(files, TIME_MS, 2, "20261120T102548Z_6.txt");
	series_files_free(files);
}

static void what_was_written_and_taken_away_is_no_name_again(void **state)
{
	struct series_files *timed = new_series("{time}.txt", NO_LIMITS);
	struct series_files *numbered = new_series("{n}.txt", NO_LIMITS);

	(void)state;
	write_next(timed, TIME_MS, 300);
	write_next(numbered, TIME_MS, 300);
	assert_int_equal(empty_scene(NULL), 0);
	check_name(timed, TIME_MS, 0, "20261120T102548Z_2.txt");
	check_name(numbered, TIME_MS, 0, "000002.txt");
	series_files_free(timed);
	series_files_free(numbered);
}

static void numbers_go_on_behind_the_highest(void **state)
{
	struct series_files *files = new_series("{name}-{n}.txt", NO_LIMITS);

	(void)state;
	check_name(files, TIME_MS, 0, "my app-000001.txt");
	put_text(in_scene("my app-000007.txt"), "not even a dump");
	put_text(in_scene("my app-000003.txt"), "");
	put_text(in_scene("my app-99.txt"), "");
	put_text(in_scene("my app-000099.txt.tmp"), "");
	put_text(in_scene("other-000099.txt"), "");
	assert_int_equal(mkdir(in_scene("my app-000008.txt"), 0700), 0);
	assert_int_equal(symlink("none", in_scene("my app-000009.txt")), 0);
	check_name(files, TIME_MS, 0, "my app-000010.txt");
	check_name(files, TIME_MS, 1, "my app-000011.txt");
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
static void a_race_leaves_no_gap(void **state)
{
	struct series_files *numbered = new_series("{n}", NO_LIMITS);
	struct series_files *timed = new_series("{time}", NO_LIMITS);

	(void)state;
	check_name(numbered, TIME_MS, 0, "000001");
	put_text(in_scene("000001"), "");
	check_name(numbered, TIME_MS, 1, "000002");
	put_text(in_scene("000002"), "");
	check_name(numbered, TIME_MS, 2, "000003");
	check_name(numbered, TIME_MS, 3, "000004"); /* it is not seen, but taken */
	check_name(numbered, TIME_MS, 4, "000005");
	check_name(timed, TIME_MS, 0, "20261120T102548Z");
	put_text(in_scene("20261120T102548Z"), "");
	check_name(timed, TIME_MS, 1, "20261120T102548Z_2");
	put_text(in_scene("20261120T102548Z_2"), "");
	check_name(timed, TIME_MS, 2, "20261120T102548Z_3");
	check_name(timed, TIME_MS, 3, "20261120T102548Z_4");
	check_name(timed, TIME_MS + 1000, 4, "20261120T102549Z"); /* nobody has tried that */
	series_files_free(numbered);
	series_files_free(timed);
}

static void a_failed_snapshot_takes_no_number(void **state)
{
	struct series_files *files = new_series("{n}{time}", NO_LIMITS);

	(void)state;
	check_name(files, TIME_MS, 0, "00000120261120T102548Z");
	check_name(files, TIME_MS, 0, "00000120261120T102548Z");
	write_next(files, TIME_MS, 300);
	check_name(files, TIME_MS, 0, "00000220261120T102548Z"); /* no "_2": the number differs */
	check_name(files, TIME_MS, 1, "00000320261120T102548Z");
	series_files_free(files);
}

static void check_no_name(struct series_files *files, unsigned tries, const char *place)
{
	struct err err = {0};
	struct buf path;

	buf_init(&path);
	assert_int_equal(series_files_name(files, TIME_MS, tries, &path, &err), -ERR_EXISTS);
	assert_string_equal(err.place, place);
	assert_null(path.data);
	buf_release(&path);
}

/* Files of somebody's own, or a number with digits too many: it is not the series' that jumps so far. */
static void a_number_far_above_the_others_is_passed_over(void **state)
{
	struct series_files *files = new_series("{n}", NO_LIMITS);

	(void)state;
	put_text(in_scene("1000000000"), "");
	check_name(files, TIME_MS, 0, "1000000001");
	put_text(in_scene("2000000001"), "");
	check_name(files, TIME_MS, 0, "1000000001"); /* one more than a thousand million */
	write_next(files, TIME_MS, 300);
	check_name(files, TIME_MS, 0, "2000000002");
	check_name(files, TIME_MS, 1, "2000000003");
	series_files_free(files);
	assert_int_equal(unlink(in_scene("1000000000")), 0);
	assert_int_equal(unlink(in_scene("1000000001")), 0);
	files = new_series("{n}", NO_LIMITS);
	check_name(files, TIME_MS, 0, "000001");
	check_name(files, TIME_MS, 1, "000002");
	series_files_free(files);
}

static void names_come_to_an_end(void **state)
{
	struct series_files *numbered = new_series("{pid}{{{n}", NO_LIMITS);
	struct series_files *timed = new_series("{time}", NO_LIMITS);
	char name[40];

	(void)state;
	check_no_name(numbered, SERIES_TRIES_MAX, "42{{{n}");
	put_text(in_scene("42{999999999999"), "somebody's; it is no end of the numbers");
	put_text(in_scene("42{000007"), "");
	check_name(numbered, TIME_MS, 0, "42{000008");
	put_text(in_scene("42{999999999998"), ""); /* nor is this */
	check_name(numbered, TIME_MS, 0, "42{000008");
	for (uint64_t number = 1000000000; number < UINT64_C(999999999998); number += 1000000000) {
		snprintf(name, sizeof(name), "42{%" PRIu64, number);
		put_text(in_scene(name), "");
	}
	check_no_name(numbered, 0, "42{{{n}"); /* but when it is near */
	assert_int_equal(unlink(in_scene("42{999999999999")), 0);
	check_name(numbered, TIME_MS, 0, "42{999999999999");
	check_no_name(numbered, 1, "42{{{n}");
	put_text(in_scene("20261120T102548Z_999999"), "");
	check_no_name(timed, 0, "{time}");
	check_name(timed, TIME_MS + 1000, 0, "20261120T102549Z");
	series_files_free(numbered);
	series_files_free(timed);
}

static void packed_files_are_called_so(void **state)
{
	static const struct {
		const char *pattern, *name;
	} cases[] = {{"{n}.txt", "000001.txt.gz"}, {"{n}.txt.gz", "000001.txt.gz"},
		{"{n}.gz.txt", "000001.gz.txt.gz"}, {"{n}", "000001.gz"}, {"{n}gz", "000001gz.gz"},
		{"{n}.GZ", "000001.GZ"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct series_files *files = series_files_new(
			in_scene(cases[i].pattern), "a", PID, START_MS, &no_limits, true, NULL);

		assert_non_null(files);
		check_name(files, TIME_MS, 0, cases[i].name);
		series_files_free(files);
	}
}

static void folders_may_have_words_too(void **state)
{
	struct series_files *files = new_series("{name} {pid} {{x/{n}", NO_LIMITS);
	struct err err = {0};
	struct buf path;

	(void)state;
	buf_init(&path);
	assert_int_equal(series_files_name(files, TIME_MS, 0, &path, &err), -ERR_OPEN);
	assert_string_equal(err.place, in_scene("my app 42 {x/"));
	assert_int_equal(mkdir(in_scene("my app 42 {x"), 0700), 0);
	check_name(files, TIME_MS, 0, "my app 42 {x/000001");
	buf_release(&path);
	series_files_free(files);
}

static void without_a_folder_it_is_the_current_one(void **state)
{
	char *here = getcwd(NULL, 0);
	struct series_files *files =
		series_files_new("{n}", "a", PID, START_MS, &no_limits, false, NULL);
	struct buf path;
	int rc;

	(void)state;
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

static void a_folder_is_tried_before_the_first_file(void **state)
{
	struct series_files *good = new_series("{time}", NO_LIMITS);
	struct series_files *none = new_series("none/{time}", NO_LIMITS);
	struct series_files *file = new_series("file/{time}", NO_LIMITS);
	struct err err = {0};

	(void)state;
	put_text(in_scene("file"), "");
	assert_int_equal(series_files_check(good, &err), 0);
	assert_int_equal(series_files_check(none, &err), -ERR_OPEN);
	assert_string_equal(err.place, in_scene("none/"));
	assert_int_equal(series_files_check(file, &err), -ERR_OPEN);
	check_files("file ");
	series_files_free(good);
	series_files_free(none);
	series_files_free(file);
}

/* /proc/self can be listed, and nobody can make a file there. */
static void a_folder_that_takes_no_files_is_told(void **state)
{
	struct series_files *files =
		series_files_new("/proc/self/{n}.txt", "a", PID, START_MS, &no_limits, false, NULL);
	struct err err = {0};

	(void)state;
	assert_non_null(files);
	assert_int_equal(series_files_check(files, &err), -ERR_CREATE);
	assert_string_equal(err.place, "/proc/self/000001.txt");
	series_files_free(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_file_needs_a_name_of_its_own),
		TEST(names_are_made_of_the_time),
		TEST(names_in_the_same_second_differ),
		TEST(what_was_written_and_taken_away_is_no_name_again),
		TEST(numbers_go_on_behind_the_highest),
		TEST(a_race_leaves_no_gap),
		TEST(a_failed_snapshot_takes_no_number),
		TEST(a_number_far_above_the_others_is_passed_over),
		TEST(names_come_to_an_end),
		TEST(packed_files_are_called_so),
		TEST(folders_may_have_words_too),
		TEST(without_a_folder_it_is_the_current_one),
		TEST(a_folder_is_tried_before_the_first_file),
		TEST(a_folder_that_takes_no_files_is_told),
	};

	return cmocka_run_group_tests(tests, make_scene, remove_scene);
}
