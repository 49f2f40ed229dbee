/* Patterns for the names of a series' files. */
#ifndef SNAPSHOT_SERIES_FILE_PATTERN_H
#define SNAPSHOT_SERIES_FILE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/*
 * Patterns for file names. A pattern is expanded for each process and each snapshot.
 *
 * {name} is replaced by the program's name, without the folder and ".exe"; {pid} by the process's
 * id; {time} by the time of the snapshot, in UTC, as in 20261120T102548Z; {n} by the number of the
 * file in its series, as in 000001; and {{ by a single brace. {time} and {n} may each occur once,
 * and only in the file's own name. {name} and {pid} may also occur in a folder's name. Path
 * separators are the system's (core/io/file.h).
 */

enum {
	PATTERN_NAME = 1,
	PATTERN_PID = 2,
	PATTERN_TIME = 4,
	PATTERN_NUMBER = 8,
};

#define PATTERN_NUMBER_MAX UINT64_C(999999999999)

struct file_names {
	/* The image's path. The text that replaces {name} is a single component of a path on every
	 * system. It is valid text, never empty, never "..", and never the name of a device. */
	const char *program;
	uint32_t pid;
	int64_t time_ms; /* milliseconds since 1970-01-01 UTC */
	/* N: add "_N" after the time because the name without it exists; 0: add nothing */
	unsigned again;
	uint64_t number;
};

/* Checks a pattern. Returns 0 and stores the words in the pattern, or returns -ERR_USAGE: unknown
 * word in braces, unclosed brace, or {time} or {n} in a folder's name or used twice. */
int file_pattern_check(const char *pattern, unsigned *words, struct err *err);

/* The following functions require a checked pattern. */

void file_pattern_add(struct buf *path, const char *pattern, const struct file_names *names);

/* Adds the pattern for one process, in which {time} and {n} are not expanded. */
void file_pattern_bind(struct buf *bound, const char *pattern, const char *program, uint32_t pid);

/* Returns a pointer to the file's own name in the pattern. */
const char *file_pattern_last(const char *pattern);

/* Returns true if file_pattern_add() could have produced `name` from `last`, the last component of
 * a bound pattern. Sets `*number` to the value of {n}, or to 0. */
bool file_pattern_fits(const char *last, const char *name, uint64_t *number);

/* Adds `path` to `name`, and ".gz" unless out_is_packed_name(). A device and standard output ("-")
 * get no suffix. */
void packed_name_add(struct buf *name, const char *path);

#endif
