/* Doing what a task does, here and now. */
#ifndef SNAPSHOT_TASK_RUN_WINDOWS_H
#define SNAPSHOT_TASK_RUN_WINDOWS_H

#include <stdint.h>

#include "core/err.h"

/* Starts the program, a full path, with the arguments (NULL: none) in the folder that it is in, with our output and no
 * input, and waits: 0 and its exit status, -ERR_START or -ERR_NOMEM. Ctrl-C is the program's business. */
int task_run(const char *program, const char *arguments, uint32_t *exit_status, struct err *err);

#endif
