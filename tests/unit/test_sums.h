/* For tests that look into what hdiff reads. */
#ifndef TESTS_UNIT_TEST_SUMS_H
#define TESTS_UNIT_TEST_SUMS_H

#include "core/dump/source.h"
#include "diff/read/dump_sums.h"

/* Reads the dump at path as hdiff does: 0 or an error. */
static inline int read_sums(struct dump_sums *sums, const char *path, struct err *err)
{
	struct source *source;
	int rc = source_open(&source, path, err);

	if (rc)
		return rc;
	rc = sums_read(sums, path, source, err);
	source_close(source);
	return rc;
}

#endif
