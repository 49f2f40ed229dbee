/* Names of a series' files: patterns, program names, what fits. */
#ifndef SNAPSHOT_SERIES_FILE_PATTERN_H
#define SNAPSHOT_SERIES_FILE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/*
 * The names of files for each process and each snapshot, by a pattern.
 *
 * In it {name} stands for what the program is called, without the folder and ".exe"; {pid} for the
 * process's number; {time} for when the snapshot was taken, in UTC, as 20261120T102548Z; {n} for the
 * number of the file in its series, as 000001; and {{ for a brace. {time} and {n} are for the file's own
 * name, once each; the others may stand in a folder's too. What separates parts of a path is the system's
 * (core/io/file.h).
 */

enum {
	PATTERN_NAME = 1,
	PATTERN_PID = 2,
	PATTERN_TIME = 4,
	PATTERN_NUMBER = 8,
};

#define PATTERN_NUMBER_MAX UINT64_C(999999999999)

struct file_names {
	/* The image, in whatever folder, as anybody may have called it: what is put into a name is one part of
	 * a path on every system, never empty, never "..", no name of a device, and text. */
	const char *program;
	uint32_t pid;
	int64_t time_ms; /* since 1970-01-01 UTC */
	unsigned again; /* 0, or N to put "_N" behind the time: that name is taken */
	uint64_t number;
};

/* 0 and which words are in it; -ERR_USAGE: another word stands in braces, a brace is not closed, {time} or {n}
 * is in a folder's name or there twice. */
int file_pattern_check(const char *pattern, unsigned *words, struct err *err);

/* All of these are for patterns that were checked. */

/* Adds the name. */
void file_pattern_add(struct buf *path, const char *pattern, const struct file_names *names);

/* Adds the pattern for one process: {time} and {n} are left in it. */
void file_pattern_bind(struct buf *bound, const char *pattern, const char *program, uint32_t pid);

/* Where the file's own name begins. */
const char *file_pattern_last(const char *pattern);

/* Whether name has the form of those that file_pattern_add() makes of last, the last part of a bound pattern.
 * Then *number is what {n} stands for in it, or 0. */
bool file_pattern_fits(const char *last, const char *name, uint64_t *number);

/* Adds path to name, with ".gz" behind it unless out_is_packed_name(). A device and
 * standard output ("-") keep their names. */
void packed_name_add(struct buf *name, const char *path);

#endif
