/* Which files of a series go, and that no others do. */
#include "tests/unit/t.h"

#include "tests/unit/series_folder.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#define MINUTE 60000

static struct series_limits keep(size_t count)
{
	return (struct series_limits){count, UINT64_MAX};
}

static struct series_limits keep_bytes(uint64_t bytes)
{
	return (struct series_limits){UINT64_MAX, bytes};
}

#undef TEST_AROUND
#define TEST_AROUND NULL, empty_scene

TEST(three_of_five_stay)
{
	struct series_files *files = new_series("{n}", keep(3));

	for (int i = 0; i < 3; i++)
		write_next(files, TIME_MS + i * MINUTE, 300);
	check_files("000001 000002 000003 ");
	write_next(files, TIME_MS + 3 * MINUTE, 300);
	check_files("000002 000003 000004 ");
	write_next(files, TIME_MS + 4 * MINUTE, 300);
	check_files("000003 000004 000005 ");
	series_files_free(files);
	files = new_series("{n}", keep(2)); /* another start, with a lower limit */
	write_next(files, TIME_MS + 5 * MINUTE, 300);
	check_files("000005 000006 ");
	series_files_free(files);
}

TEST(without_limits_all_stay)
{
	struct series_files *files = new_series("{n}", NO_LIMITS);

	for (int i = 0; i < 5; i++)
		write_next(files, TIME_MS, 300);
	check_files("000001 000002 000003 000004 000005 ");
	series_files_free(files);
}

TEST(so_many_bytes_stay)
{
	struct series_files *files = new_series("{n}", keep_bytes(1500));

	write_next(files, TIME_MS, 500);
	write_next(files, TIME_MS, 500);
	write_next(files, TIME_MS, 500);
	check_files("000001 000002 000003 "); /* not a byte too much */
	write_next(files, TIME_MS, 501);
	check_files("000003 000004 ");
	write_next(files, TIME_MS, 499);
	check_files("000003 000004 000005 ");
	write_next(files, TIME_MS, 2000);
	check_files("000006 "); /* larger than the limit, and stays */
	write_next(files, TIME_MS, 300);
	check_files("000007 ");
	series_files_free(files);
}

TEST(both_limits_hold)
{
	struct series_files *files = new_series("{n}", (struct series_limits){2, 1000});

	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	check_files("000002 000003 ");
	write_next(files, TIME_MS, 800);
	check_files("000004 ");
	series_files_free(files);
	files = new_series("{n}", (struct series_limits){0, 0});
	write_next(files, TIME_MS, 300);
	check_files("000005 ");
	series_files_free(files);
}

TEST(other_processes_files_stay)
{
	struct series_files *files = new_series("{name}-{n}", keep(1));

	put_dump("my app-000001", PID, START_MS - 1, TIME_MS - MINUTE, 300); /* a pid used again */
	put_dump("my app-000002", PID, START_MS + 1000, TIME_MS - MINUTE, 300);
	put_dump("my app-000003", PID + 1, START_MS, TIME_MS - MINUTE, 300);
	put_dump("my app-000004", PID, START_MS, TIME_MS - MINUTE, 300);
	put_dump("my app-000005.txt", PID, START_MS, TIME_MS - MINUTE, 300); /* another pattern's */
	put_dump("app-000006", PID, START_MS, TIME_MS - MINUTE, 300);
	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	check_files("app-000006 my app-000001 my app-000002 my app-000003 my app-000005.txt "
		    "my app-000006 ");
	series_files_free(files);
}

TEST(a_process_without_start_time_has_no_known_files)
{
	const struct series_plan plan = {.out = in_scene("{n}"), .limits = keep(1)};
	struct series_files *files = series_files_new(&plan, "a", PID, 0, NULL);

	assert_non_null(files);
	put_text(in_scene("000001"), "// hsnap: dump format=1 time=2026-11-20T10:00:00Z\n"
				     "// hsnap: process id=42\n");
	put_dump("000002", PID, START_MS, TIME_MS - MINUTE, 300);
	write_next(files, TIME_MS, 300);
	check_files("000001 000002 000003 ");
	series_files_free(files);
}

