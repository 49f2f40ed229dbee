/* A series of snapshots: its times, its files, and its log. */
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
 * Repeated snapshots of processes, at fixed times or whenever a process has grown.
 *
 * Snapshot k is due at first + k * every, however long a snapshot takes. Times that passed in the
 * meantime are skipped, with a message. A process is identified by its pid and its start time, and
 * each has a series of its own. A failure is reported, and the next attempt follows when the next
 * snapshot is due, never at once; a persistent fault ends the series of its process. After an
 * interrupt the current file is finished.
 *
 * The files of a series have names that the pattern makes for its process. They never replace
 * another file. If there are too many, the oldest are removed after the newest is safely stored.
 * Candidates are all files whose name fits and whose own head identifies them as dumps by hsnap of
 * this pid and this start time. Nothing else is ever removed: no file of another process (a pid is
 * reused), no folder, no link, nothing unreadable. */

struct series_limits {
	uint64_t keep_count; /* number of files; UINT64_MAX: no limit */
	uint64_t keep_bytes; /* bytes of all files; UINT64_MAX: no limit */
};

struct series_plan {
	uint32_t pid; /* 0: by name */
	const char *name; /* of the image; NULL: by pid */
	const char *out; /* checked pattern (file_pattern.h) */
	bool is_packed;
	struct series_limits limits;
	/* Interval of snapshots, or of checks of the growth; 0: a single round of snapshots. */
	int64_t every_ms;
	/* 0: a snapshot each time; otherwise only after this much growth since the last */
	uint64_t growth_bytes;
	uint64_t file_count; /* limit for each series; 0: none */
	bool takes_all; /* all processes that are found; otherwise there must be exactly one */
	bool waits; /* waits for a process if none exists or it has exited */
};

/* Facts about a snapshot that was taken. */
struct series_taken {
	uint64_t block_count, requested_bytes;
	int64_t held_ms;
	bool is_incomplete; /* something is missing in it, which was reported */
};

/* Services for the loop, except processes (process_ref.h) and files. The first four are
 * os_clock_ms(), os_time_ms(), os_wait() and os_was_interrupted(), or replacements of a test. */
struct series_calls {
	int64_t (*clock_ms)(void);
	int64_t (*time_ms)(void); /* for names only, because this clock may be set */
	void (*wait)(int64_t until_ms, const intptr_t *handles, size_t count);
	bool (*is_interrupted)(void);
	/* Writes one whole file at path or, if that exists, at the first free one of the names; or
	 * none. Returns 0 or an error. */
	int (*take)(void *ctx, const struct process_ref *process, const char *path,
		const struct out_names *names, struct series_taken *taken, struct err *err);
	/* Reports one line of harmless text, without a newline. */
	void (*say)(void *ctx, const char *line);
	void *ctx;
};

struct series_result {
	uint64_t written, failed;
	uint64_t incomplete; /* part of written */
	bool is_short; /* a process exited before its series had all of its files, or any */
};

/* Interval of the search for a process that is waited for, and number of attempts to find a free
 * name. */
#define SERIES_LOOK_MS 1000
#define SERIES_TRIES 10
/* When growth is watched. SERIES_RESTART_MS: least time between the last snapshot of a process that
 * has exited and the first of its successor; a process that restarts continually would fill the
 * disk. SERIES_RETRY_MS: time between a failed snapshot and the next, because each holds the
 * process. */
#define SERIES_RESTART_MS 600000
#define SERIES_RETRY_MS 60000
/* Limits of consecutive failures, after which the series of a process ends. A request that the
 * process can never fulfil ends it at once, and a process that cannot be read after a few attempts.
 * All other faults, such as a full disk, may be temporary: they must last for a day and for some
 * attempts. */
#define SERIES_UNREADABLE_TRIES 3
#define SERIES_PATIENCE_TRIES 10
#define SERIES_PATIENCE_MS (24 * INT64_C(3600000))

/*
 * Runs until all files are written, the processes have exited (unless it waits), or an interrupt
 * occurs. Returns 0 and *result, in which processes that could not be opened at first count as
 * failed. If nothing was begun, returns the reason without reporting it: -ERR_NO_PROCESS, -ERR_MANY
 * (with a list), or an error of process_ref_find(). */
int series_run(const struct series_plan *plan, const struct series_calls *calls,
	struct series_result *result, struct err *err);

/* Sets the error for several processes where one is required. Lists the processes that fit into the
 * line. with_all: the command has --all, which is mentioned. Returns -ERR_MANY. */
int series_several(const char *place, const struct process_seen *seen, size_t count, bool with_all,
	struct err *err);

/* Returns 0 if every snapshot that was due was written completely, and all requested ones were;
 * otherwise 2. */
int series_exit_status(const struct series_result *result);

/*
 * The log of a loop of snapshots, for a later reader: a file with one line for each message, and
 * its time (UTC). It never obstructs the snapshots: lines that cannot be written are lost, which is
 * reported once. */

/* A file that would exceed this size is renamed to FILE.1, replacing an older one, and a new file
 * is begun. If that is impossible, the file grows. */
#define SERIES_LOG_BYTES ((uint64_t)1 << 20)

struct series_log {
	const char *path; /* owned by the caller; NULL: no file */
	bool is_failing;
};

/* Checks, before anything is begun, that lines can be written there. Returns 0, -ERR_KEPT,
 * -ERR_CREATE or -ERR_WRITE. Creates an empty file if there was no file. */
int series_log_start(struct series_log *log, const char *path, struct err *err);

/* Adds "2026-11-20T10:25:48.123Z LINE", made harmless, at time_ms. Returns -ERR_CREATE or
 * -ERR_WRITE for the first of several failures, which the caller reports elsewhere, and 0 for the
 * others. */
int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err);

/* The files of one series, or the single file of a pattern without {time} and {n}. Folders of the
 * pattern are created. */
struct series_files;

/* Creates the files of a series; copies all arguments. program is the process's image. start_ms is
 * its start since 1970-01-01 UTC, or 0 if unknown; then no file is known to belong to the series,
 * and none is removed. A packed file's name ends in ".gz". Returns NULL and sets *err to -ERR_USAGE
 * for an invalid pattern. */
struct series_files *series_files_new(const struct series_plan *plan, const char *program,
	uint32_t pid, int64_t start_ms, struct err *err);
void series_files_free(struct series_files *files); /* accepts NULL */

/* Checks that files can be created in the pattern's folder, unless its name depends on the process.
 * Returns 0 or the error that the first file would meet. Leaves nothing in the folder. */
int series_files_check(const struct series_plan *plan, struct err *err);

/* Makes the name of a snapshot at time_ms and replaces the contents of path by it. {n} is higher
 * than in all existing files and in all files written by this series. tries is 0; 1, 2 and so on
 * request another name if the last one exists. Returns 0, -ERR_EXISTS (no number is left),
 * -ERR_OPEN, or -ERR_READ. */
int series_files_name(struct series_files *files, int64_t time_ms, unsigned tries, struct buf *path,
	struct err *err);

/* Removes the oldest files according to the limits, after the file path, named by
 * series_files_name(), was safely stored. Files that this run has not written are removed first, by
 * the clocks and times in them, then by name. Files of this run follow, in the order in which they
 * were written, whatever the clock showed. The newest file stays, however large. A file that cannot
 * be removed counts as removed, so that no other is removed instead. Returns 0 or the first error,
 * which is not reported again until all went well. */
int series_files_written(struct series_files *files, const char *path, struct err *err);

#endif
