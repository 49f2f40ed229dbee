/* Traces a program from its start, or a running process. */
#ifndef SNAPSHOT_CONTROL_CONTROL_H
#define SNAPSHOT_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"

/* Recording of a process by its tracer, using rings (snapshot/tracer/rings.h). The rings stay
 * mapped into the process while the tracer is on. */
struct ring_section;

/* State of a process when its recording begins. */
enum recording_start {
	RECORDING_AT_REST, /* no thread is in a heap function, so the blocks can be listed */
	/* some thread is always in a heap function, so blocks that are just being allocated or
	 * freed are not known */
	RECORDING_BUSY,
	RECORDING_TRACED, /* the tracer was already on and knows the blocks */
};

struct recording_link {
	const struct ring_section *rings; /* see snapshot/control/tracee_windows.h */
	/* Called before the first event, while the process is suspended. Returns 0, or an error,
	 * which ends the recording. */
	int (*begin)(void *ctx, struct target *target, uint64_t area_addr,
		enum recording_start start, struct err *err);
	/* Removes all events from the rings. Called when the process is about to end; the process
	 * waits for the return. */
	void (*catch_up)(void *ctx);
	void *ctx;
};

/* A run of a program with the tracer loaded, from before its first instruction until its end. */

struct program_run {
	const char *const *argv; /* program and arguments, NULL-terminated */
	uint64_t limit_bytes; /* limit for the tracer's tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	bool keep_bstr_cache; /* false: COM is set to free strings at once */
	/* also trace the program's child processes and their descendants */
	bool with_children;
	bool with_handles; /* record who opened each handle */
	int64_t limit_ms; /* time limit for the program; 0: none */
	/* end of the time limit or of a recording, in the time of os_clock_ms(); 0: none */
	int64_t until_ms;
	const struct recording_link *recording; /* recording of the first program, or NULL */
	/*
	 * If `with_children` is set, creates a recording for a child process that is being started.
	 * May be called from any thread. On failure, returns NULL and sets `*err`; the child is
	 * then not traced. child_recorded() ends the recording after the child has ended or could
	 * not be traced. NULL: children are not recorded.
	 */
	const struct recording_link *(*child_recording)(void *ctx, struct err *err);
	void (*child_recorded)(void *ctx, const struct recording_link *recording);
	/* Captures a process that is about to exit. Never called for two processes at once. NULL:
	 * no snapshots. */
	int (*snapshot)(void *ctx, struct target *target, struct err *err);
	void *ctx; /* passed to all functions of this struct */
};

/*
 * Starts the program, and waits until the program and its traced children have ended. The program
 * uses hsnap's standard streams, working folder and Ctrl-C. Returns 0 and the program's exit
 * status. Returns -ERR_START, -ERR_BITS, -ERR_INJECT or -ERR_CANNOT_TRACE if the program was ended
 * before its own code began. If the snapshot failed, returns the result of the snapshot, and the
 * exit status. Prints a line to standard error if a child cannot be traced or read.
 *
 * At the end of the time limit, takes a snapshot of each running process, ends the process and
 * prints a line. The exit status is then RUN_LATE.
 *
 * A program of the other bitness is not run here: see run_other_hsnap().
 */
#define RUN_LATE 124 /* exit status that timeout(1) uses */
int run_program(const struct program_run *run, uint32_t *exit_status, struct err *err);

/* Names of the hsnap programs. Each traces programs of its own bitness. */

#define HSNAP_32 "hsnap32.exe"
#define NOT_BESIDE " is not beside this hsnap"
#define HSNAP_64 "hsnap.exe"

/*
 * Starts the 32-bit hsnap that is next to this one, with the same arguments, and waits until it has
 * ended. The other hsnap uses this hsnap's streams and handles Ctrl-C. It is ended when this hsnap
 * is terminated. `name` is the 32-bit program that the user wants to run; it is used in messages.
 * Returns 0 and the other hsnap's exit status, after the other hsnap has printed all messages.
 * Returns -ERR_BITS if the other hsnap does not exist, -ERR_64_BITS if this is a 32-bit hsnap,
 * -ERR_START or -ERR_NOMEM.
 */
int run_other_hsnap(const char *name, uint32_t *exit_status, struct err *err);

/*
 * With --children, the other hsnap also follows child processes of its bitness. Its arguments then
 * begin with these words: FOLLOW_COMMAND PID TID PARENT READY LOCK UNTIL. The arguments of this
 * hsnap come next.
 */
#define FOLLOW_COMMAND "--follow"
#define FOLLOW_WORDS 7

/* Parses the words after FOLLOW_COMMAND. After that, run_program() follows the child instead of
 * starting a program. Returns 0 or -ERR_USAGE. */
int control_parse_follow(int argc, char **argv);

/* Returns true if another hsnap has handed a child over to this one. Sets `*until_ms` to the other
 * hsnap's program_run.until_ms. */
bool follow_is_wanted(int64_t *until_ms);

/* Makes this process ignore Ctrl-C and Ctrl-Break. A child on the same console receives them, and
 * hsnap waits for the child to end. */
void run_leave_interrupts(void);

/*
 * Attaching to a running process, and detaching from it.
 *
 * Only one hsnap controls a process at a time. Other hsnaps wait for a limited time.
 */

struct attach_options {
	uint64_t limit_bytes; /* limit for the tracer's tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	const struct recording_link *recording; /* or NULL */
	bool keep_bstr_cache; /* false: COM is set to free strings at once */
	bool with_handles; /* record who opened each handle */
};

/*
 * Loads the tracer into the process, unless it is loaded already, and turns it on. Sets
 * `*limit_found` to the actual limit of the tracer's tables, which is lower than requested if
 * address space is short. A recording can also begin if the tracer is already on; the tracer's
 * other settings then stay unchanged.
 *
 * Returns 0, or an error, after which the process continues as before: -ERR_TRACED (nothing was
 * changed), -ERR_BITS (nothing was done; the other hsnap can do it), -ERR_BUSY, -ERR_NO_PROCESS,
 * -ERR_RIGHTS, -ERR_GONE, -ERR_INJECT, -ERR_CANNOT_TRACE, -ERR_TARGET (another version's tracer),
 * -ERR_USAGE (the process is hsnap itself), -ERR_SYSTEM, -ERR_NOMEM.
 */
int control_attach(
	uint32_t pid, const struct attach_options *options, uint64_t *limit_found, struct err *err);

/* Prints a warning to standard error if the tables have less room than requested. */
void control_warn_of_limit(const char *name, uint64_t limit_bytes, uint64_t wanted_bytes);

/* Turns the tracer off and removes its hooks. Returns 0; -ERR_NOT_TRACED; -ERR_BUSY (the tracer
 * stays on); or an error of control_attach(). */
int control_detach(uint32_t pid, struct err *err);

/* Ends a recording. If the tracer was on only for the recording, turns the tracer off. Returns the
 * same values as control_detach(). */
int control_end_recording(uint32_t pid, struct err *err);

#endif
