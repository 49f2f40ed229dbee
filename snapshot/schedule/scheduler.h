/*
 * The tasks of ours that Task Scheduler has: those in its folder \hsnap, each called as the image whose
 * processes it looks at. scheduler_windows.c; scheduler_posix.c refuses, for there is none.
 *
 * Names are those that task_name_check() lets pass.
 */
#ifndef SNAPSHOT_SCHEDULER_H
#define SNAPSHOT_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

/* What a task's XML does not say to whoever registers it. */
struct scheduler_adding {
	const char *name, *xml; /* UTF-8 */
	bool is_system; /* the system's account runs it, else a user without a password */
	bool may_replace; /* one that is there */
};

/* Registers a task, and looks whether the scheduler has kept what it is to run. 0,
 * -ERR_TASK_EXISTS (unless it may replace one), -ERR_ADMIN, -ERR_SYSTEM, -ERR_NOMEM. */
int scheduler_add(const struct scheduler_adding *asked, struct err *err);

/* 0, -ERR_NO_TASK, -ERR_ADMIN, -ERR_SYSTEM, -ERR_NOMEM. */
int scheduler_remove(const char *name, struct err *err);

/* Prints a table of all tasks; what of them cannot be read is a line on standard error, and -ERR_TASK in
 * the end. */
int scheduler_list(struct err *err);

/* Starts what the task runs, once, as this user and without standard input, and waits for its end. Besides
 * what scheduler_remove() returns -ERR_TASK and -ERR_START. */
int scheduler_run(const char *name, uint32_t *exit_status, struct err *err);

/* Each adds one text to an empty buf: path as a full one, the path of this program, who runs it (a SID). */
int scheduler_full_path(struct buf *full, const char *path, struct err *err);
int scheduler_program(struct buf *path, struct err *err);
int scheduler_user(struct buf *user, struct err *err);

/* Makes the folder and those above it that are missing: 0, -ERR_CREATE, -ERR_NOMEM. */
int scheduler_make_folder(const char *path, struct err *err);

#endif
