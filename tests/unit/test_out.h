/*
 * A folder for each test of core/out, and the file in it that most of them write.
 */
#ifndef TESTS_UNIT_TEST_OUT_H
#define TESTS_UNIT_TEST_OUT_H

#include "tests/unit/t.h"

#include <dirent.h>
#include <unistd.h>

static char folder[200], path[256];

static inline int make_folder(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/test_out.XXXXXX", base ? base : P_tmpdir);
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/out.txt", folder);
	return 0;
}

static inline unsigned count_files(void)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static inline int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder); /* fails when something was left */
}

static inline void spew(const char *text)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static inline char *slurp(size_t *len)
{
	FILE *file = fopen(path, "rb");
	char *text;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*len = (size_t)ftell(file);
	rewind(file);
	text = calloc(1, *len + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, *len, file), *len);
	assert_int_equal(fclose(file), 0);
	return text;
}

static inline void assert_file_is(const char *wanted)
{
	size_t len;
	char *text = slurp(&len);

	assert_string_equal(text, wanted);
	assert_int_equal(len, strlen(wanted));
	free(text);
}

#undef TEST_AROUND
#define TEST_AROUND make_folder, remove_folder

#endif
