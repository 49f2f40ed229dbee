/*
 * "FROM=TO": paths that begin with FROM are looked for at TO. FROM is compared without regard to case
 * (of ASCII letters) or to which slash it is, and ends where a component ends; a slash at its end means
 * nothing. The first "=" parts the two.
 */
#ifndef SYMBOLIZE_PATH_MAP_H
#define SYMBOLIZE_PATH_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct path_map {
	const char *from, *to; /* in the text it was made of; from does not end in NUL */
	size_t from_len;
};

/* Fills *map, which borrows text. 0 or -ERR_USAGE. */
int path_map_parse(struct path_map *map, const char *text, struct err *err);

/* What is left of path behind FROM, without slashes before it ("" when it is FROM itself), or NULL: the
 * map is not about it. */
const char *path_map_rest(const struct path_map *map, const char *path);

#endif
