/*
 * A task as text, identical on every system: the request from "hsnap schedule add" and the XML
 * for Task Scheduler. All strings are UTF-8. */
#ifndef SNAPSHOT_SCHEDULE_TASK_H
#define SNAPSHOT_SCHEDULE_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"

/* Requests for tasks, and the plans that are made from requests. */

#define TASK_KEEP_DEFAULT "100"

/* Request for a task. The caller owns the strings. */
struct task_request {
	const char *name; /* name of the image and of the task */
	const char *every; /* interval, in the format of core/base/parse.h */
	const char *keep, *max_bytes; /* NULL: TASK_KEEP_DEFAULT, or no limit for max_bytes */
	const char *folder; /* full path of the folder for the dumps and the log */
	const char *program; /* full path of hsnap.exe */
	const char *limit; /* time limit; NULL: an hour */
	/* "2026-11-20T10:00", with or without seconds; UTC if "Z" follows, otherwise local time */
	const char *start;
	const char *user; /* a SID, or DOMAIN\NAME; NULL: the system */
	bool at_boot, is_full, is_packed;
};

/* Plan of a task. `user` and `keep` belong to the request. */
struct task_plan {
	/* `home` is the program's folder, which is used as its working directory */
	struct buf program, home;
	struct buf folder, arguments, description, start;
	const char *user, *keep;
	int64_t every_ms, limit_ms; /* whole minutes */
	bool at_boot;
};

/* Releases a plan that is zeroed or was filled by task_plan_make(). */
void task_plan_release(struct task_plan *plan);

/* Fills a zeroed plan from a request. Returns 0, or -ERR_USAGE or -ERR_IMAGE_NAME for an invalid
 * request. */
int task_plan_make(struct task_plan *plan, const struct task_request *request, struct err *err);

/* Checks the name of a task, without folders. Returns 0, or -ERR_IMAGE_NAME if no task can have
 * this name. */
int task_name_check(const char *name, struct err *err);

/*
 * A task in the format that Task Scheduler accepts: XML of version 1.2 of the schema, which Windows
 * 7 and later support. */

/* Adds the whole document as UTF-8 with LF line ends. Its first line specifies UTF-16, because it
 * is stored in UTF-16. Returns 0, or -ERR_USAGE for a string that is not UTF-8 or contains control
 * characters. */
int task_xml_add(struct buf *xml, const struct task_plan *plan, struct err *err);

/* Adds UTF-8 text as little-endian UTF-16, with a byte order mark and CRLF line ends, which
 * schtasks /XML accepts. */
void task_xml_utf16(struct buf *bytes, const char *text);

#endif
