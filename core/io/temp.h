/* Temporary files of this process, in a private folder that is removed with them. */
#ifndef CORE_IO_TEMP_H
#define CORE_IO_TEMP_H

#include "core/base/err.h"

#define TEMP_FILES_MAX 256

/* Reserves a path with that ending, for a file that the caller creates. The path is valid until
 * temp_remove_all(). Returns 0 or -ERR_CREATE. */
int temp_path(const char **path, const char *ending, struct err *err);

/* Removes the files, which must be closed, and the folder; also called by an interrupt. */
void temp_remove_all(void);

#endif