TEST(what_is_no_sound_dump_of_ours_stays)
{
	static const char umdh[] =
		"// UMDH: version 6.1.7650.0: Logtime 2026-11-20 10:25 - Machine=BOX - PID=42\n"
		"// Loaded modules: \n//     Base Size Module\n";
	static const char timeless[] = "// hsnap: dump format=1 tool=0.1.0\n"
				       "// hsnap: process id=42 start=2026-11-20T10:00:00.009Z\n";
	static const char newer[] = "// hsnap: dump format=9 time=2026-11-20T10:25:48.123Z\n"
				    "// hsnap: process id=42 start=2026-11-20T10:00:00.009Z\n";
	static const char cut[] = "// hsnap: dump format=1 time=2026-11-20T10:25:48.123Z\n"
				  "// hsnap: process id=42 start=2026-11-20T10:00:00.009Z";
	static const char late[] = "// hsnap: dump format=1 time=2026-11-20T10:25:48.123Z\n"
				   "*- - Start of data for heap @ 10 - -\n"
				   "// hsnap: process id=42 start=2026-11-20T10:00:00.009Z\n";
	static const char mixed[] =
		"// UMDH: version 6.1.7650.0: Logtime 2026-11-20 10:25 - Machine=BOX - PID=42\n"
		"// hsnap: process id=42 start=2026-11-20T10:00:00.009Z\n"
		"// Loaded modules: \n//     Base Size Module\n//      1000     1000 C:\\a.exe\n";
	struct series_files *files = new_series("{n}", keep(1));

	put_text(in_scene("000001"), "somebody else's letter\n");
	put_text(in_scene("000002"), "");
	put_text(in_scene("000003"), umdh);
	put_text(in_scene("000004"), timeless);
	put_text(in_scene("000005"), newer);
	put_text(in_scene("000006"), cut);
	put_text(in_scene("000007"), late);
	put_text(in_scene("000008"), "\x1f\x8b\x08 no gzip");
	put_text(in_scene("000009"), mixed);
	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	check_files("000001 000002 000003 000004 000005 000006 000007 000008 000009 "
		    "000011 ");
	series_files_free(files);
}

TEST(folders_links_and_pipes_stay)
{
	struct series_files *files = new_series("{n}", keep(1));

	assert_int_equal(mkdir(in_scene("000001"), 0700), 0);
	put_dump("a dump", PID, START_MS, TIME_MS - MINUTE, 300);
	assert_int_equal(symlink("a dump", in_scene("000002")), 0);
	assert_int_equal(symlink(".", in_scene("000003")), 0);
	assert_int_equal(mkfifo(in_scene("000004"), 0600), 0);
	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	check_files("000001 000002 000003 000004 000006 a dump ");
	series_files_free(files);
}

/* Between two turns somebody puts another file in the place of one that is known. */
TEST(a_file_is_looked_at_again_before_it_goes)
{
	struct series_files *files = new_series("{n}", keep(2));

	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	put_dump("000001", PID, START_MS - 1, TIME_MS, 300); /* of the same size */
	write_next(files, TIME_MS, 300);
	check_files("000001 000002 000003 ");
	assert_int_equal(remove(in_scene("000002")), 0);
	assert_int_equal(symlink("000001", in_scene("000002")), 0);
	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	check_files("000001 000002 000004 000005 ");
	series_files_free(files);
}

TEST(a_file_that_changed_is_read_anew)
{
	struct series_files *files = new_series("{n}", keep(2));

	put_text(in_scene("000001"), "somebody else's");
	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	check_files("000001 000002 000003 ");
	put_dump("000001", PID, START_MS, TIME_MS - MINUTE, 300); /* by another program */
	put_dump("000002", PID, START_MS, TIME_MS - MINUTE, 400);
	write_next(files, TIME_MS, 300);
	check_files("000003 000004 ");
	series_files_free(files);
}

TEST(what_is_gone_is_no_trouble)
{
	struct series_files *files = new_series("{n}", keep(2));
	struct err err = {0};

	write_next(files, TIME_MS, 300);
	write_next(files, TIME_MS, 300);
	assert_int_equal(remove(in_scene("000001")), 0);
	write_next(files, TIME_MS, 300);
	check_files("000002 000003 ");
	/* the newest itself: that nothing is removed must be known, once */
	assert_int_equal(series_files_written(files, in_scene("000004"), &err), -ERR_OPEN);
	assert_string_equal(err.place, in_scene("000004"));
	assert_int_equal(series_files_written(files, in_scene("000004"), &err), 0);
	check_files("000002 000003 ");
	write_next(files, TIME_MS, 300);
	assert_int_equal(series_files_written(files, in_scene("000009"), &err), -ERR_OPEN);
	series_files_free(files);
}

