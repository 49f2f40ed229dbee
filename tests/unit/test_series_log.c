#include "tests/unit/t.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/parse.h"
#include "snapshot/series/series.h"

#define NOON_MS 1700000000123 /* 2023-11-14T22:13:20.123Z */

static char dir[] = "build/test_series_log.XXXXXX", path[80], old_path[90];

static int make_dir(void **state)
{
	(void)state;
	strcpy(strrchr(dir, '.') + 1, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(old_path, sizeof(old_path), "%s.1", path);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	unlink(old_path);
	return rmdir(dir);
}

/* Returns a file's text, which the caller frees, or NULL. */
static char *content(const char *name)
{
	FILE *from = fopen(name, "rb");
	char *text;
	long len;

	if (!from)
		return NULL;
	assert_int_equal(fseek(from, 0, SEEK_END), 0);
	len = ftell(from);
	assert_int_equal(fseek(from, 0, SEEK_SET), 0);
	text = calloc(1, (size_t)len + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)len, from), len);
	assert_int_equal(fclose(from), 0);
	return text;
}

#undef TEST_AROUND
#define TEST_AROUND make_dir, remove_dir

TEST(test_each_line_has_its_time_and_obeys_nobody)
{
	struct series_log log;
	struct err err;
	char *text;

	assert_int_equal(series_log_start(&log, path, &err), 0);
	assert_int_equal(series_log_add(&log, NOON_MS, "one", &err), 0);
	assert_int_equal(series_log_add(&log, NOON_MS + 1000, "\033[2Jtwo\nthree\r\x7f", &err), 0);
	text = content(path);
	assert_string_equal(text, "2023-11-14T22:13:20.123Z one\n"
				  "2023-11-14T22:13:21.123Z ?[2Jtwo?three??\n");
	free(text);
	/* A log that is started later appends to the file. */
	assert_int_equal(series_log_start(&log, path, &err), 0);
	assert_int_equal(series_log_add(&log, NOON_MS, "four", &err), 0);
	text = content(path);
	assert_non_null(strstr(text, "three??\n2023-11-14T22:13:20.123Z four\n"));
	free(text);
}

TEST(test_without_file_nothing_is_written)
{
	struct series_log log;
	struct err err;

	assert_int_equal(series_log_start(&log, NULL, &err), 0);
	assert_int_equal(series_log_add(&log, NOON_MS, "one", &err), 0);
	assert_int_equal(access(path, F_OK), -1);
}

/* Writes three times a file's limit. The last part must be complete, and no file may be much longer
 * than the limit. */
TEST(test_long_log_is_two_files)
{
	static char line[10001];
	struct series_log log;
	struct stat st;
	struct err err;
	unsigned lines = 3 * SERIES_LOG_BYTES / sizeof(line), found = 0, first = 0;
	char *names[] = {old_path, path};

	assert_int_equal(series_log_start(&log, path, &err), 0);
	for (unsigned i = 0; i < lines; i++) {
		snprintf(line, sizeof(line), "%09u %09950u", i, 0u);
		assert_int_equal(series_log_add(&log, NOON_MS, line, &err), 0);
	}
	for (size_t i = 0; i < 2; i++) {
		char *text = content(names[i]);

		assert_int_equal(stat(names[i], &st), 0);
		assert_true((uint64_t)st.st_size < SERIES_LOG_BYTES + sizeof(line) + 100);
		for (char *at = text; at && *at; at = strchr(at, '\n') + 1) {
			unsigned number = (unsigned)strtoul(at + 25, NULL, 10);

			first = found ? first : number;
			assert_int_equal(number, first + found++);
		}
		free(text);
	}
	assert_int_equal(first + found, lines); /* no line is missing at the end */
	assert_true(found * sizeof(line) >= SERIES_LOG_BYTES);
}

