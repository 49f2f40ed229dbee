/* A command line taken apart into words, as Windows' programs read theirs. */
#ifndef SNAPSHOT_SCHEDULE_TASK_H
#define SNAPSHOT_SCHEDULE_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/memory.h"

/*
 * The next word of *line, which moves behind it, in place of what word held: 1, 0 when none is left, or
 * -ERR_NOMEM. By the rules of "Parsing C command-line arguments", Microsoft Learn: backslashes before a
 * quote count half, and an odd one makes the quote a character; a quote that is missing ends with the line.
 */
int task_word(const char **line, struct buf *word);

/* Sets *value (emptied first; data may be NULL) to the word behind the first one that is name: 1, 0 when
 * there is none, or -ERR_NOMEM. */
int task_word_after(const char *line, const char *name, struct buf *value);

/* Spans of time as XML writes them: "PT30M", "P1DT12H". */

/* Adds ms, at least 0, of which what is left of a second is dropped: 0 or -ERR_NOMEM. */
int iso_duration_add(struct buf *text, int64_t ms);

/*
 * Reads days, hours, minutes and seconds, each once at most and in this order: 0 and *ms, or
 * -ERR_USAGE. Years, months and fractions are refused: the first two have no length of their own.
 */
int iso_duration_parse(const char *text, int64_t *ms);

/* Paths of Windows as text, so that a task can be written anywhere. */

/*
 * Whether path, UTF-8, is a full one that means the same to Task Scheduler as to everybody: "C:\..." or
 * "\\server\share...", with nothing that names do not have, none of them empty, a device's, or with
 * a dot or a blank at its end (there is no ".." then). '%' and "$(" are refused, in place of which Task
 * Scheduler may put something else ("ExecAction.Path property", "RunEx method": environment variables, and
 * $(Arg0)), and so is what it has no room for (TASK_PATH_UNITS of task_xml.h). 0 or -ERR_USAGE.
 */
int task_path_check(const char *path, struct err *err);

/*
 * What a task of ours says that it runs, read from its XML, which anybody with the rights may have changed.
 */

struct task_read {
	struct buf program; /* the command, without quotes around it */
	struct buf arguments, folder; /* data may be NULL: there are none */
	int64_t every_ms; /* 0: not said, or not in one way */
};

void task_read_init(struct task_read *task);
void task_read_release(struct task_read *task);

/*
 * Reads a whole document: UTF-16 behind a byte order mark, or UTF-8 with or without one. A task that runs
 * anything but one program, a command that names none by its full path, and a text that is there twice are
 * refused, as is a document that is longer than TASK_XML_MAX_BYTES of UTF-8 (task_xml.h). 0,
 * -ERR_TASK, or -ERR_NOMEM; place is what errors name.
 */
int task_read(
	struct task_read *task, const void *bytes, size_t len, const char *place, struct err *err);

/* What "hsnap schedule list" prints. */

#define TASK_TIME_BYTES 24

/* What the scheduler tells of a task. */
struct task_state {
	char last[TASK_TIME_BYTES], next[TASK_TIME_BYTES]; /* local times; empty: it does not say */
	unsigned kind; /* of enumeration TASK_STATE, as "TASK_STATE", Microsoft Learn, numbers it */
	bool has_result;
	uint32_t result; /* of its last run: an exit status, or one of the scheduler's own */
};

void task_table_head(FILE *to);

/* A line of the table. Columns that are not known are "?"; a task that does not run this hsnap, or not as
 * tasks do, has words in its folder's place. 0 or -ERR_NOMEM. */
int task_table_row(FILE *to, const char *name, const struct task_read *task, bool runs_hsnap,
	const struct task_state *state);

/* The words for a result: a number, or what the scheduler's own stand for. Returns text. */
const char *task_result_text(uint32_t result, char text[TASK_TIME_BYTES]);

/* The command line that a task's hsnap gets: written, and known again. */

/* Texts are UTF-8 and the caller's. */
struct task_arguments {
	const char *name; /* the image's */
	const char *folder; /* full path: where dumps and log go */
	const char *keep, *max_bytes; /* the second may be NULL */
	bool is_full, is_packed;
};

/* Adds them to an empty line: 0 or -ERR_NOMEM. */
int task_arguments_add(struct buf *line, const struct task_arguments *arguments);

