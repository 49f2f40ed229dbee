/* Tracing a program from its start, or a running process. */
#ifndef SNAPSHOT_CONTROL_CONTROL_H
#define SNAPSHOT_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"

/*
 * Recording of a process by its tracer, through rings (snapshot/tracer/rings.h): control has them
 * mapped into the process as long as the tracer is on.
 */
struct ring_section;

/* State of a process when its recording begins. */
enum recording_start {
	RECORDING_AT_REST, /* no thread is in a heap's function: the blocks can be listed */
	/* a thread always is: blocks that are being allocated or freed at the moment are not
	 * known */
	RECORDING_BUSY,
	RECORDING_TRACED, /* the tracer was on before, and knows the blocks */
};

struct recording_link {
	const struct ring_section *rings; /* snapshot/control/control_windows.h */
	/* Called before the first event, while the process is suspended. Returns 0, or an error,
	 * which ends the recording. */
	int (*begin)(void *ctx, struct target *target, uint64_t area_addr,
		enum recording_start start, struct err *err);
	/* Takes out everything that is in the rings; the process is about to end, and waits. */
	void (*catch_up)(void *ctx);
	void *ctx;
};

/*
 * Running a program with the tracer in it, from before its first instruction to its end.
 */

struct program_run {
	const char *const *argv; /* the program and its arguments, NULL-terminated */
	uint64_t limit_bytes; /* for the tracer's tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	bool keep_bstr_cache; /* otherwise COM is set not to keep freed strings */
	/* also trace the processes that the program starts, and their children */
	bool with_children;
	int64_t limit_ms; /* time limit; 0: none */
	int64_t until_ms; /* end of that time, or of a recording, by os_clock_ms(); 0: none */
	const struct recording_link *recording; /* of the program itself, or NULL */
	/* With with_children, makes a recording for a process that is being started, from any
	 * thread. Returns NULL and an error if it cannot; then the process is not traced.
	 * child_recorded() ends the recording when the process has ended, or could not be traced.
	 * NULL: children are not recorded. */
	const struct recording_link *(*child_recording)(void *ctx, uint32_t pid, struct err *err);
	void (*child_recorded)(void *ctx, const struct recording_link *recording);
	/* Takes the snapshot of a process that has come to its end, one at a time. NULL: no
	 * snapshots. */
	int (*snapshot)(void *ctx, struct target *target, struct err *err);
	void *ctx; /* for all of these functions */
};

/*
 * Starts the program and waits for its end, and for that of traced children. Standard streams,
 * working folder and Ctrl-C are the program's. Returns 0 and its exit status; -ERR_START,
 * -ERR_BITS, -ERR_INJECT and -ERR_CANNOT_TRACE (the program was ended before its own code began),
 * or, with the exit status, the result of the snapshot. For a child that cannot be traced or read,
 * a line is printed on standard error.
 *
 * When the time limit is over, each running process has its snapshot taken and is ended, with a
 * line; then the exit status is RUN_LATE.
 *
 * A program of the other bitness is left to the other hsnap: see run_other_hsnap().
 */
#define RUN_LATE 124 /* like timeout(1) */
int run_program(const struct program_run *run, uint32_t *exit_status, struct err *err);

/* Programs of the other bitness, which another hsnap traces. */

#define HSNAP_32 "hsnap32.exe"
#define HSNAP_64 "hsnap.exe"

/*
 * Starts the 32-bit hsnap next to this one with the same arguments, and waits for its end. The
 * other hsnap has this one's streams, and Ctrl-C is left to it; it ends when this one is
 * terminated. name is the program that turned out to be 32-bit, for messages. Returns 0 and the
 * other hsnap's exit status; it has printed all messages then. Returns -ERR_BITS if the other hsnap
 * does not exist, -ERR_64_BITS if this is a 32-bit hsnap, -ERR_START or -ERR_NOMEM.
 */
int run_other_hsnap(const char *name, uint32_t *exit_status, struct err *err);

/*
 * With --children, a process of the other bitness is left to the other hsnap as well. These words
 * precede the arguments of this hsnap: FOLLOW_COMMAND PID TID PARENT READY LOCK UNTIL.
 */
#define FOLLOW_COMMAND "--follow"
#define FOLLOW_WORDS 7

/* Parses those words. After that run_program() starts no program, but follows that child. Returns 0
 * or -ERR_USAGE. */
int control_parse_follow(int argc, char **argv);

/* Returns true if a child was handed over to this hsnap; *until_ms is program_run.until_ms of the
 * hsnap that handed it over. */
bool follow_is_wanted(int64_t *until_ms);

/* Makes this process ignore Ctrl-C and Ctrl-Break: a child on the same console gets them, and hsnap
 * waits for it. */
void run_leave_interrupts(void);

/*
 * Attaching to a running process, and detaching from it.
 *
 * One hsnap at a time controls a process; others wait for it, for a while.
 */

struct attach_options {
	uint64_t limit_bytes; /* for the tracer's tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	const struct recording_link *recording; /* or NULL */
	bool keep_bstr_cache; /* otherwise COM is set not to keep freed strings */
};

/*
 * Loads the tracer into the process unless it is there, and turns it on. *limit_found becomes the
 * limit of its tables: less than requested if address space is short. A recording also begins where
 * the tracer is on: then the tracer stays as it is. Returns 0; -ERR_TRACED (nothing was changed),
 * -ERR_BITS (the other hsnap can do it: nothing was done), -ERR_BUSY, -ERR_NO_PROCESS, -ERR_RIGHTS,
 * -ERR_GONE, -ERR_INJECT, -ERR_CANNOT_TRACE, -ERR_TARGET (another version's tracer), -ERR_USAGE
 * (hsnap itself), -ERR_SYSTEM, -ERR_NOMEM: the process runs on as before.
 */
int control_attach(
	uint32_t pid, const struct attach_options *options, uint64_t *limit_found, struct err *err);

/* Turns the tracer off and removes its hooks. Returns 0; -ERR_NOT_TRACED, -ERR_BUSY (it goes on
 * tracing), and errors like control_attach(). */
int control_detach(uint32_t pid, struct err *err);

/* Ends a recording, and turns the tracer off if it was on for that alone. Returns like
 * control_detach(). */
int control_end_recording(uint32_t pid, struct err *err);

#endif
