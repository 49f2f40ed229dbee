/*
 * Snapshots of processes again and again: at fixed times, or each time one has grown.
 *
 * The loop knows neither clock nor processes nor files: a table of operations does, so that all it
 * decides can be tried with made ones. It keeps these rules. Snapshot k is due at first + k * every, however
 * long one takes; times that passed meanwhile are left out, and that is said. A process is known by its pid
 * and its start time; each is a series of its own. What fails is said and tried again when the next one is
 * due, never at once. An interrupt lets the file at hand be finished.
 */
#ifndef SNAPSHOT_SERIES_LOOP_H
#define SNAPSHOT_SERIES_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/err.h"
#include "core/os.h"
#include "core/out.h"

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

#endif
