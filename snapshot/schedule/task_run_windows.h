/* Doing what a task does, here and now. */
#ifndef SNAPSHOT_TASK_RUN_WINDOWS_H
#define SNAPSHOT_TASK_RUN_WINDOWS_H

#include "snapshot/schedule/task/task_read.h"

/* Starts its program with its arguments in its folder, with our output and no input, and waits: 0 and its
 * exit status, -ERR_START or -ERR_NOMEM. Ctrl-C is the program's business. */
int task_run(const struct task_read *task, uint32_t *exit_status, struct err *err);

#endif
