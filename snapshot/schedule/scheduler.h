/*
 * The tasks of ours that Task Scheduler has: those in its folder \hsnap, each called as the image whose
 * processes it looks at. scheduler_posix.c refuses, for there is none.
 *
 * Names are those that task_name_check() lets pass; texts are UTF-8.
 */
#ifndef SNAPSHOT_SCHEDULE_SCHEDULER_H
#define SNAPSHOT_SCHEDULE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/memory.h"

/* Registers a task, which the system's account runs or a user without a password, as xml says, and looks whether the
 * scheduler has kept what it is to run; what the task may lack all the same is a line on standard error. 0, -ERR_TASK_EXISTS (unless it may_replace it), -ERR_ADMIN, -ERR_SYSTEM (under Wine:
 * nothing is left of it). */
int scheduler_add(
	const char *name, const char *xml, bool is_system, bool may_replace, struct err *err);

/* 0, -ERR_NO_TASK, -ERR_ADMIN, -ERR_SYSTEM. */
int scheduler_remove(const char *name, struct err *err);

/* Prints a table of all tasks; those that run anything but this hsnap as tasks do are marked. */
int scheduler_list(struct err *err);

/* The words with which the task calls this program, which come first; they stay until it ends. Whoever made the task may
 * have less rights than this user: it is -ERR_TASK unless it runs this very program with the arguments of a task. Also
 * what scheduler_remove() returns. */
int scheduler_arguments(const char *name, int *argc, char ***argv, struct err *err);

/* Each adds one text to an empty buf: path as a full one, the path of this program, who runs it (a SID). */
int scheduler_full_path(struct buf *full, const char *path, struct err *err);
int scheduler_program(struct buf *path, struct err *err);
int scheduler_user(struct buf *user, struct err *err);

/*
 * Looks whether a task will find its folder and its program, both full paths, and makes the folder and those above it
 * that are missing: for the system so that only administrators may change what is in them. Where every user may change
 * the folder, the program, or home, in which the program is, a line on standard error says so. 0, -ERR_USAGE (a drive
 * that tasks do not have), -ERR_OPEN, -ERR_CREATE.
 */
int scheduler_places(
	const char *folder, const char *program, const char *home, bool is_system, struct err *err);

#endif
