#include "tests/unit/t.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "core/base/parse.h"
#include "core/io/file.h"
#include "snapshot/series/series.h"

#define PID 42
#define START_MS INT64_C(1795168800009) /* 2026-11-20T10:00:00.009Z */
#define TIME_MS INT64_C(1795170348123) /* 2026-11-20T10:25:48.123Z */
#define NO_LIMITS                                                                                  \
	(struct series_limits)                                                                     \
	{                                                                                          \
		UINT64_MAX, UINT64_MAX                                                             \
	}

static char scene_folder[] = "build/test_series \xc3\xa4\xc3\xb6 XXXXXX";

static const char *in_scene(const char *name)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/%s", scene_folder, name);
	return path;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

/* Writes a dump of `size` bytes, at least 300. */
static void write_dump_at(
	const char *path, uint32_t pid, int64_t start_ms, int64_t time_ms, size_t size)
{
	char text[5000] = "", time[DATE_TEXT_BYTES], start[DATE_TEXT_BYTES];
	size_t len;

	snprintf(text, sizeof(text),
		"// hsnap: dump format=1 tool=0.1.0 time=%s\r\n"
		"// hsnap: process id=%u start=%s bits=64\r\n",
		date_text(time_ms, time), pid, date_text(start_ms, start));
	len = strlen(text);
	assert_in_range(size, 300, sizeof(text) - 1);
	memset(text + len, '/', size - len);
	write_text(path, text);
}

static void write_dump(
	const char *name, uint32_t pid, int64_t start_ms, int64_t time_ms, size_t size)
{
	write_dump_at(in_scene(name), pid, start_ms, time_ms, size);
}

/* Checks the names in the folder. `expected` has a blank after each name. */
static void check_files(const char *expected)
{
	struct folder_list list;
	struct buf names;

	assert_int_equal(folder_list_read(scene_folder, &list, NULL), 0);
	buf_init(&names);
	buf_add_text(&names, "");
	for (size_t i = 0; i < list.count; i++)
		buf_printf(&names, "%s ", list.entries[i].name);
	assert_string_equal(names.data, expected);
	buf_release(&names);
	folder_list_release(&list);
}

static struct series_files *files;

/* Opens a plan for this process, which replaces the previous plan. */
static void open_plan(struct series_plan plan, int64_t start_ms)
{
	struct err err = {0};

	series_files_free(files);
	files = series_files_new(&plan, "C:\\x\\my app.exe", PID, start_ms, &err);
	assert_int_equal(err.code, 0);
	assert_non_null(files);
}

static void open_series(const char *pattern, struct series_limits limits)
{
	open_plan((struct series_plan){.out = in_scene(pattern), .limits = limits}, START_MS);
}

static void open_packed(const char *pattern, struct series_limits limits)
{
	open_plan(
		(struct series_plan){.out = in_scene(pattern), .limits = limits, .is_packed = true},
		START_MS);
}

static void check_name(int64_t time_ms, unsigned tries, const char *expected)
{
	struct err err = {0};
	struct buf path;

	buf_init(&path);
	assert_int_equal(series_files_name(files, time_ms, tries, &path, &err), 0);
	assert_string_equal(path.data, in_scene(expected));
	buf_release(&path);
}

/* Writes the series' next dump under the first free name. Returns 0, or the error about other
 * files. */
static int write_next_of(int64_t time_ms, size_t size, struct err *err)
{
	struct buf path;
	unsigned tries = 0;
	int rc;

	buf_init(&path);
	do
		assert_int_equal(series_files_name(files, time_ms, tries++, &path, err), 0);
	while (!access(path.data, F_OK));
	write_dump_at(path.data, PID, START_MS, time_ms, size);
	rc = series_files_written(files, path.data, err);
	buf_release(&path);
	return rc;
}

static void write_next(int64_t time_ms, size_t size)
{
	struct err err = {0};

	assert_int_equal(write_next_of(time_ms, size, &err), 0);
}

static void write_to(int64_t time_ms, size_t size, const char *expected)
{
	write_next(time_ms, size);
	check_files(expected);
}

static int empty_scene(void)
{
	struct folder_list list;
	int rc = folder_list_read(scene_folder, &list, NULL);

	for (size_t i = 0; !rc && i < list.count; i++)
		rc = remove(in_scene(list.entries[i].name));
	if (!rc)
		folder_list_release(&list);
	return rc;
}

