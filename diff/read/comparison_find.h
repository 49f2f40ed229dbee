/*
 * What a file is: a printed comparison, a dump, or a report of hdiff's that cannot be read back.
 */
#ifndef DIFF_COMPARISON_FIND_H
#define DIFF_COMPARISON_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/source.h"

enum file_kind {
	FILE_UNKNOWN, /* nothing but what may stand before either */
	FILE_COMPARISON, /* its own header, a row or a total line comes before any sign of a dump */
	FILE_DUMP,
};

/* What a text is that starts like this. */
enum file_kind file_kind_of(const char *bytes, size_t len);

/* The same for the first 16 MiB of a source, which is read up to the first sign. Fills kind and
 * returns 0, or -ERR_READ or -ERR_NOMEM; what is packed and ends in the middle is judged by what is
 * there. */
int file_kind_find(enum file_kind *kind, struct source *source, struct err *err);

/* A sentence when a text that starts like this is a report of hdiff's in a form that is not read,
 * else NULL. */
const char *report_is(const char *bytes, size_t len);

#endif
