/* Temporary files of this program: in a folder of its own, which nobody else may look into, and which goes with it. */
#ifndef CORE_IO_TEMP_H
#define CORE_IO_TEMP_H

#include "core/base/err.h"

#define TEMP_FILES_MAX 256

/* The path of a file to be made, with that ending: 0; -ERR_CREATE. It is valid until temp_remove_all(). */
int temp_path(const char **path, const char *ending, struct err *err);

/* Removes the files, which are closed, and the folder; also what an interrupt does. */
void temp_remove_all(void);

#endif
