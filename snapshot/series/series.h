/* A series of snapshots: when they are taken, which files go, what is logged. */
#ifndef SNAPSHOT_SERIES_SERIES_H
#define SNAPSHOT_SERIES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/io/out.h"
#include "snapshot/live/process_ref.h"

/*
 * Snapshots of processes again and again: at fixed times, or each time one has grown.
 *
 * Snapshot k is due at first + k * every, however long one takes; times that passed meanwhile are left out,
 * and that is said. A process is known by its pid and its start time; each is a series of its own. What fails
 * is said and tried again when the next one is due, never at once; a fault that stays ends the series of its process.
 * An interrupt lets the file at hand be finished.
 *
 * The files of a series have names that the pattern makes for its process. They never take the place of
 * anything. When there are too many the oldest go, once the newest is safely there: of all whose name fits
 * and whose own head says that they are dumps by hsnap of this pid and this start time. Nothing else is ever
 * removed: no other process's file (a pid is used again), no folder, no link, nothing that cannot be read.
 */

struct series_limits {
	uint64_t keep_count; /* files; UINT64_MAX: any number */
	uint64_t keep_bytes; /* of all of them; UINT64_MAX: any */
};

struct series_plan {
	uint32_t pid; /* 0: by name */
	const char *name; /* of the image; NULL: by pid */
	const char *out; /* a pattern (file_pattern.h), checked */
	bool is_packed;
	struct series_limits limits;
	int64_t every_ms; /* between two snapshots, or two looks at the growth; 0: all that is asked for once */
	uint64_t
		growth_bytes; /* 0: a snapshot each time; else when so much was added since the last */
	uint64_t file_count; /* of each series; 0: without an end */
	bool takes_all; /* every process that is found; else there must be one */
	bool waits; /* for a process to come, when there is none or it has ended */
};

/* Of a snapshot that was taken. */
struct series_taken {
	uint64_t block_count, requested_bytes;
	int64_t held_ms;
	bool is_incomplete; /* something is missing in it, which was said */
};

/* What the loop needs but processes (process_ref.h) and files: the first four are os_clock_ms(), os_time_ms(),
 * os_wait() and os_was_interrupted(), or a test's own. */
struct series_calls {
	int64_t (*clock_ms)(void);
	int64_t (*time_ms)(void); /* for names alone: somebody may set that clock */
	void (*wait)(int64_t until_ms, const intptr_t *handles, size_t count);
	bool (*is_interrupted)(void);
	/* One whole file at path or, when that is taken, at the first of the names that is free; or none. 0, or
	 * an error. */
	int (*take)(void *ctx, const struct process_ref *process, const char *path,
		const struct out_names *names, struct series_taken *taken, struct err *err);
	/* One line, made harmless, without a newline. */
	void (*say)(void *ctx, const char *line);
	void *ctx;
};

struct series_result {
	uint64_t written, failed;
	uint64_t incomplete; /* of those that were written */
	bool is_short; /* a process ended before its series had all of its files, or any */
};

/* How often a process that is waited for is looked for, and how often a name is tried that is taken. */
#define SERIES_LOOK_MS 1000
#define SERIES_TRIES 10
/* When growth is watched: the least time from the last snapshot of a process that has ended to the first of
 * the next, for one that is started again all the time would fill the disk; and after a snapshot that failed
 * until the next, for each holds the process. */
#define SERIES_RESTART_MS 600000
#define SERIES_RETRY_MS 60000
/* Limits of failures in a row, after which the series of a process ends. A request that the process can never fulfil
 * ends it at once, and a process that cannot be read after a few tries. All other faults, as a full disk, may go away:
 * they must last for a day and for some tries. */
#define SERIES_UNREADABLE_TRIES 3
#define SERIES_PATIENCE_TRIES 10
#define SERIES_PATIENCE_MS (24 * INT64_C(3600000))

/*
 * Runs until all files are there, the processes have ended (unless it waits) or an interrupt. Returns 0
 * and *result, in which those that could not be opened at first have failed; or why nothing was begun, which is
 * not said: -ERR_NO_PROCESS, -ERR_MANY (with a list), or an error of process_ref_find().
 */
int series_run(const struct series_plan *plan, const struct series_calls *calls,
	struct series_result *result, struct err *err);

/* The error for several processes where one was meant: lists them, as long as there is room in the line.
 * with_all: the command has --all, which is said, too. Returns -ERR_MANY. */
int series_several(const char *place, const struct process_seen *seen, size_t count, bool with_all,
	struct err *err);

/* 0 when every snapshot that was due was written whole, and all that were asked for; else 2. */
int series_exit_status(const struct series_result *result);

/*
 * What a loop of snapshots says, for those who look later: a file with one line for each thing said, and
 * when (UTC). It is never in the way of the snapshots: what cannot be written is lost, and that is said once.
 */

/* A file that would be longer becomes FILE.1, in the place of an older one, and a new one is begun; where it
 * cannot, it grows. */
#define SERIES_LOG_BYTES ((uint64_t)1 << 20)

struct series_log {
	const char *path; /* the caller's; NULL: no file */
	bool is_failing;
};

/* Checks before anything is begun that lines can be written there: 0, -ERR_KEPT, -ERR_CREATE or
 * -ERR_WRITE. Leaves an empty file where there was none. */
int series_log_start(struct series_log *log, const char *path, struct err *err);

/* Adds "2026-11-20T10:25:48.123Z LINE", made harmless, at time_ms. The first of several that fail is an
 * error, -ERR_CREATE or -ERR_WRITE, for the caller to say elsewhere; of the others 0 is returned. */
int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err);

/* The files of one series, or the one file of a pattern that has neither {time} nor {n}. The folders of a pattern are made. */
struct series_files;

/* Everything is copied. program is the process's image; start_ms, its start since 1970-01-01 UTC, is 0 where
 * that is not known: then no file is known to be of the series, and none removed. A packed file's name ends
 * in ".gz". NULL: -ERR_USAGE (the pattern) in *err. */
struct series_files *series_files_new(const struct series_plan *plan, const char *program,
	uint32_t pid, int64_t start_ms, struct err *err);
void series_files_free(struct series_files *files); /* NULL is nothing */

/* Whether files can be made in the pattern's folder, unless that is called as the process is: 0, or what the
 * first file would meet. Nothing is left in it. */
int series_files_check(const struct series_plan *plan, struct err *err);

/* The name for a snapshot of time_ms; {n} is behind all that are there and all that were written by this
 * series. tries is 0; when the name was taken 1, 2 and so on for another one. Replaces what path holds. 0;
 * -ERR_EXISTS: no number is left; -ERR_OPEN, -ERR_READ. */
int series_files_name(struct series_files *files, int64_t time_ms, unsigned tries, struct buf *path,
	struct err *err);

/* The file path, named by series_files_name(), is safely there. Now the oldest go as far as the limits say:
 * first those that this run has not written, by the clocks and times in them, then by name; then those that it has, in
 * that order, whatever the clock said. The newest stays, however large. A file that cannot be removed counts
 * as if it were gone, so that none goes in its place. 0; or the first trouble, which is not told again until
 * all went well. */
int series_files_written(struct series_files *files, const char *path, struct err *err);

#endif
