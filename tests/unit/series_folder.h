/* A folder with files of a series in it, for the tests of series_files.c. */
#ifndef TESTS_SERIES_FOLDER_H
#define TESTS_SERIES_FOLDER_H

#include "tests/unit/t.h"

#include <unistd.h>

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

static inline const char *in_scene(const char *name)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/%s", scene_folder, name);
	return path;
}

static inline void put_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

/* A dump of so many bytes, 300 or more. */
static inline void put_dump_at(
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
	put_text(path, text);
}

static inline void put_dump(
	const char *name, uint32_t pid, int64_t start_ms, int64_t time_ms, size_t size)
{
	put_dump_at(in_scene(name), pid, start_ms, time_ms, size);
}

/* The names of the folder, one behind the other with a blank behind each. */
static inline void check_files(const char *expected)
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

static inline struct series_files *new_packed_series(
	const char *pattern, struct series_limits limits, bool is_packed)
{
	const struct series_plan plan = {
		.out = in_scene(pattern), .limits = limits, .is_packed = is_packed};
	struct err err = {0};
	struct series_files *files =
		series_files_new(&plan, "C:\\x\\my app.exe", PID, START_MS, &err);

	assert_int_equal(err.code, 0);
	assert_non_null(files);
	return files;
}

/* Of this scene's process, with a pattern in this scene's folder. */
static inline struct series_files *new_series(const char *pattern, struct series_limits limits)
{
	return new_packed_series(pattern, limits, false);
}

static inline void check_name(
	struct series_files *files, int64_t time_ms, unsigned tries, const char *expected)
{
	struct err err = {0};
	struct buf path;

	buf_init(&path);
	assert_int_equal(series_files_name(files, time_ms, tries, &path, &err), 0);
	assert_string_equal(path.data, in_scene(expected));
	buf_release(&path);
}

/* The series has written its next dump, under the first name that is free: 0 or the trouble with others. */
static inline int write_next_of(
	struct series_files *files, int64_t time_ms, size_t size, struct err *err)
{
	struct buf path;
	unsigned tries = 0;
	int rc;

	buf_init(&path);
	do
		assert_int_equal(series_files_name(files, time_ms, tries++, &path, err), 0);
	while (!access(path.data, F_OK));
	put_dump_at(path.data, PID, START_MS, time_ms, size);
	rc = series_files_written(files, path.data, err);
	buf_release(&path);
	return rc;
}

static inline void write_next(struct series_files *files, int64_t time_ms, size_t size)
{
	struct err err = {0};

	assert_int_equal(write_next_of(files, time_ms, size, &err), 0);
}

static inline int empty_scene(void **state)
{
	struct folder_list list;
	int rc = folder_list_read(scene_folder, &list, NULL);

	(void)state;
	for (size_t i = 0; !rc && i < list.count; i++)
		rc = remove(in_scene(list.entries[i].name));
	if (!rc)
		folder_list_release(&list);
	return rc;
}

static inline int make_scene(void **state)
{
	(void)state;
	return mkdtemp(scene_folder) ? 0 : -1;
}

static inline int remove_scene(void **state)
{
	(void)state;
	return rmdir(scene_folder);
}

#endif