static int end_test(void **state)
{
	(void)state;
	series_files_free(files);
	files = NULL;
	return empty_scene();
}

static int make_scene(void **state)
{
	(void)state;
	return mkdtemp(scene_folder) ? 0 : -1;
}

static int remove_scene(void **state)
{
	(void)state;
	return rmdir(scene_folder);
}

#undef TEST_AROUND
#define TEST_AROUND NULL, end_test

TEST(pattern_that_is_none_is_refused)
{
	const struct series_plan plan = {.out = "{time}/a", .limits = NO_LIMITS};
	struct err err = {0};

	assert_null(series_files_new(&plan, "a", 1, 1, &err));
	assert_int_equal(err.code, ERR_USAGE);
	assert_string_equal(err.place, plan.out);
	series_files_free(NULL);
}

TEST(without_time_and_number_there_is_one_name)
{
	open_series("{name}-{pid}.txt", NO_LIMITS);
	write_next(TIME_MS, 300);
	check_name(TIME_MS, 0, "my app-42.txt");
}

TEST(names_are_made_of_time)
{
	open_series("{name}-{pid}-{time}.txt", NO_LIMITS);
	check_name(TIME_MS, 0, "my app-42-20261120T102548Z.txt");
	check_name(TIME_MS, 1, "my app-42-20261120T102548Z_2.txt");
	check_name(TIME_MS, 2, "my app-42-20261120T102548Z_3.txt");
	check_name(TIME_MS + 1000, 0, "my app-42-20261120T102549Z.txt");
	check_name(-1, 0, "my app-42-19691231T235959Z.txt");
}

TEST(names_in_same_second_differ)
{
	open_series("{time}.txt", NO_LIMITS);
	write_next(TIME_MS, 300);
	write_next(TIME_MS + 1, 300);
	write_next(TIME_MS + 876, 300);
	write_next(TIME_MS + 877, 300); /* the next second */
	check_files("20261120T102548Z.txt 20261120T102548Z_2.txt 20261120T102548Z_3.txt "
		    "20261120T102549Z.txt ");
}

TEST(what_was_written_and_taken_away_is_no_number_again)
{
	open_series("{n}.txt", NO_LIMITS);
	write_next(TIME_MS, 300);
	assert_int_equal(empty_scene(), 0);
	check_name(TIME_MS, 0, "000002.txt");
}

TEST(numbers_go_on_behind_highest)
{
	open_series("{name}-{n}.txt", NO_LIMITS);
	check_name(TIME_MS, 0, "my app-000001.txt");
	write_text(in_scene("my app-000007.txt"), "not even a dump");
	write_text(in_scene("my app-000003.txt"), "");
	write_text(in_scene("my app-99.txt"), "");
	write_text(in_scene("my app-000099.txt.tmp"), "");
	write_text(in_scene("other-000099.txt"), "");
	assert_int_equal(mkdir(in_scene("my app-000008.txt"), 0700), 0);
	assert_int_equal(symlink("none", in_scene("my app-000009.txt")), 0);
	check_name(TIME_MS, 0, "my app-000010.txt");
	write_to(TIME_MS, 300,
		"my app-000003.txt my app-000007.txt my app-000008.txt my app-000009.txt "
		"my app-000010.txt my app-000099.txt.tmp my app-99.txt other-000099.txt ");
	open_series("{name}-{n}.txt", NO_LIMITS); /* a new start of hsnap */
	check_name(TIME_MS, 0, "my app-000011.txt");
	write_text(in_scene("my app-999999.txt"), "");
	check_name(TIME_MS, 0, "my app-1000000.txt");
}

/* Another hsnap is always faster: when this one chooses the next name, a file with that name
 * exists. */
TEST(race_leaves_no_gap)
{
	open_series("{n}", NO_LIMITS);
	check_name(TIME_MS, 0, "000001");
	write_text(in_scene("000001"), "");
	check_name(TIME_MS, 1, "000002");
	write_text(in_scene("000002"), "");
	check_name(TIME_MS, 2, "000003");
}

TEST(failed_snapshot_takes_no_number)
{
	open_series("{n}{time}", NO_LIMITS);
	check_name(TIME_MS, 0, "00000120261120T102548Z");
	check_name(TIME_MS, 0, "00000120261120T102548Z");
	write_next(TIME_MS, 300);
	check_name(TIME_MS, 0, "00000220261120T102548Z"); /* no "_2", because the number differs */
}

