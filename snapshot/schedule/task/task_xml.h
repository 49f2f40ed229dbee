/*
 * A task as Task Scheduler takes it: XML of the schema's version 1.2, which Windows 7 and later know.
 *
 * Elements, their order and their types are those of Microsoft's documentation "Task Scheduler Schema",
 * pages "Task Scheduler Schema Elements", "taskType Complex Type", "triggerBaseType Complex Type" (a
 * sequence: StartBoundary before Repetition), "repetitionType Complex Type" (Interval from PT1M to P31D),
 * "principalType Complex Type", "settingsType Complex Type" and "execActionType Complex Type"; what a
 * priority means is on the page "TaskSettings.Priority property". tests/schedule/task.xsd holds the same.
 */
#ifndef SNAPSHOT_TASK_XML_H
#define SNAPSHOT_TASK_XML_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

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

#endif
