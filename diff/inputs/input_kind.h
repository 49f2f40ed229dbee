/* What a file is, by how it starts. */
#ifndef DIFF_INPUT_KIND_H
#define DIFF_INPUT_KIND_H

#include "core/source.h"
#include "diff/read/comparison_find.h"

/* Finds out what the source of path is, and words for a refusal or NULL. 0; -ERR_EMPTY, -ERR_READ,
 * -ERR_NOMEM. */
int input_kind(const char *path, struct source *source, enum file_kind *kind, const char **words,
	struct err *err);

/* Whether it is a log that hsnap wrote: the first line is a time and some words. */
bool input_is_log(struct source *source);

#endif
