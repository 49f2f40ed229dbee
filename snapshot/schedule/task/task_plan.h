/*
 * From what "hsnap schedule add" is asked for to the task that does it. Text only: the same anywhere.
 */
#ifndef SNAPSHOT_TASK_PLAN_H
#define SNAPSHOT_TASK_PLAN_H

#include "snapshot/schedule/task/task_xml.h"

#define TASK_KEEP_DEFAULT "100"

/* Texts are UTF-8 and the caller's. */
struct task_request {
	const char *name; /* the image's, and the task's */
	const char *every; /* as core/duration.h reads it */
	const char *keep, *max_bytes; /* NULL: TASK_KEEP_DEFAULT, and no limit */
	const char *folder; /* full path: where dumps and log go */
	const char *program; /* full path of hsnap.exe */
	const char *limit; /* NULL: an hour */
	const char *start; /* a time, as in task_xml.h, without seconds too */
	const char *user; /* NULL: the system */
	bool at_boot, is_full, is_packed;
};

struct task_plan {
	struct scheduled_task task; /* its texts are those below and the request's */
	struct buf program, home, folder, arguments, description,
		start; /* home: the program's folder */
	const char *keep; /* the number of files, as text */
};

void task_plan_init(struct task_plan *plan);
void task_plan_release(struct task_plan *plan);

/* 0, -ERR_NOMEM, or what is wrong with the request: -ERR_USAGE, -ERR_IMAGE_NAME. */
int task_plan_make(struct task_plan *plan, const struct task_request *request, struct err *err);

/* What the task is called, without folders: 0, or -ERR_IMAGE_NAME when no task has such a name. */
int task_name_check(const char *name, struct err *err);

#endif
