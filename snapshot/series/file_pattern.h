/*
 * The names of files for each process and each snapshot, by a pattern.
 *
 * In it {name} stands for what the program is called, without the folder and ".exe"; {pid} for the
 * process's number; {time} for when the snapshot was taken, in UTC, as 20261120T102548Z; {n} for the
 * number of the file in its series, as 000001; and {{ for a brace. {time} and {n} are for the file's own
 * name, the others may stand in a folder's too. What separates parts of a path is the system's
 * (core/folder.h).
 */
#ifndef SNAPSHOT_FILE_PATTERN_H
#define SNAPSHOT_FILE_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

enum {
	PATTERN_NAME = 1,
	PATTERN_PID = 2,
	PATTERN_TIME = 4,
	PATTERN_NUMBER = 8,
};

#define PATTERN_AGAIN_MAX 999999
#define PATTERN_NUMBER_MAX UINT64_C(999999999999)

struct file_names {
	const char *program; /* the image, in whatever folder; made harmless (program_name.h) */
	uint32_t pid;
	int64_t time_ms; /* since 1970-01-01 UTC */
	unsigned again; /* 0, or N to put "_N" behind the time: that name is taken */
	uint64_t number;
};

/* 0 and which words are in it; -ERR_USAGE: another word stands in braces, a brace is not closed, or {time}
 * or {n} is in a folder's name; or it has one of these, and ends as no file's name can here; or it has any word, and
 * is the name of a device or of a stream in a file here. */
int file_pattern_check(const char *pattern, unsigned *words, struct err *err);

/* All of these are for patterns that were checked. */

/* Adds the name. 0 or -ERR_NOMEM. */
int file_pattern_add(struct buf *path, const char *pattern, const struct file_names *names);

/* Adds the pattern for one process: {time} and {n} are left in it. 0 or -ERR_NOMEM. */
int file_pattern_bind(struct buf *bound, const char *pattern, const char *program, uint32_t pid);

/* Where the file's own name begins. */
const char *file_pattern_last(const char *pattern);

/* Whether name is one that file_pattern_add() makes of last, the last part of a bound pattern, with an
 * again of 0 or 2 to PATTERN_AGAIN_MAX and a number up to PATTERN_NUMBER_MAX. Then *names tells which: the
 * time to a second. What last does not hold is 0. */
bool file_pattern_fits(const char *last, const char *name, struct file_names *names);

#endif