TEST(names_come_to_end)
{
	struct err err = {0};
	struct buf path;

	open_series("{pid}{{{n}", NO_LIMITS);
	write_text(in_scene("42{999999999998"), "");
	check_name(TIME_MS, 0, "42{999999999999");
	write_text(in_scene("42{999999999999"), "");
	buf_init(&path);
	assert_int_equal(series_files_name(files, TIME_MS, 0, &path, &err), -ERR_EXISTS);
	assert_string_equal(err.place, "42{{{n}");
	assert_null(path.data);
	buf_release(&path);
}

TEST(packed_files_are_called_so)
{
	static const struct {
		const char *pattern, *name;
	} cases[] = {{"{n}.txt", "000001.txt.gz"}, {"{n}.txt.gz", "000001.txt.gz"},
		{"{n}.gz.txt", "000001.gz.txt.gz"}, {"{n}", "000001.gz"}, {"{n}gz", "000001gz.gz"},
		{"{n}.GZ", "000001.GZ"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		open_packed(cases[i].pattern, NO_LIMITS);
		check_name(TIME_MS, 0, cases[i].name);
	}
}

TEST(folders_may_have_words_too)
{
	open_series("{name} {pid} {{x/{n}", NO_LIMITS);
	check_name(TIME_MS, 0, "my app 42 {x/000001"); /* the folder was created */
	assert_true(os_exists(in_scene("my app 42 {x")));
}

TEST(without_folder_it_is_current_one)
{
	char *here = getcwd(NULL, 0);
	struct buf path;
	int rc;

	open_plan((struct series_plan){.out = "{n}", .limits = NO_LIMITS}, START_MS);
	write_text(in_scene("000004"), "");
	buf_init(&path);
	assert_int_equal(chdir(scene_folder), 0);
	rc = series_files_name(files, TIME_MS, 0, &path, NULL);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(rc, 0);
	assert_string_equal(path.data, "000005");
	buf_release(&path);
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

TEST(folder_is_tried_before_first_file)
{
	char path[600];

	write_text(in_scene("file"), "");
	check_folder(in_scene("{time}"), 0, NULL);
	/* The folder's name depends on the process. */
	check_folder(in_scene("{name}/{n}"), 0, NULL);
	check_folder(in_scene("none/a"), 0, NULL); /* not a pattern of a series */
	check_folder(in_scene("none/deep/{n}"), 0, NULL); /* hsnap will create the folder */
	assert_true(os_exists(in_scene("none/deep")));
	os_remove_folder(in_scene("none/deep"));
	os_remove_folder(in_scene("none"));
	snprintf(path, sizeof(path), "%s", in_scene("file/"));
	check_folder(in_scene("file/{n}"), -ERR_OPEN, path);
	check_files("file ");
	/* The folder is readable, but files cannot be created in it. */
	check_folder("/proc/self/{n}.txt", -ERR_CREATE, "/proc/self/");
}

/* ---------------------------------------------------------------- removal */

#define MINUTE 60000

static struct series_limits keep(size_t count)
{
	return (struct series_limits){count, UINT64_MAX};
}

static struct series_limits keep_bytes(uint64_t bytes)
{
	return (struct series_limits){UINT64_MAX, bytes};
}

TEST(three_of_five_stay)
{
	open_series("{n}", keep(3));
	for (int i = 0; i < 3; i++)
		write_next(TIME_MS + i * MINUTE, 300);
	check_files("000001 000002 000003 ");
	write_to(TIME_MS + 3 * MINUTE, 300, "000002 000003 000004 ");
	write_to(TIME_MS + 4 * MINUTE, 300, "000003 000004 000005 ");
	open_series("{n}", keep(2)); /* a new start with a lower limit */
	write_to(TIME_MS + 5 * MINUTE, 300, "000005 000006 ");
}

TEST(without_limits_all_stay)
{
	open_series("{n}", NO_LIMITS);
	for (int i = 0; i < 5; i++)
		write_next(TIME_MS, 300);
	check_files("000001 000002 000003 000004 000005 ");
}

TEST(so_many_bytes_stay)
{
	open_series("{n}", keep_bytes(1500));
	write_next(TIME_MS, 500);
	write_next(TIME_MS, 500);
	write_to(TIME_MS, 500, "000001 000002 000003 "); /* reaches the limit exactly */
	write_to(TIME_MS, 501, "000003 000004 ");
	write_to(TIME_MS, 499, "000003 000004 000005 ");
	write_to(TIME_MS, 2000, "000006 "); /* larger than the limit, but the newest file stays */
	write_to(TIME_MS, 300, "000007 ");
}

TEST(both_limits_hold)
{
	open_series("{n}", (struct series_limits){2, 1000});
	write_next(TIME_MS, 300);
	write_next(TIME_MS, 300);
	write_to(TIME_MS, 300, "000002 000003 ");
	write_to(TIME_MS, 800, "000004 ");
	open_series("{n}", (struct series_limits){0, 0});
	write_to(TIME_MS, 300, "000005 ");
}

TEST(other_processes_files_stay)
{
	open_series("{name}-{n}", keep(1));
	/* An earlier process with the same pid. */
	write_dump("my app-000001", PID, START_MS - 1, TIME_MS - MINUTE, 300);
	write_dump("my app-000002", PID, START_MS + 1000, TIME_MS - MINUTE, 300);
	write_dump("my app-000003", PID + 1, START_MS, TIME_MS - MINUTE, 300);
	write_dump("my app-000004", PID, START_MS, TIME_MS - MINUTE, 300);
	/* Another pattern's name. */
	write_dump("my app-000005.txt", PID, START_MS, TIME_MS - MINUTE, 300);
	write_dump("app-000006", PID, START_MS, TIME_MS - MINUTE, 300);
	write_next(TIME_MS, 300);
	write_to(TIME_MS, 300,
		"app-000006 my app-000001 my app-000002 my app-000003 my app-000005.txt "
		"my app-000006 ");
}

TEST(process_without_start_time_has_no_known_files)
{
	open_plan((struct series_plan){.out = in_scene("{n}"), .limits = keep(1)}, 0);
	write_text(in_scene("000001"), "// hsnap: dump format=1 time=2026-11-20T10:00:00Z\n"
				       "// hsnap: process id=42\n");
	write_dump("000002", PID, START_MS, TIME_MS - MINUTE, 300);
	write_to(TIME_MS, 300, "000001 000002 000003 ");
}

#define DUMP "// hsnap: dump format=1 time=2026-11-20T10:25:48.123Z\n"
#define PROCESS "// hsnap: process id=42 start=2026-11-20T10:00:00.009Z"
#define UMDH "// UMDH: version 6.1.7650.0: Logtime 2026-11-20 10:25 - Machine=BOX - PID=42\n"

TEST(what_is_no_sound_dump_of_ours_stays)
{
	static const char *const texts[] = {
		"somebody else's letter\n",
		"",
		UMDH "// Loaded modules: \n//     Base Size Module\n",
		"// hsnap: dump format=1 tool=0.1.0\n" PROCESS "\n", /* no time */
		"// hsnap: dump format=9 time=2026-11-20T10:25:48.123Z\n" PROCESS "\n",
		DUMP PROCESS, /* cut off */
		/* The note comes too late. */
		DUMP "*- - Start of data for heap @ 10 - -\n" PROCESS "\n",
		"\x1f\x8b\x08 no gzip",
		UMDH PROCESS "\n// Loaded modules: \n//     Base Size Module\n"
			     "//      1000     1000 C:\\a.exe\n",
	};

	open_series("{n}", keep(1));
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char name[] = "000001";

		name[5] += (char)i;
		write_text(in_scene(name), texts[i]);
	}
	write_next(TIME_MS, 300);
	write_to(TIME_MS, 300,
		"000001 000002 000003 000004 000005 000006 000007 000008 000009 "
		"000011 ");
}

TEST(folders_links_and_pipes_stay)
{
	open_series("{n}", keep(1));
	assert_int_equal(mkdir(in_scene("000001"), 0700), 0);
	write_dump("a dump", PID, START_MS, TIME_MS - MINUTE, 300);
	assert_int_equal(symlink("a dump", in_scene("000002")), 0);
	assert_int_equal(symlink(".", in_scene("000003")), 0);
	assert_int_equal(mkfifo(in_scene("000004"), 0600), 0);
	write_next(TIME_MS, 300);
	write_to(TIME_MS, 300, "000001 000002 000003 000004 000006 a dump ");
}

/* Another program replaces a known file between two checks. */
TEST(file_is_looked_at_again_before_it_goes)
{
	open_series("{n}", keep(2));
	write_next(TIME_MS, 300);
	write_next(TIME_MS, 300);
	write_dump("000001", PID, START_MS - 1, TIME_MS, 300); /* replacement of equal size */
	write_to(TIME_MS, 300, "000001 000002 000003 ");
	assert_int_equal(remove(in_scene("000002")), 0);
	assert_int_equal(symlink("000001", in_scene("000002")), 0);
	write_next(TIME_MS, 300);
	write_to(TIME_MS, 300, "000001 000002 000004 000005 ");
}

TEST(file_that_changed_is_read_anew)
{
	open_series("{n}", keep(2));
	write_text(in_scene("000001"), "somebody else's");
	write_next(TIME_MS, 300);
	write_to(TIME_MS, 300, "000001 000002 000003 ");
	/* Replacement by another program. */
	write_dump("000001", PID, START_MS, TIME_MS - MINUTE, 300);
	write_dump("000002", PID, START_MS, TIME_MS - MINUTE, 400);
	write_to(TIME_MS, 300, "000003 000004 ");
}

TEST(what_is_gone_is_no_trouble)
{
	struct err err = {0};

	open_series("{n}", keep(2));
	write_next(TIME_MS, 300);
	write_next(TIME_MS, 300);
	assert_int_equal(remove(in_scene("000001")), 0);
	write_to(TIME_MS, 300, "000002 000003 ");
	/* The newest file itself: its failure must be reported, but only once. */
	assert_int_equal(series_files_written(files, in_scene("000004"), &err), -ERR_OPEN);
	assert_string_equal(err.place, in_scene("000004"));
	assert_int_equal(series_files_written(files, in_scene("000004"), &err), 0);
	check_files("000002 000003 ");
	write_next(TIME_MS, 300);
	assert_int_equal(series_files_written(files, in_scene("000009"), &err), -ERR_OPEN);
}

TEST(folder_that_is_gone_is_error)
{
	struct err err = {0};

	open_series("sub/{n}", keep(2));
	assert_int_equal(rmdir(in_scene("sub")), 0);
	assert_int_equal(series_files_written(files, in_scene("sub/000001"), &err), -ERR_OPEN);
	assert_string_equal(err.place, in_scene("sub/"));
}

/* Gives up the right to remove files in the folder. Returns false if that is impossible on this
 * system. */
static bool drop_rights(void)
{
	assert_int_equal(chmod(scene_folder, 0555), 0);
	if (!geteuid() && seteuid(65534))
		return false;
	return !access(scene_folder, R_OK) && unlink(in_scene("000001")) && errno == EACCES;
}

static void take_rights_back(void)
{
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(scene_folder, 0755), 0);
}

