/* The command line that a task's hsnap gets: written, and known again. */
#ifndef SNAPSHOT_TASK_ARGUMENTS_H
#define SNAPSHOT_TASK_ARGUMENTS_H

#include <stdbool.h>

#include "core/buf.h"

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

#endif