/*
 * Whether line is what task_arguments_add() writes for the image, letter by letter but for the case of the
 * image's, so that hsnap does with it what tasks do and nothing else: 1, and folder and keep, which are
 * emptied first, have theirs; 0, when it is any other line; -ERR_NOMEM.
 */
int task_arguments_read(const char *line, const char *image, struct buf *folder, struct buf *keep);

/*
 * A task as Task Scheduler takes it: XML of the schema's version 1.2, which Windows 7 and later know.
 *
 * Elements, their order and their types are those of Microsoft's documentation "Task Scheduler Schema",
 * pages "Task Scheduler Schema Elements", "taskType Complex Type", "triggerBaseType Complex Type" (a
 * sequence: StartBoundary before Repetition), "repetitionType Complex Type" (Interval from PT1M to P31D),
 * "principalType Complex Type", "settingsType Complex Type" and "execActionType Complex Type"; what a
 * priority means is on the page "TaskSettings.Priority property". tests/schedule/task.xsd holds the same.
 */

/* All texts are UTF-8 and the caller's. */
struct scheduled_task {
	const char *description;
	const char *program; /* full path of the file to run */
	const char *arguments; /* a command line without the program */
	const char *folder; /* full path of the folder to run it in */
	const char *user; /* NULL: the system's own account; else a SID, or DOMAIN\NAME */
	const char
		*start; /* the first run: "2026-11-20T10:00:00", local time, or with Z behind UTC */
	int64_t every_ms; /* TASK_EVERY_MIN_MS to _MAX_MS */
	int64_t limit_ms; /* a run that takes longer is ended */
	bool at_boot; /* run it also a minute after the system has started */
};

#define TASK_EVERY_MIN_MS INT64_C(60000)
#define TASK_EVERY_MAX_MS (31 * INT64_C(86400000))

/* The schema's own limit for program and folder, in UTF-16 units; the quotes around the program count. */
#define TASK_PATH_UNITS 260

#define TASK_XML_MAX_BYTES ((size_t)256 << 10)

/* Adds the whole document as UTF-8, lines ending in LF; its first line says UTF-16, the form in which it is
 * stored. 0, -ERR_NOMEM, or -ERR_USAGE: a text that is no UTF-8 or has control characters. */
int task_xml_add(struct buf *xml, const struct scheduled_task *task, struct err *err);

/* Adds UTF-8 text as UTF-16, little-endian, behind a byte order mark, with lines that end in CRLF: the bytes
 * of the file that schtasks /XML takes. 0, -ERR_NOMEM, or -ERR_USAGE: text is not UTF-8. */
int task_xml_utf16(struct buf *bytes, const char *text);

/*
 * From what "hsnap schedule add" is asked for to the task that does it. Text only: the same anywhere.
 */

#define TASK_KEEP_DEFAULT "100"

/* Texts are UTF-8 and the caller's. */
struct task_request {
	const char *name; /* the image's, and the task's */
	const char *every; /* as core/base/parse.h reads it */
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

/*
 * XML as tasks are written in, taken apart strictly: elements, attributes (passed over), text with the
 * five entities and numbers of characters, comments and instructions (passed over). What tasks do not
 * have is an error: document types with their entities, CDATA, and nesting deeper than TASK_DEPTH.
 */

#define TASK_DEPTH 16

enum task_event {
	TASK_END, /* of the document */
	TASK_OPEN, /* an element begins: the innermost of names */
	TASK_CLOSE, /* the innermost one ends; it leaves names with the next call */
	TASK_TEXT, /* what stands in the innermost one, up to the next tag */
};

struct task_scan {
	const char *at; /* ends in NUL */
	struct {
		const char *start; /* in the text: without a NUL behind */
		size_t len;
	} names[TASK_DEPTH]; /* the elements we are in */
	size_t depth;
	bool is_closing, is_closed_at_once, is_done;
	struct buf text; /* of a TASK_TEXT */
};

/* text, UTF-8, is the caller's and stays. */
void task_scan_init(struct task_scan *scan, const char *text);
void task_scan_release(struct task_scan *scan);

/* An enum task_event, -ERR_TASK, or -ERR_NOMEM. */
int task_scan_next(struct task_scan *scan, struct err *err);

/* Whether the elements we are in are these, as "Task/Actions/Exec". */
bool task_scan_is_in(const struct task_scan *scan, const char *path);

#endif