TEST(failed_removal_is_reported_once)
{
	struct err err = {0};
	bool dropped;
	int first = 0, second = 0;

	open_series("{n}", keep(2));
	for (int i = 0; i < 3; i++)
		write_dump_at(in_scene((const char *[]){"000001", "000002", "000003"}[i]), PID,
			START_MS, TIME_MS + i, 300);
	dropped = drop_rights();
	if (dropped) {
		first = series_files_written(files, in_scene("000003"), &err);
		second = series_files_written(files, in_scene("000003"), &err);
	}
	take_rights_back();
	if (!dropped)
		skip(); /* needs another user, or a folder without write permission */
	assert_int_equal(first, -ERR_REMOVE);
	assert_int_equal(second, 0);
	assert_string_equal(err.place, in_scene("000001"));
	check_files("000001 000002 000003 "); /* no other file is removed instead */
	write_next(TIME_MS, 300); /* the file can be removed again */
	check_files("000003 000004 ");
}

static void pack(const char *name, uint32_t pid)
{
	gzFile file = gzopen(in_scene(name), "wb");

	assert_non_null(file);
	assert_true(gzprintf(file,
			    "// hsnap: dump format=1 time=2026-11-20T10:25:00.000Z\r\n"
			    "// hsnap: process id=%u start=2026-11-20T10:00:00.009Z\r\n",
			    pid) > 0);
	assert_int_equal(gzclose(file), Z_OK);
}

