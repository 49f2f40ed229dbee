/* A series of snapshots: its schedule, its files, and its log. */
#ifndef SNAPSHOT_SERIES_SERIES_H
#define SNAPSHOT_SERIES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/balance.h"
#include "core/base/memory.h"
#include "core/io/out.h"
#include "snapshot/live/process_ref.h"

/*
 * Repeated snapshots of processes, at fixed times or whenever a process has grown.
 *
 * Snapshot k is due at first + k * every, however long a snapshot takes. Times that pass in the
 * meantime are skipped, with a message. A process is identified by its pid and its start time, and
 * each process has a series of its own. A failure is reported. The next attempt is made when the
 * next snapshot is due, never immediately. A persistent fault ends the series of the process. After
 * an interrupt, the current file is completed.
 *
 * The names of a series' files are made from the pattern for its process. These files never replace
 * another file. If there are too many, the oldest are removed after the newest is safely stored. A
 * file may be removed only if its name matches the pattern, and its own header identifies it as a
 * dump by hsnap of this pid and this start time. Nothing else is ever removed: no file of another
 * process (which may have had the same pid), no folder, no link, nothing unreadable.
 */

struct series_limits {
	uint64_t keep_count; /* maximum number of files; UINT64_MAX: no limit */
	uint64_t keep_bytes; /* maximum total size in bytes; UINT64_MAX: no limit */
};

struct series_plan {
	uint32_t pid; /* pid of the process; 0: the process is specified by name */
	const char *name; /* name of the image; NULL: the process is specified by pid */
	const char *out; /* pattern of the file names, checked (file_pattern.h) */
	bool is_packed;
	struct series_limits limits;
	/* Interval of snapshots, or of checks for growth; 0: a single round of snapshots. */
	int64_t every_ms;
	/* Take a snapshot only after the figure has grown by this much since the last snapshot; 0:
	 * take one each time. */
	uint64_t growth;
	enum balance_figure growth_figure; /* BALANCE_PRIVATE (0), BALANCE_HANDLES, ... */
	uint64_t file_count; /* maximum number of files per series; 0: no limit */
	/* Capture all processes that are found; otherwise there must be exactly one. */
	bool takes_all;
	bool waits; /* if no process exists, or after the process has exited, wait for a process */
};

/* Facts about a snapshot that was taken. */
struct series_taken {
	uint64_t block_count, requested_bytes;
	int64_t held_ms;
	bool is_incomplete; /* something is missing in the snapshot, which was reported */
};

/* Services that the loop needs, apart from processes (process_ref.h) and files. The first four
 * members are os_clock_ms(), os_time_ms(), os_wait() and os_was_interrupted(), or replacements in a
 * test. */
struct series_calls {
	int64_t (*clock_ms)(void);
	int64_t (*time_ms)(void); /* used only for names, because this clock may be changed */
	void (*wait)(int64_t until_ms, const intptr_t *handles, size_t count);
	bool (*is_interrupted)(void);
	/* Writes one whole file, or none. The file is written at `path`. If `path` exists, the file
	 * gets the first free name from the names. Returns 0 or an error. */
	int (*take)(void *ctx, const struct process_ref *process, const char *path,
		const struct out_names *names, struct series_taken *taken, struct err *err);
	/* Reports one line of text that contains no unsafe characters and no newline. */
	void (*messages)(void *ctx, const char *line);
	void *ctx;
};

struct series_result {
	uint64_t written, failed;
	uint64_t incomplete; /* number of incomplete files, which are included in `written` */
	/* a process exited before the requested number of files, or before any file, was written */
	bool is_short;
};

/* SERIES_LOOK_MS is the interval between searches while the series waits for a process.
 * SERIES_TRIES is the maximum number of attempts to find a free file name. */
#define SERIES_LOOK_MS 1000
#define SERIES_TRIES 10
/* Used only when growth is watched. SERIES_RESTART_MS is the minimum time between the last snapshot
 * of a process that has exited and the first snapshot of its successor. Without this limit, a
 * process that restarts continually would fill the disk. SERIES_RETRY_MS is the minimum time
 * between a failed snapshot and the next, because each snapshot holds the process. */
