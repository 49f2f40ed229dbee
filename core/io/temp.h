/* Temporary files of this process, in a private folder. Folder and files are removed together. */
#ifndef CORE_IO_TEMP_H
#define CORE_IO_TEMP_H

#include "core/base/err.h"

#define TEMP_FILES_MAX 256

/* Reserves a path that ends with `ending`. The caller then creates a file there. The path is valid
 * until temp_remove_all(). Returns 0 or -ERR_CREATE. */
int temp_path(const char **path, const char *ending, struct err *err);

/* Removes all temporary files, which must be closed, and their folder. An interrupt also does
 * this. */
void temp_remove_all(void);

#endif
