/*
 * The files of one series: what the next is called, and which old ones go.
 *
 * A series is the snapshots of one process, which is known by pid and start time. A file belongs to it
 * when its name is one that the pattern makes for this process, and its own head says that it is a dump by
 * hsnap of this pid and this start time. Nothing else is ever touched: no other process's files (a pid is
 * used again), no folder, no link, no file that says nothing or cannot be read.
 *
 * Folders are not made. A folder is read once for each name and once for each removal; the head of a file
 * whose name fits is read once, and once more before the file is removed.
 */
#ifndef SNAPSHOT_SERIES_FILES_H
#define SNAPSHOT_SERIES_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "snapshot/series/series_prune.h"

#define SERIES_TRIES_MAX 100

struct series_files;

/* For files by a pattern that has {time} or {n} (file_pattern.h), with ".gz" behind it when they are packed
 * and it does not end so. program is the process's image; start_ms, its start since 1970-01-01 UTC, is 0
 * where that is not known: then no file is known to be of the series, and none removed. Everything is
 * copied. NULL: -ERR_USAGE or -ERR_NOMEM in *err. */
struct series_files *series_files_new(const char *pattern, const char *program, uint32_t pid,
	int64_t start_ms, const struct series_limits *limits, bool is_packed, struct err *err);
void series_files_free(struct series_files *files); /* NULL is nothing */

/* To be asked before the first snapshot: 0 when the folder is there and files can be made in it;
 * -ERR_OPEN, -ERR_READ, -ERR_CREATE or -ERR_NOMEM. Nothing is left in it. */
int series_files_check(struct series_files *files, struct err *err);

/* The name for a snapshot of time_ms: one that is not taken now, {n} behind all that are there (but those that
 * are more than 10^9 above the next lower, which anybody may have given to a file) and all that were written by this series. tries is
 * 0; when the name was taken meanwhile 1, 2 and so on for one behind it. Replaces what path holds. 0;
 * -ERR_EXISTS: enough tries; -ERR_OPEN, -ERR_READ, -ERR_NOMEM. */
int series_files_name(struct series_files *files, int64_t time_ms, unsigned tries, struct buf *path,
	struct err *err);

/* The file path, named by series_files_name(), is safely there. Now the oldest go as far as the limits say:
 * by the times in the dumps, then by name; but those that were written since series_files_new() are in
 * the order in which they were, and behind what was there before them, whatever the clock said. The newest
 * stays, however large. A file that cannot be removed is told to warn (with its ctx), once; it counts as if
 * it were gone, so that none goes in its place. So is that path is not in its folder: then none goes. 0; or
 * an error, of the folder or of memory, which is none of the file at path. */
int series_files_written(struct series_files *files, const char *path,
	const struct series_warn *warn, struct err *err);

#endif