/* A folder occupies the second file's name. */
TEST(test_log_that_cannot_be_set_aside_goes_on)
{
	static char line[10001];
	struct series_log log;
	struct err err;
	unsigned lines = SERIES_LOG_BYTES / sizeof(line) + 10, found = 0;
	char *text;

	assert_int_equal(mkdir(old_path, 0777), 0);
	assert_int_equal(series_log_start(&log, path, &err), 0);
	for (unsigned i = 0; i < lines; i++) {
		snprintf(line, sizeof(line), "%09u %09950u", i, 0u);
		assert_int_equal(series_log_add(&log, NOON_MS, line, &err), 0);
	}
	text = content(path);
	for (char *at = text; at && *at; at = strchr(at, '\n') + 1)
		assert_int_equal(strtoul(at + 25, NULL, 10), found++);
	assert_int_equal(found, lines);
	free(text);
	assert_int_equal(rmdir(old_path), 0);
	/* Now the log can be renamed. */
	assert_int_equal(series_log_add(&log, NOON_MS, "last", &err), 0);
	text = content(path);
	assert_string_equal(text, "2023-11-14T22:13:20.123Z last\n");
	free(text);
}

TEST(test_losses_are_reported_once)
{
	struct series_log log;
	struct err err = {0};
	char *text;

	assert_int_equal(series_log_start(&log, path, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(series_log_add(&log, NOON_MS, "one", &err), -ERR_CREATE);
	assert_string_equal(err.place, path);
	assert_int_equal(series_log_add(&log, NOON_MS, "two", &err), 0);
	assert_int_equal(mkdir(dir, 0777), 0);
	assert_int_equal(series_log_add(&log, NOON_MS, "three", &err), 0);
	text = content(path); /* the log was created again */
	assert_string_equal(text, "2023-11-14T22:13:20.123Z three\n");
	free(text);
	assert_int_equal(series_log_add(&log, NOON_MS, "still three", &err), 0);
	text = content(path);
	assert_non_null(strstr(text, "Z three\n2023-11-14T22:13:20.123Z still three\n"));
	free(text);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(series_log_add(&log, NOON_MS, "four", &err), -ERR_CREATE);
	assert_int_equal(series_log_start(&log, path, &err), -ERR_CREATE);
	assert_int_equal(mkdir(dir, 0777), 0);
}

TEST(test_lines_of_several_processes_do_not_mix)
{
	enum { PROCESSES = 4, LINES = 800 };
	unsigned counts[PROCESSES] = {0};
	char *text;

	for (unsigned i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			struct series_log log;
			struct err err;
			char line[400];
			int rc = series_log_start(&log, path, &err);

			memset(line, 'a' + (int)i, sizeof(line) - 1);
			line[sizeof(line) - 1] = '\0';
			for (unsigned n = 0; !rc && n < LINES; n++)
				rc = series_log_add(&log, NOON_MS, line, &err);
			_exit(rc ? 1 : 0);
		}
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		text = content(i ? old_path : path);
		for (char *at = text; *at; at += 25 + 400) {
			unsigned who = (unsigned)(at[25] - 'a');

			assert_true(who < PROCESSES);
			assert_int_equal(strspn(at + 25, (char[]){at[25], '\0'}), 399);
			assert_int_equal(at[25 + 399], '\n');
			counts[who]++;
		}
		free(text);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		assert_int_equal(counts[i], LINES);
}

/* The disk became full in the middle of a line. */
TEST(test_torn_line_is_not_glued_to_next)
{
	struct series_log log;
	struct err err;
	FILE *torn;
	char *text;

	assert_int_equal(series_log_start(&log, path, &err), 0);
	torn = fopen(path, "wb");
	assert_non_null(torn);
	fputs("2023-11-14T22:13:20.123Z one\n2023-11", torn);
	assert_int_equal(fclose(torn), 0);
	assert_int_equal(series_log_add(&log, NOON_MS, "two", &err), 0);
	text = content(path);
	assert_string_equal(text, "2023-11-14T22:13:20.123Z one\n2023-11\n"
				  "2023-11-14T22:13:20.123Z two\n");
	free(text);
}