#define SERIES_RESTART_MS 600000
#define SERIES_RETRY_MS 60000
/* Numbers of consecutive failures after which the series of a process ends. If a process can never
 * satisfy a request, the series ends immediately. If a process cannot be read, the series ends
 * after a few attempts. All other faults, such as a full disk, may be temporary: the series ends
 * only if they last for a day and for several attempts. */
#define SERIES_UNREADABLE_TRIES 3
#define SERIES_PATIENCE_TRIES 10
#define SERIES_PATIENCE_MS (24 * INT64_C(3600000))

/*
 * Runs until all files are written, the processes have exited (unless the plan waits for more), or
 * an interrupt occurs. Returns 0 and stores `*result`. A process that could not be opened at first
 * counts as failed. If nothing was started, returns the reason without reporting it:
 * -ERR_NO_PROCESS, -ERR_MANY (with a list), or an error of process_ref_find().
 */
int series_run(const struct series_plan *plan, const struct series_calls *calls,
	struct series_result *result, struct err *err);

/* Sets the error for a request that requires a single process but matches several. Lists as many
 * processes as fit into the line. `with_all`: the command has --all, so the message mentions it.
 * Returns -ERR_MANY. */
int series_several(const char *place, const struct process_seen *seen, size_t count, bool with_all,
	struct err *err);

/* Returns 0 if every snapshot that was due was written completely and no requested snapshot is
 * missing; otherwise 2. */
int series_exit_status(const struct series_result *result);

/*
 * The log of a loop of snapshots, for later reading: a file with one line per message, each with
 * its time (UTC). The log never delays the snapshots: lines that cannot be written are lost, which
 * is reported once. */

/* Maximum size of a log file. A larger file is renamed to FILE.1, replacing an older one, and a new
 * file is started. If that is impossible, the file grows further. */
#define SERIES_LOG_BYTES ((uint64_t)1 << 20)

struct series_log {
	const char *path; /* owned by the caller; NULL: no file */
	bool is_failing;
};

/* Checks, before the series starts, that lines can be written to the log. Returns 0, -ERR_KEPT,
 * -ERR_CREATE or -ERR_WRITE. Creates an empty file if there was no file. */
int series_log_start(struct series_log *log, const char *path, struct err *err);

/* Adds the line "2026-11-20T10:25:48.123Z LINE", with the time `time_ms`. Replaces unsafe
 * characters in LINE. Returns -ERR_CREATE or -ERR_WRITE for the first of several consecutive
 * failures; the caller reports this elsewhere. Returns 0 for later failures. */
int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err);

/* The files of one series, or the single file of a pattern without {time} and {n}. Missing folders
 * in the pattern are created. */
struct series_files;

/* Creates the object for the files of a series. Copies all arguments. `program` is the process's
 * image. `start_ms` is the start time of the process since 1970-01-01 UTC. If it is unknown (0), no
 * file is known to belong to the series, so none is removed. If files are packed, their names end
 * in ".gz". Returns NULL and sets `*err` to -ERR_USAGE for an invalid pattern. */
struct series_files *series_files_new(const struct series_plan *plan, const char *program,
	uint32_t pid, int64_t start_ms, struct err *err);
void series_files_free(struct series_files *files); /* accepts NULL */

/* Checks that files can be created in the pattern's folder, unless the folder's name depends on the
 * process. Returns 0 or the error that would occur for the first file. Leaves nothing in the
 * folder. */
int series_files_check(const struct series_plan *plan, struct err *err);

/* Replaces the contents of `path` with the name for a snapshot at `time_ms`. {n} is higher than in
 * all existing files and in all files that this series has written. `tries` is 0 at first; 1, 2 and
 * so on request another name because the previous name exists. Returns 0, -ERR_EXISTS (no number is
 * left), -ERR_OPEN, or -ERR_READ. */
int series_files_name(struct series_files *files, int64_t time_ms, unsigned tries, struct buf *path,
	struct err *err);

/* Removes the oldest files to comply with the limits. Must be called after the file at `path`, a
 * name from series_files_name(), has been safely stored. First removes files that this run has not
 * written, in the order of the times in them, then by name. Then removes files of this run in the
 * order in which they were written, regardless of the clock. The newest file always remains,
 * however large. A file that cannot be removed counts as removed, so that no other file is removed
 * in its place. Returns 0 or the first error. After an error, no further error is returned until a
 * call succeeds. */
int series_files_written(struct series_files *files, const char *path, struct err *err);

#endif
