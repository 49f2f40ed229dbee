/* Which files of a series are the oldest. */
#include "tests/unit/series_folder.h"

#include <unistd.h>

#define MINUTE 60000

static struct series_limits keep(size_t count)
{
	return (struct series_limits){count, UINT64_MAX};
}

/* Those of an earlier run: by the times in them, then by name. */
static void the_oldest_by_their_own_time_go_first(void **state)
{
	struct series_files *files = new_series("{n}", keep(4));

	(void)state;
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

static void a_clock_that_went_back_removes_nothing_new(void **state)
{
	struct series_files *files = new_series("{time}", keep(2));

	(void)state;
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

/* Another program, or a person, writes into the same series meanwhile. */
static void the_oldest_of_several_writers_go_first(void **state)
{
	struct series_files *files = new_series("{n}", keep(3));

	(void)state;
	write_next(files, TIME_MS, 300);
	put_dump("000002", PID, START_MS, TIME_MS + MINUTE, 300);
	write_next(files, TIME_MS + 2 * MINUTE, 300);
	put_dump("000004", PID, START_MS, TIME_MS + 3 * MINUTE, 300);
	write_next(files, TIME_MS + 4 * MINUTE, 300);
	check_files("000003 000004 000005 ");
	put_dump("000006", PID, START_MS, TIME_MS + 5 * MINUTE, 300);
	put_dump("000007", PID, START_MS, TIME_MS + 6 * MINUTE, 300);
	write_next(files, TIME_MS + 7 * MINUTE, 300);
	check_files("000006 000007 000008 ");
	series_files_free(files);
}

/* The same while the clock is set back by an hour: what came before stays older. */
static void several_writers_and_a_clock_that_went_back(void **state)
{
	struct series_files *files = new_series("{n}", keep(3));

	(void)state;
	write_next(files, TIME_MS + 60 * MINUTE, 300);
	put_dump("000002", PID, START_MS, TIME_MS + 61 * MINUTE, 300);
	write_next(files, TIME_MS + 2 * MINUTE, 300);
	check_files("000001 000002 000003 ");
	write_next(files, TIME_MS + 3 * MINUTE, 300);
	check_files("000002 000003 000004 ");
	write_next(files, TIME_MS + 4 * MINUTE, 300);
	check_files("000003 000004 000005 ");
	series_files_free(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_oldest_by_their_own_time_go_first),
		TEST(a_clock_that_went_back_removes_nothing_new),
		TEST(the_oldest_of_several_writers_go_first),
		TEST(several_writers_and_a_clock_that_went_back),
	};

	return cmocka_run_group_tests(tests, make_scene, remove_scene);
}
