/* Traces a program from its start, or a running process. */
#ifndef SNAPSHOT_CONTROL_CONTROL_H
#define SNAPSHOT_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"

/* Recording of a process by its tracer, using rings (snapshot/tracer/rings.h). control keeps the
 * rings mapped into the process while the tracer is on. */
struct ring_section;

/* State of a process when a recording of it begins. */
enum recording_start {
	RECORDING_AT_REST, /* no thread is in a heap function: the blocks can be listed */
	/* some thread is always in a heap function: blocks that are just being allocated or freed
	 * are not known */
	RECORDING_BUSY,
	RECORDING_TRACED, /* the tracer was already on and knows the blocks */
};

struct recording_link {
	const struct ring_section *rings; /* snapshot/control/tracee_windows.h */
	/* Called before the first event, while the process is suspended. Returns 0. An error ends
	 * the recording. */
	int (*begin)(void *ctx, struct target *target, uint64_t area_addr,
		enum recording_start start, struct err *err);
	/* Removes all events from the rings. The process is about to end and waits. */
	void (*catch_up)(void *ctx);
	void *ctx;
};

/* Runs a program with the tracer loaded, from before its first instruction until its end. */

struct program_run {
	const char *const *argv; /* program and arguments, NULL-terminated */
	uint64_t limit_bytes; /* limit for the tracer's tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	bool keep_bstr_cache; /* false: COM is set to free strings at once */
	/* also trace the processes that the program starts, and their children */
	bool with_children;
	int64_t limit_ms; /* time limit for the program; 0: none */
	/* end of the time limit, or of a recording, as os_clock_ms() counts; 0: none */
	int64_t until_ms;
	const struct recording_link *recording; /* recording of the first program, or NULL */
	/*
	 * With with_children, creates a recording for a process that is being started. May be
	 * called from any thread. If it cannot, returns NULL and sets *err, and the process is not
	 * traced. child_recorded() ends the recording after the process has ended or could not be
	 * traced. NULL: children are not recorded.
	 */
	const struct recording_link *(*child_recording)(void *ctx, uint32_t pid, struct err *err);
	void (*child_recorded)(void *ctx, const struct recording_link *recording);
	/* Takes the snapshot of a process that is about to exit. Never called for two processes at
	 * once. NULL: no snapshots. */
	int (*snapshot)(void *ctx, struct target *target, struct err *err);
	void *ctx; /* passed to all of these functions */
};

/*
 * Starts the program, and waits until the program and its traced children have ended. The program
 * uses hsnap's standard streams, working folder and Ctrl-C. Returns 0 and the program's exit
 * status. Returns -ERR_START, -ERR_BITS, -ERR_INJECT or -ERR_CANNOT_TRACE if the program was ended
 * before its own code began. Returns the result of the snapshot, with the exit status, if the
 * snapshot failed. If a child cannot be traced or read, a line is printed to standard error.
 *
 * At the end of the time limit, takes a snapshot of each running process, ends the process and
 * prints a line. The exit status is then RUN_LATE.
 *
 * A program of the other bitness is not run here: see run_other_hsnap().
 */
#define RUN_LATE 124 /* the exit status that timeout(1) uses */
int run_program(const struct program_run *run, uint32_t *exit_status, struct err *err);

/* Programs of the other bitness. A different hsnap traces these. */

#define HSNAP_32 "hsnap32.exe"
#define NOT_BESIDE " is not beside this hsnap"
#define HSNAP_64 "hsnap.exe"

/*
 * Starts the 32-bit hsnap next to this one with the same arguments, and waits until it has ended.
 * The other hsnap uses this one's streams, handles Ctrl-C, and is ended when this hsnap is
 * terminated. name: the program that turned out to be 32-bit, for messages. Returns 0 and the other
 * hsnap's exit status, after the other hsnap has printed all messages. Returns -ERR_BITS if the
 * other hsnap does not exist, -ERR_64_BITS if this is a 32-bit hsnap, -ERR_START or -ERR_NOMEM.
 */
int run_other_hsnap(const char *name, uint32_t *exit_status, struct err *err);

/*
 * With --children, the other hsnap also follows child processes of the other bitness. Its arguments
 * are these words, followed by the arguments of this hsnap: FOLLOW_COMMAND PID TID PARENT READY
 * LOCK UNTIL.
 */
#define FOLLOW_COMMAND "--follow"
#define FOLLOW_WORDS 7

/* Parses these words. After that, run_program() does not start a program, but follows the child.
 * Returns 0 or -ERR_USAGE. */
int control_parse_follow(int argc, char **argv);

/* Returns true if another hsnap has handed a child over to this one. Sets *until_ms to the other
 * hsnap's program_run.until_ms. */
bool follow_is_wanted(int64_t *until_ms);

/* Makes this process ignore Ctrl-C and Ctrl-Break. A child on the same console receives them, and
 * hsnap waits for the child. */
void run_leave_interrupts(void);

/*
 * Attaches to a running process, and detaches from it.
 *
 * Only one hsnap controls a process at a time. Other hsnaps wait for a limited time.
 */

struct attach_options {
	uint64_t limit_bytes; /* limit for the tracer's tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	const struct recording_link *recording; /* or NULL */
	bool keep_bstr_cache; /* false: COM is set to free strings at once */
};

/*
 * Loads the tracer into the process, unless it is loaded already, and turns it on. Sets
 * *limit_found to the limit of the tracer's tables, which is lower than requested if address space
 * is short. A recording can also begin if the tracer is already on; the tracer's other settings
 * then stay unchanged.
 *
 * Returns 0, or an error, after which the process continues as before: -ERR_TRACED (nothing was
 * changed), -ERR_BITS (nothing was done; the other hsnap can do it), -ERR_BUSY, -ERR_NO_PROCESS,
 * -ERR_RIGHTS, -ERR_GONE, -ERR_INJECT, -ERR_CANNOT_TRACE, -ERR_TARGET (another version's tracer),
 * -ERR_USAGE (the process is hsnap itself), -ERR_SYSTEM, -ERR_NOMEM.
 */
int control_attach(
	uint32_t pid, const struct attach_options *options, uint64_t *limit_found, struct err *err);

/* Warns on standard error if the tables have less room than wanted. */
void control_warn_of_limit(const char *name, uint64_t limit_bytes, uint64_t wanted_bytes);

/* Turns the tracer off and removes its hooks. Returns 0; -ERR_NOT_TRACED; -ERR_BUSY (the tracer
 * stays on); or errors like control_attach(). */
int control_detach(uint32_t pid, struct err *err);

/* Ends a recording. Turns the tracer off if it was on only for the recording. Returns the same
 * values as control_detach(). */
int control_end_recording(uint32_t pid, struct err *err);

#endif
