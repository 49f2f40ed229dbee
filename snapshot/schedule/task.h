/*
 * A task as text, identical on every system: the request of "hsnap schedule add", the XML that Task
 * Scheduler accepts, and the rows that "hsnap schedule list" prints. All texts are UTF-8. */
#ifndef SNAPSHOT_SCHEDULE_TASK_H
#define SNAPSHOT_SCHEDULE_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/memory.h"

/* From a request to the plan of a task. */

#define TASK_KEEP_DEFAULT "100"

/* Request for a task. Texts belong to the caller. */
struct task_request {
	const char *name; /* of the image and of the task */
	const char *every; /* interval, in the form of core/base/parse.h */
	const char *keep, *max_bytes; /* NULL: TASK_KEEP_DEFAULT, and no limit */
	const char *folder; /* full path of the folder for dumps and log */
	const char *program; /* full path of hsnap.exe */
	const char *limit; /* time limit; NULL: an hour */
	/* "2026-11-20T10:00", with or without seconds; followed by Z: UTC, otherwise local time */
	const char *start;
	const char *user; /* a SID, or DOMAIN\NAME; NULL: the system */
	bool at_boot, is_full, is_packed;
};

/* user and keep belong to the request. */
struct task_plan {
	struct buf program, home; /* home: the program's folder, which is its working directory */
	struct buf folder, arguments, description, start;
	const char *user, *keep;
	int64_t every_ms, limit_ms; /* whole minutes */
	bool at_boot;
};

/* Releases a plan that was made or is zeroed. */
void task_plan_release(struct task_plan *plan);

/* Fills a zeroed plan. Returns 0, or -ERR_USAGE or -ERR_IMAGE_NAME for an invalid request. */
int task_plan_make(struct task_plan *plan, const struct task_request *request, struct err *err);

/* Checks the name of a task, without folders. Returns 0, or -ERR_IMAGE_NAME if it is not possible
 * for a task. */
int task_name_check(const char *name, struct err *err);

/*
 * Checks that path is a full path, "C:\..." or "\\server\share...", without characters that names
 * cannot have. Refuses '%' and "$(", which Task Scheduler may replace ("ExecAction.Path property",
 * "RunEx method": environment variables, and $(Arg0)), and paths that are too long for its schema.
 * Returns 0 or -ERR_USAGE. */
int task_path_check(const char *path, struct err *err);

/*
 * Returns true if line is exactly the arguments of a plan for the image, except for the case of the
 * image's name. So hsnap does what tasks do and nothing more. Then the empty folder and keep are
 * filled. */
bool task_arguments_read(const char *line, const char *image, struct buf *folder, struct buf *keep);

/*
 * A task in the form that Task Scheduler accepts: XML of the schema's version 1.2, which Windows 7
 * and later support. */

/* Adds the whole document as UTF-8, with lines that end in LF. Its first line names UTF-16, in
 * which it is stored. Returns 0, or -ERR_USAGE for a text that is not UTF-8 or has control
 * characters. */
int task_xml_add(struct buf *xml, const struct task_plan *plan, struct err *err);

/* Adds UTF-8 text as UTF-16, little-endian, with a byte order mark and lines that end in CRLF: the
 * form that schtasks /XML accepts. */
void task_xml_utf16(struct buf *bytes, const char *text);

/* Output of "hsnap schedule list". */

#define TASK_TIME_BYTES 24

/* A task as the scheduler describes it. Its texts are untrusted. */
struct task_listed {
	const char *name;
	const char *program, *arguments; /* program NULL: it does not run a single program */
	bool runs_hsnap; /* program is this hsnap */
	char every[TASK_TIME_BYTES]; /* "1h30m"; empty: unknown */
	char last[TASK_TIME_BYTES], next[TASK_TIME_BYTES]; /* local times; empty: unknown */
	/* Value of enumeration TASK_STATE, as numbered in "TASK_STATE", Microsoft Learn. */
	unsigned state;
	bool has_result;
	uint32_t result; /* of its last run: an exit status, or a code of the scheduler */
};

/* Converts the only interval in a task's XML, "PT1H30M", to hsnap's form, "1h30m". The result is
 * empty if there is not exactly one interval. */
void task_every_text(const char *xml, char text[TASK_TIME_BYTES]);

void task_table_head(FILE *to);

/* Prints a line of the table. Unknown columns are "?". For a task that does not run this hsnap with
 * the arguments of a task, the program or arguments replace the folder. */
void task_table_row(FILE *to, const struct task_listed *task);

#endif
