/*
 * A task as text, the same on every system: what "hsnap schedule add" is asked for, the XML that Task Scheduler
 * takes, and the rows that "hsnap schedule list" prints. All texts are UTF-8.
 */
#ifndef SNAPSHOT_SCHEDULE_TASK_H
#define SNAPSHOT_SCHEDULE_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/memory.h"

/*
 * From what is asked for to the task that does it.
 */

#define TASK_KEEP_DEFAULT "100"

/* Texts are the caller's. */
struct task_request {
	const char *name; /* the image's, and the task's */
	const char *every; /* as core/base/parse.h reads it */
	const char *keep, *max_bytes; /* NULL: TASK_KEEP_DEFAULT, and no limit */
	const char *folder; /* full path: where dumps and log go */
	const char *program; /* full path of hsnap.exe */
	const char *limit; /* NULL: an hour */
	const char *
		start; /* "2026-11-20T10:00", with or without seconds; Z behind it: UTC, else local time */
	const char *user; /* a SID, or DOMAIN\NAME; NULL: the system */
	bool at_boot, is_full, is_packed;
};

/* user and keep are the request's. */
struct task_plan {
	struct buf program, home; /* home: the program's folder, in which it runs */
	struct buf folder, arguments, description, start;
	const char *user, *keep;
	int64_t every_ms, limit_ms; /* whole minutes */
	bool at_boot;
};

/* Of one that was made, or is zeroed. */
void task_plan_release(struct task_plan *plan);

/* Fills the zeroed plan: 0, or what is wrong with the request: -ERR_USAGE, -ERR_IMAGE_NAME. */
int task_plan_make(struct task_plan *plan, const struct task_request *request, struct err *err);

/* What the task is called, without folders: 0, or -ERR_IMAGE_NAME when no task has such a name. */
int task_name_check(const char *name, struct err *err);

/*
 * Whether path is a full one, "C:\..." or "\\server\share...", without characters that names do not have. '%' and
 * "$(" are refused, in place of which Task Scheduler may put something else ("ExecAction.Path property", "RunEx
 * method": environment variables, and $(Arg0)), and so is what its schema has no room for. 0 or -ERR_USAGE.
 */
int task_path_check(const char *path, struct err *err);

/*
 * Whether line is the arguments that a plan for the image has, letter by letter but for the case of the image's name,
 * so that hsnap does with it what tasks do and nothing else. Then the empty folder and keep have theirs.
 */
bool task_arguments_read(const char *line, const char *image, struct buf *folder, struct buf *keep);

/*
 * A task as Task Scheduler takes it: XML of the schema's version 1.2, which Windows 7 and later know.
 */

/* Adds the whole document as UTF-8, lines ending in LF; its first line says UTF-16, the form in which it is
 * stored. 0, or -ERR_USAGE: a text that is no UTF-8 or has control characters. */
int task_xml_add(struct buf *xml, const struct task_plan *plan, struct err *err);

/* Adds UTF-8 text as UTF-16, little-endian, behind a byte order mark, with lines that end in CRLF: the bytes
 * of the file that schtasks /XML takes. */
void task_xml_utf16(struct buf *bytes, const char *text);

/*
 * What "hsnap schedule list" prints.
 */

#define TASK_TIME_BYTES 24

/* What the scheduler tells of a task: anything may be in its texts. */
struct task_listed {
	const char *name;
	const char *program, *arguments; /* program NULL: it does not run one program */
	bool runs_hsnap; /* program is this hsnap */
	char every[TASK_TIME_BYTES]; /* as "1h30m"; empty: not known */
	char last[TASK_TIME_BYTES], next[TASK_TIME_BYTES]; /* local times; empty: not known */
	unsigned
		state; /* of enumeration TASK_STATE, as "TASK_STATE", Microsoft Learn, numbers it */
	bool has_result;
	uint32_t result; /* of its last run: an exit status, or one of the scheduler's own */
};

/* The only interval in a task's XML, "PT1H30M", as we write it, "1h30m"; empty: there is none, or more than one. */
void task_every_text(const char *xml, char text[TASK_TIME_BYTES]);

void task_table_head(FILE *to);

/* A line of the table. Columns that are not known are "?"; a task that does not run this hsnap, or not as
 * tasks do, has words in its folder's place. */
void task_table_row(FILE *to, const struct task_listed *task);

#endif
