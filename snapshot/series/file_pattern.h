/* Patterns for the names of a series' files. */
#ifndef SNAPSHOT_SERIES_FILE_PATTERN_H
#define SNAPSHOT_SERIES_FILE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/*
 * Names of files for each process and each snapshot, from a pattern.
 *
 * {name} stands for the program's name, without the folder and ".exe"; {pid} for the process's
 * number; {time} for the time of the snapshot, in UTC, as in 20261120T102548Z; {n} for the number
 * of the file in its series, as in 000001; and {{ for a brace. {time} and {n} may each occur once,
 * in the file's own name; the others may also occur in a folder's name. Path separators are the
 * system's (core/io/file.h). */

enum {
	PATTERN_NAME = 1,
	PATTERN_PID = 2,
	PATTERN_TIME = 4,
	PATTERN_NUMBER = 8,
};

#define PATTERN_NUMBER_MAX UINT64_C(999999999999)

struct file_names {
	/* The image in any folder, with any name. The text that replaces {name} is a single part of
	 * a path on every system. It is valid text, never empty, never "..", and never the name of
	 * a device. */
	const char *program;
	uint32_t pid;
	int64_t time_ms; /* milliseconds since 1970-01-01 UTC */
	unsigned again; /* 0, or N to add "_N" after the time because the name exists */
	uint64_t number;
};

/* Checks a pattern. Returns 0 and the words in it, or -ERR_USAGE: unknown word in braces, unclosed
 * brace, {time} or {n} in a folder's name or twice. */
int file_pattern_check(const char *pattern, unsigned *words, struct err *err);

/* The following functions require a checked pattern. */

void file_pattern_add(struct buf *path, const char *pattern, const struct file_names *names);

/* Adds the pattern for one process, in which {time} and {n} remain. */
void file_pattern_bind(struct buf *bound, const char *pattern, const char *program, uint32_t pid);

/* Returns the beginning of the file's own name. */
const char *file_pattern_last(const char *pattern);

/* Returns true if file_pattern_add() could have made name from last, the last part of a bound
 * pattern. *number is the value of {n}, or 0. */
bool file_pattern_fits(const char *last, const char *name, uint64_t *number);

/* Adds path to name, followed by ".gz" unless out_is_packed_name(). A device and standard output
 * ("-") keep their names. */
void packed_name_add(struct buf *name, const char *path);

#endif
