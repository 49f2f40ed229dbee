/* The registry's part of snapshot/ifeo/ifeo.h. */
#ifndef SNAPSHOT_IFEO_IFEO_WINDOWS_H
#define SNAPSHOT_IFEO_IFEO_WINDOWS_H

#include "snapshot/ifeo/ifeo.h"

/* Calls for the registry of this machine. Errors are -ERR_ADMIN (no right to change it), -ERR_SYSTEM,
 * -ERR_BUSY (another hsnap is at it for seconds), -ERR_NOMEM. */
struct ifeo_calls ifeo_registry(void);

/* The names of all images that have ust on in some view, each once and in order, in *names, an array
 * for ifeo_names_free(). 0, -ERR_SYSTEM, -ERR_NOMEM. */
int ifeo_all_ust(char ***names, size_t *count, struct err *err);
void ifeo_names_free(char **names, size_t count);

/* Says on standard error which images have ust on, if any. */
void ifeo_remind(void);

#endif
