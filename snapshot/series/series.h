/*
 * Snapshots of processes again and again: at fixed times, or each time one has grown.
 *
 * The loop knows neither clock nor processes nor files: a table of operations does, so that all it
 * decides can be tried with made ones. It keeps these rules. Snapshot k is due at first + k * every, however
 * long one takes; times that passed meanwhile are left out, and that is said. A process is known by its pid
 * and its start time; each is a series of its own. What fails is said and tried again when the next one is
 * due, never at once. An interrupt lets the file at hand be finished.
 */
#ifndef SNAPSHOT_SERIES_SERIES_H
#define SNAPSHOT_SERIES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/io/file.h"
#include "core/io/out.h"

struct series_plan {
	const char *what; /* the process that was asked for, for messages: "pid 12", "app.exe" */
	int64_t every_ms; /* between two snapshots, or two looks at the growth; 0: all that is asked for once */
	uint64_t
		growth_bytes; /* 0: a snapshot each time; else only when so much was added since the last */
	uint64_t file_count; /* of each series; 0: without an end */
	bool takes_all; /* every process that is found; else there must be one */
	bool waits; /* for a process to come, when there is none or it has ended */
};

struct series_process {
	uint32_t pid;
	int64_t start_ms; /* 0: not known */
	uint64_t private_bytes; /* UINT64_MAX: not known */
};

#define SERIES_UNKNOWN_BYTES UINT64_MAX

struct series_found {
	struct series_process *items;
	size_t count, cap;
};

/* Of a snapshot that was taken. */
struct series_taken {
	uint64_t block_count, requested_bytes;
	int64_t held_ms;
	bool is_incomplete; /* something is missing in it, which was said */
};

/* Of processes, so many at most are waited for; the end of others is seen when the next one is due. */
#define SERIES_WAIT_MAX OS_WAIT_MAX
/* How often a process that is waited for is looked for, and how often a name is tried that is taken. */
#define SERIES_LOOK_MS 1000
#define SERIES_TRIES 10
/* After the last snapshot of a process that has ended, the first one of the next is taken when the interval
 * has passed, or this. After each that ended before its second one, twice as long, up to the interval; polls
 * are no interval: up to the most. */
#define SERIES_RESTART_MS 60000
#define SERIES_RESTART_MAX_MS 1800000
/* When growth is watched and a snapshot fails, the next one waits twice as long as the one before it, up to
 * this: it would hold the process each time. */
#define SERIES_RETRY_MS 60000

/* Each has the caller's ctx. A process is what open() makes: it stands for one pid and one start time, and
 * for the files of its series. Those that return int return 0, or an error with *err filled. */
struct series_ops {
	/* Milliseconds of a clock that never jumps and goes on while the machine sleeps. */
	int64_t (*clock_ms)(void *ctx);
	/* Returns when the clock says until_ms, or one of the processes has ended, or an interrupt came; or
	 * earlier. */
	void (*wait)(void *ctx, int64_t until_ms, void *const *processes, size_t count);
	/* The user has asked for an end. */
	bool (*is_interrupted)(void *ctx);
	/* Adds the processes that there are: 0 also for none. */
	int (*find)(void *ctx, struct series_found *found, struct err *err);
	/* -ERR_GONE or -ERR_NO_PROCESS: it has ended, or another one has its pid. */
	int (*open)(void *ctx, const struct series_process *found, void **process, struct err *err);
	void (*close)(void *ctx, void *process);
	bool (*has_ended)(void *ctx, void *process);
	int (*private_bytes)(void *ctx, void *process, uint64_t *bytes, struct err *err);
	/* Where the next file goes; tries: so many names before it were taken. */
	int (*name)(void *ctx, void *process, unsigned tries, struct buf *path, struct err *err);
	/* One whole file at path or, when that is taken, at the first of the names that is free; or none. The
	 * process is looked at once, however many names are tried. */
	int (*take)(void *ctx, void *process, const char *path, const struct out_names *names,
		struct series_taken *taken, struct err *err);
	/* The file is safely there: older ones may go. What goes wrong is said there. */
	void (*written)(void *ctx, void *process, const char *path);
	/* One line, made harmless, without a newline. */
	void (*say)(void *ctx, const char *line);
};

struct series_result {
	uint64_t written, failed;
	uint64_t incomplete; /* of those that were written */
	bool is_short; /* a process ended before its series had all of its files, or any */
};

/*
 * Runs until all files are there, the processes have ended (unless it waits) or an interrupt. Returns 0
 * and *result; or why nothing was begun, which is not said: -ERR_NO_PROCESS, -ERR_MANY (with a list), or an
 * error of find() or open().
 */
int series_loop_run(const struct series_plan *plan, const struct series_ops *ops, void *ctx,
	struct series_result *result, struct err *err);

/* The error for several processes where one was meant: lists them, as long as there is room in the line.
 * with_all: the command has --all, which is said, too. Returns -ERR_MANY. */
int series_several(
	const char *what, const struct series_found *found, bool with_all, struct err *err);

/* 0 when every snapshot that was due was written whole, and all that were asked for; else 2. */
int series_exit_status(const struct series_result *result);