TEST(packed_files_go_too)
{
	open_packed("{n}", keep(2));
	pack("000001.gz", PID);
	pack("000002.gz", PID + 1);
	pack("000003.gz", PID);
	pack("000004", PID); /* the packed file's name lacks the extension */
	write_to(TIME_MS, 300, "000002.gz 000003.gz 000004 000004.gz ");
}

TEST(oldest_by_their_own_time_go_first)
{
	open_series("{n}", keep(4));
	write_dump("000001", PID, START_MS, TIME_MS + 5 * MINUTE, 300);
	write_dump("000002", PID, START_MS, TIME_MS + 2 * MINUTE, 300);
	write_dump("000003", PID, START_MS, TIME_MS + 2 * MINUTE, 300);
	write_dump("000004", PID, START_MS, TIME_MS + 1 * MINUTE, 300);
	write_dump("000005", PID, START_MS, TIME_MS + 2 * MINUTE - 1, 300);
	write_to(TIME_MS + 9 * MINUTE, 300, "000001 000002 000003 000006 ");
	write_to(TIME_MS + 9 * MINUTE, 300, "000001 000003 000006 000007 ");
	write_to(TIME_MS + 9 * MINUTE, 300, "000001 000006 000007 000008 ");
}

static void write_clocked(const char *name, uint64_t clock_ms, int64_t time_ms)
{
	char text[1000], time[DATE_TEXT_BYTES], start[DATE_TEXT_BYTES];

	snprintf(text, sizeof(text),
		"// hsnap: dump format=1 tool=0.1.0 time=%s\r\n"
		"// hsnap: process id=%u start=%s clock=%" PRIu64 " bits=64\r\n",
		date_text(time_ms, time), PID, date_text(START_MS, start), clock_ms);
	write_text(in_scene(name), text);
}

