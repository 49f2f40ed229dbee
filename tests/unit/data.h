/* Test data of other projects, which this repository may not contain. Tests read the data from the
 * folder HSNAP_TEST_DATA, by default ../shared/data next to the checkout. They skip if the folder
 * is missing. If HSNAP_TEST_DATA is set, a missing file is a failure. Scripts use data_file() of
 * tests/lib/Hunt.pm. */
#ifndef TESTS_UNIT_DATA_H
#define TESTS_UNIT_DATA_H

#include "tests/unit/t.h"

#include <limits.h>
#include <unistd.h>

static char data_folder[PATH_MAX];

/* Runs before any test changes the working folder. */
__attribute__((constructor)) static void data_find_folder(void)
{
	const char *wanted = getenv("HSNAP_TEST_DATA");

	if (!realpath(wanted && *wanted ? wanted : "../shared/data", data_folder))
		snprintf(data_folder, sizeof(data_folder), "%s", wanted ? wanted : "");
}

/* Returns the path of a data file, valid until the next call. Skips the calling test if the file is
 * missing. Call this function before the test allocates memory or opens files: a skipped test frees
 * nothing. */
static inline const char *data_file(const char *name)
{
	static char path[PATH_MAX + 300];
	const char *wanted = getenv("HSNAP_TEST_DATA");

	snprintf(path, sizeof(path), "%s/%s", data_folder, name);
	if (access(path, R_OK)) {
		if (wanted && *wanted)
			fail_msg("HSNAP_TEST_DATA: no %s in %s", name, data_folder);
		print_message("skipped: no %s: see tests/unit/data.h\n", name);
		skip();
	}
	return path;
}

#endif
