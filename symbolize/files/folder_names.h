/* What folders hold, to find names without regard to the case of ASCII letters. A folder is read when
 * first asked about. */
#ifndef SYMBOLIZE_FOLDER_NAMES_H
#define SYMBOLIZE_FOLDER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buf.h"

/* So many names are kept in all, for about 100 bytes each. What did not fit is not found. */
#define FOLDER_NAMES_MAX 1000000

struct folder_names;
struct folder_names *folder_names_new(size_t names_max); /* NULL: out of memory */
void folder_names_free(struct folder_names *names);

/* Returns 1 and *spelling: what name is called in the folder, of several the first in order of bytes;
 * 0: there is none; or -ERR_NOMEM. spelling lives as long as names. */
int folder_names_find(
	struct folder_names *names, const char *folder, const char *name, const char **spelling);

/* True when folder was read before, wholly, and holds no such name in any case. Nothing is read. */
bool folder_names_lack(struct folder_names *names, const char *folder, const char *name);

#endif
