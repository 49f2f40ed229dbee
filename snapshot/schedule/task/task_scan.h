/*
 * XML as tasks are written in, taken apart strictly: elements, attributes (passed over), text with the
 * five entities and numbers of characters, comments and instructions (passed over). What tasks do not
 * have is an error: document types with their entities, CDATA, and nesting deeper than TASK_DEPTH.
 */
#ifndef SNAPSHOT_TASK_SCAN_H
#define SNAPSHOT_TASK_SCAN_H

#include <stdbool.h>

#include "core/buf.h"

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