TEST(a_folder_that_is_gone_is_an_error)
{
	struct series_files *files = new_series("sub/{n}", keep(2));
	struct err err = {0};

	assert_int_equal(series_files_written(files, in_scene("sub/000001"), &err), -ERR_OPEN);
	assert_string_equal(err.place, in_scene("sub/"));
	series_files_free(files);
}

/* As one who may not remove files in the folder; false: that cannot be had here. */
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

TEST(what_cannot_be_removed_is_told_once)
{
	struct series_files *files = new_series("{n}", keep(2));
	struct err err = {0};
	bool dropped;
	int first = 0, second = 0;

	for (int i = 0; i < 3; i++)
		put_dump_at(in_scene((const char *[]){"000001", "000002", "000003"}[i]), PID,
			START_MS, TIME_MS + i, 300);
	dropped = drop_rights();
	if (dropped) {
		first = series_files_written(files, in_scene("000003"), &err);
		second = series_files_written(files, in_scene("000003"), &err);
	}
	take_rights_back();
	if (!dropped) {
		series_files_free(files);
		skip(); /* it takes another user, or a folder that this one may not write to */
	}
	assert_int_equal(first, -ERR_REMOVE);
	assert_int_equal(second, 0);
	assert_string_equal(err.place, in_scene("000001"));
	check_files("000001 000002 000003 "); /* none goes in its place */
	write_next(files, TIME_MS, 300); /* now it can be */
	check_files("000003 000004 ");
	series_files_free(files);
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
	struct series_files *files = new_packed_series("{n}", keep(2), true);

	pack("000001.gz", PID);
	pack("000002.gz", PID + 1);
	pack("000003.gz", PID);
	pack("000004", PID); /* not so called */
	write_next(files, TIME_MS, 300);
	check_files("000002.gz 000003.gz 000004 000004.gz ");
	series_files_free(files);
}

/* Those of an earlier run: by the times in them, then by name. */
TEST(the_oldest_by_their_own_time_go_first)
{
	struct series_files *files = new_series("{n}", keep(4));

	put_dump("000001", PID, START_MS, TIME_MS + 5 * MINUTE, 300);
	put_dump("000002", PID, START_MS, TIME_MS + 2 * MINUTE, 300);
	put_dump("000003", PID, START_MS, TIME_MS + 2 * MINUTE, 300);
	put_dump("000004", PID, START_MS, TIME_MS + 1 * MINUTE, 300);
	put_dump("000005", PID, START_MS, TIME_MS + 2 * MINUTE - 1, 300);
	write_next(files, TIME_MS + 9 * MINUTE, 300);
	check_files("000001 000002 000003 000006 ");
	write_next(files, TIME_MS + 9 * MINUTE, 300);
	check_files("000001 000003 000006 000007 ");
	write_next(files, TIME_MS + 9 * MINUTE, 300);
	check_files("000001 000006 000007 000008 ");
	series_files_free(files);
}

TEST(a_clock_that_went_back_removes_nothing_new)
{
	struct series_files *files = new_series("{time}", keep(2));

	put_dump("20261120T120000Z", PID, START_MS, TIME_MS + 94 * MINUTE, 300);
	write_next(files, TIME_MS + MINUTE, 300); /* the clock was set back meanwhile */
	check_files("20261120T102648Z 20261120T120000Z ");
	write_next(files, TIME_MS, 300);
	check_files("20261120T102548Z 20261120T102648Z ");
	write_next(files, TIME_MS - MINUTE, 300);
	check_files("20261120T102448Z 20261120T102548Z ");
	write_next(files, TIME_MS, 300); /* a second that was there already */
	check_files("20261120T102448Z 20261120T102548Z_2 ");
	series_files_free(files);
}

/* Another program, or a person, writes into the same series meanwhile: while each is there as a file that this
 * run has not written, it goes before those that it has. */
TEST(what_another_wrote_goes_first)
{
	struct series_files *files = new_series("{n}", keep(3));

	write_next(files, TIME_MS, 300);
	put_dump("000002", PID, START_MS, TIME_MS + MINUTE, 300);
	write_next(files, TIME_MS + 2 * MINUTE, 300);
	put_dump("000004", PID, START_MS, TIME_MS + 3 * MINUTE, 300);
	write_next(files, TIME_MS + 4 * MINUTE, 300);
	check_files("000001 000003 000005 ");
	series_files_free(files);
}

GROUP(make_scene, remove_scene)
