/* A folder for each test of core/out, and the path of the tests' output file. */
#ifndef TESTS_UNIT_TEST_OUT_H
#define TESTS_UNIT_TEST_OUT_H

#include "tests/unit/scratch.h"

#include <dirent.h>

static char path[340];

static inline int make_folder(void **state)
{
	int rc = scratch_begin(state);

	snprintf(path, sizeof(path), "%s/out.txt", dir);
	return rc;
}

static inline unsigned count_files(void)
{
	DIR *folder = opendir(dir);
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 2;
}

static inline int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir); /* fails if the folder contains a file */
}

static inline void spew(const char *text)
{
	file_write(path, text, strlen(text));
}

static inline void assert_file_is(const char *wanted)
{
	size_t len;
	char *text = file_get(path, &len);

	assert_string_equal(text, wanted);
	assert_int_equal(len, strlen(wanted));
	free(text);
}

#undef TEST_AROUND
#define TEST_AROUND make_folder, remove_folder

#endif