/*
 * The processes that a loop takes snapshots of (series_loop.h), each with what is known of its series.
 */

struct series_member {
	struct series_process id;
	void *process; /* NULL: it could not be opened */
	enum err_code refused; /* why, when that was said already */
	uint64_t written;
	/* When growth is watched. */
	bool has_base;
	uint64_t base_bytes; /* private bytes at the last snapshot */
	int64_t retry_at_ms, retry_ms; /* after one that failed; retry_ms 0: none did */
};

struct series_members {
	const struct series_plan *plan;
	const struct series_ops *ops;
	void *ctx;
	struct series_member *items; /* in the order of find() */
	size_t count, cap;
	struct series_result result;
	struct err said; /* the last trouble of looking, which is not said twice in a row */
	struct err several; /* who was found where one was meant, without how large */
	bool has_shot;
	int64_t shot_ms; /* when the last snapshot, of whomever, was begun */
	bool has_stayed; /* one that has ended had two files or more; the loop forgets it */
};

void series_members_release(struct series_members *members);

/* Of those that could be opened: all, and those that have not all of their files. */
size_t series_members_living(const struct series_members *members);
size_t series_members_unfinished(const struct series_members *members);

/* Whether a member has all the files that were asked for. */
bool series_member_is_full(
	const struct series_members *members, const struct series_member *member);

/* Looks who is there, and takes in those that are not known yet. Those that have ended are seen first. 0; an
 * error of find(); when none is living: -ERR_NO_PROCESS, -ERR_MANY, or why the last one could not be opened. */
int series_members_look(struct series_members *members, struct err *err);

/* Lets go those that have ended, and says so. */
void series_members_reap(struct series_members *members);

/* Says the line; and "PLACE: reason". */
void series_say(const struct series_members *members, const char *format, ...) PRINTF_LIKE(2, 3);
void series_say_err(const struct series_members *members, const struct err *err);

/* The same, but not when the last one was the same. */
void series_say_once(struct series_members *members, const struct err *err);
/* That nobody is there. */
void series_say_waiting(struct series_members *members);

/* One snapshot of a member of a loop (series_members.h), into a file of its own. */

/* Takes one if it is time for it: always, or when the process has grown. All that comes of it is said and
 * counted. */
void series_shot(struct series_members *members, struct series_member *member);

/*
 * What a loop of snapshots says, for those who look later: a file with one line for each thing said, and
 * when (UTC). It is never in the way of the snapshots: what cannot be written is said once, and is lost;
 * how many lines that were the log says when it goes on.
 */

/* A file that would be longer becomes FILE.1, in the place of an older one, and a new one is begun; where it
 * cannot, it grows. */
#define SERIES_LOG_BYTES ((uint64_t)1 << 20)

struct series_log {
	const char *path; /* the caller's; NULL: no file */
	uint64_t lost; /* lines up to now; the first of them was said elsewhere */
};

/* Whether lines can be written there, said before anything is begun: 0, -ERR_CREATE, -ERR_WRITE or
 * -ERR_NOMEM. Leaves an empty file where there was none. */
int series_log_start(struct series_log *log, const char *path, struct err *err);

/*
 * Adds "2026-11-20T10:25:48.123Z LINE", made harmless, at time_ms. The first of several that fail is an
 * error, -ERR_CREATE, -ERR_WRITE or -ERR_NOMEM, for the caller to say elsewhere; of the others 0 is returned.
 */
int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err);

/* Removing the oldest files of a series (series_files.h, which says which those are). */

/* So many heads are read at a time, of the last names; the others another time. */
#define PRUNE_HEADS_MAX 2000

struct series_limits {
	size_t keep_count; /* files; SIZE_MAX: any number */
	uint64_t keep_bytes; /* of all of them; UINT64_MAX: any */
};

struct series_warn {
	void (*warn)(void *ctx, const struct err *why);
	void *ctx;
};

/* What is known of a file. */
struct series_file {
	const char *name;
	uint64_t size_bytes;
	int64_t time_ms; /* when the dump was taken, as it says; known when is_of_series */
	int64_t order_ms; /* the same, made fit to this run's own order; known when there is a turn */
	/* Of those that this run has written: 2, 4 and so on; of others one less than that of the next that it
	 * wrote when they were seen. 0: not known. */
	uint64_t turn;
	bool is_read; /* its head: */
	bool is_of_series;
	bool was_warned_of;
};

struct series_prune {
	uint32_t pid;
	int64_t start_ms;
	struct series_limits limits;
	struct folder_list list; /* as it was last read; owns the names */
	struct series_file *files; /* those whose names fit, in the order of the list */
	size_t count;
	uint64_t turns; /* how many this run has written */
	bool has_last;
	int64_t last_ms; /* order_ms of the last of them, when it has_last */
	bool was_warned_of_newest;
};

/* What prune holds is zeros but for the first three. */
void series_prune_release(struct series_prune *prune);

/* folder is where the files are, with a separator behind it, or ""; last is the pattern's last part;
 * newest the name of the file that was just written. Returns as series_files_written(). */
int series_prune(struct series_prune *prune, const char *folder, const char *last,
	const char *newest, const struct series_warn *warn, struct err *err);

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
