/*
 * hsnap's tasks in Task Scheduler. They are in the folder \hsnap. Each task is named after the
 * image whose processes it captures. scheduler_posix.c refuses everything that requires Task
 * Scheduler. Names must have passed task_name_check(); strings are UTF-8.
 */
#ifndef SNAPSHOT_SCHEDULE_SCHEDULER_H
#define SNAPSHOT_SCHEDULE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/memory.h"

/* Registers a task as described by the XML. The task runs under the system's account, or as a user
 * without a password. Checks that the scheduler has stored the program to run. Prints a warning to
 * standard error if the registered task still lacks something. Returns 0, -ERR_TASK_EXISTS (unless
 * `may_replace` is set), -ERR_ADMIN, or -ERR_SYSTEM (under Wine; the task is then removed). */
int scheduler_add(
	const char *name, const char *xml, bool is_system, bool may_replace, struct err *err);

/* Removes a task. Returns 0, -ERR_NO_TASK, -ERR_ADMIN, or -ERR_SYSTEM. */
int scheduler_remove(const char *name, struct err *err);

/* Add one string to an empty buf: the full form of `path`, the path of this program, or the current
 * user (a SID). */
int scheduler_full_path(struct buf *full, const char *path, struct err *err);
int scheduler_program(struct buf *path, struct err *err);
int scheduler_user(struct buf *user, struct err *err);

/*
 * Checks that a task will find its folder and its program; both are full paths. Creates the folder
 * and its missing parents. If the task runs as the system, only administrators get rights for these
 * folders. Prints a warning on standard error if every user may change the folder, the program, or
 * home (the program's folder). Returns 0, -ERR_USAGE (a drive that tasks do not have), -ERR_OPEN,
 * or -ERR_CREATE. */
int scheduler_places(
	const char *folder, const char *program, const char *home, bool is_system, struct err *err);

#endif