/* The machine's clock contradicts the dates of an earlier run. */
TEST(oldest_by_machine_clock_go_first)
{
	open_series("{n}", keep(3));
	write_clocked("000001", 9000, TIME_MS + 2 * MINUTE);
	write_clocked(
		"000002", 70000, TIME_MS + MINUTE); /* the date was set back before this dump */
	/* A dump of a version that did not record the clock. */
	write_dump("000003", PID, START_MS, TIME_MS + 5 * MINUTE, 300);
	write_clocked("000004", 80000, TIME_MS + MINUTE - 1);
	write_to(TIME_MS + 9 * MINUTE, 300, "000002 000004 000005 ");
	write_to(TIME_MS + 9 * MINUTE, 300, "000004 000005 000006 ");
}

TEST(clock_that_went_back_removes_nothing_new)
{
	open_series("{time}", keep(2));
	write_dump("20261120T120000Z", PID, START_MS, TIME_MS + 94 * MINUTE, 300);
	write_next(TIME_MS + MINUTE, 300); /* the clock was changed back before this dump */
	check_files("20261120T102648Z 20261120T120000Z ");
	write_to(TIME_MS, 300, "20261120T102548Z 20261120T102648Z ");
	write_to(TIME_MS - MINUTE, 300, "20261120T102448Z 20261120T102548Z ");
	write_next(TIME_MS, 300); /* a second for which a dump exists */
	check_files("20261120T102448Z 20261120T102548Z_2 ");
}

/* During the run another program or a user writes files into the series. Files that this run did
 * not write are removed first. */
TEST(what_another_wrote_goes_first)
{
	open_series("{n}", keep(3));
	write_next(TIME_MS, 300);
	write_dump("000002", PID, START_MS, TIME_MS + MINUTE, 300);
	write_next(TIME_MS + 2 * MINUTE, 300);
	write_dump("000004", PID, START_MS, TIME_MS + 3 * MINUTE, 300);
	write_to(TIME_MS + 4 * MINUTE, 300, "000001 000003 000005 ");
}

/* If all files were read each time, a day of --every 1s would read eighty thousand files each
 * second. */
TEST(what_this_run_has_written_is_not_read_until_it_goes)
{
	int watch = inotify_init1(IN_NONBLOCK);
	char events[8192];
	unsigned opened = 0;
	ssize_t len;

	open_series("{n}", keep(20));
	for (int i = 0; i < 20; i++)
		write_next(TIME_MS + i, 300);
	assert_true(inotify_add_watch(watch, scene_folder, IN_OPEN) >= 0);
	write_next(TIME_MS + 20, 300);
	while ((len = read(watch, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + len;) {
			const struct inotify_event *event = (const void *)at;

			opened += event->len && !(event->mask & IN_ISDIR);
			at += sizeof(*event) + event->len;
		}
	}
	assert_int_equal(opened, 2); /* the new file and the removed one */
	close(watch);
}

GROUP(make_scene, remove_scene)
