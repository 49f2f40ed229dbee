/* Tracing a program from its start, or a process that runs. */
#ifndef SNAPSHOT_CONTROL_CONTROL_H
#define SNAPSHOT_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"

/*
 * A recording of what a process does, as its tracer says it in rings (snapshot/tracer/rings.h): control has them
 * mapped into the process as long as the tracer is on.
 */
struct ring_section;

/* How a process stands when its recording begins. */
enum recording_start {
	RECORDING_AT_REST, /* no thread is in a heap's function: its blocks can be listed */
	RECORDING_BUSY, /* one always is: the blocks that threads allocate or free at the moment are not known */
	RECORDING_TRACED, /* its tracer was on before, and knows the blocks */
};

struct recording_link {
	const struct ring_section *rings; /* snapshot/control/control_windows.h */
	/* Called before the first event, while the process stands still: 0, or an error, which ends it all. */
	int (*begin)(void *ctx, struct target *target, uint64_t area_addr,
		enum recording_start start, struct err *err);
	/* The process is about to end, and waits: takes out what is in the rings. */
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
	bool keep_bstr_cache; /* else COM is told not to keep freed strings */
	bool with_children; /* trace the processes that it starts, too, and those that they start */
	int64_t limit_ms; /* so long they may take; 0: as long as they want */
	int64_t until_ms; /* by os_clock_ms(): the end of that, or of a recording; 0: none */
	const struct recording_link *recording; /* of the program itself; NULL: none is made */
	/* NULL: none are made; else with_children makes a recording for a process that is being started, from any thread; NULL and an
	 * error, then that one is not traced. Ended again when the process has, or could not be traced. */
	const struct recording_link *(*child_recording)(void *ctx, uint32_t pid, struct err *err);
	void (*child_recorded)(void *ctx, const struct recording_link *recording);
	/* Takes the snapshot of a process that has come to its end, one at a time. NULL: none is taken. */
	int (*snapshot)(void *ctx, struct target *target, struct err *err);
	void *ctx; /* of all of these */
};

/*
 * Starts the program and waits for its end, and that of the children that are traced. Standard
 * streams, working folder and Ctrl-C are the program's. Returns 0 and its exit status; -ERR_START,
 * -ERR_BITS, -ERR_INJECT and -ERR_CANNOT_TRACE (the program was ended before its own code began), or, with the exit status,
 * what the snapshot returned. A child that cannot be traced or read is a line on standard error.
 *
 * When the time is over, each of those that run has its snapshot taken and is ended, with a line; then
 * the exit status is RUN_LATE.
 *
 * A program of the other bitness is left to the hsnap for it, see run_windows.h.
 */
#define RUN_LATE 124 /* as timeout(1) has it */
int run_program(const struct program_run *run, uint32_t *exit_status, struct err *err);

/*
 * Programs of the other bitness: this hsnap cannot trace them, another one can.
 */

#define HSNAP_32 "hsnap32.exe"
#define HSNAP_64 "hsnap.exe"

/*
 * Starts the 32-bit hsnap that lies beside this one with the same arguments, and waits for its end. It
 * has this one's streams, and Ctrl-C is left to it; it ends when this one is ended. name is what turned
 * out to be 32-bit, for messages. Returns 0 and its exit status: it has said all there is to say.
 * -ERR_BITS: there is none; -ERR_64_BITS: this is a 32-bit one; -ERR_START, -ERR_NOMEM.
 */
int run_other_hsnap(const char *name, uint32_t *exit_status, struct err *err);

/*
 * With --children, a process of the other bitness is left to the other hsnap as well, with these words before the
 * arguments of this one: FOLLOW_COMMAND PID TID PARENT READY LOCK UNTIL.
 */
#define FOLLOW_COMMAND "--follow"
#define FOLLOW_WORDS 7

/* Reads those words. After that run_program() starts no program: it follows that child. 0 or -ERR_USAGE. */
int control_parse_follow(int argc, char **argv);

/* Returns true if a child was handed over to this hsnap; *until_ms is program_run.until_ms of the one that did. */
bool follow_is_wanted(int64_t *until_ms);

/* From now on Ctrl-C and Ctrl-Break do not end this process: a child that has the same console gets
 * them, and is waited for. */
void run_leave_interrupts(void);

/*
 * Tracing a process that runs, and leaving it again.
 *
 * One hsnap at a time controls a process: others wait for it, for a while.
 */

struct attach_options {
	uint64_t limit_bytes; /* for the tracer's tables */
	uint64_t sample_bytes; /* 0: everything is recorded */
	const struct recording_link *recording; /* NULL: none is made */
	bool keep_bstr_cache; /* otherwise COM is told not to keep freed strings */
};

/*
 * Loads the tracer into the process unless it is there, and switches it on. *limit_found becomes how
 * much its tables may take: less than wanted when there is not so much address space. A recording also begins where
 * it is on: then it stays as it is. Returns 0; -ERR_TRACED (nothing was changed), -ERR_BITS (another hsnap can: nothing was done), -ERR_BUSY,
 * -ERR_NO_PROCESS, -ERR_RIGHTS, -ERR_GONE, -ERR_INJECT, -ERR_CANNOT_TRACE, -ERR_TARGET (another version's tracer),
 * -ERR_USAGE (hsnap itself), -ERR_SYSTEM, -ERR_NOMEM: the process runs on as before.
 */
int control_attach(
	uint32_t pid, const struct attach_options *options, uint64_t *limit_found, struct err *err);

/* Switches the tracer off and takes its hooks out. Returns 0; -ERR_NOT_TRACED, -ERR_BUSY (it goes on
 * tracing), and errors as control_attach(). */
int control_detach(uint32_t pid, struct err *err);

/* Ends a recording, and switches the tracer off if it was on for that alone. Returns as control_detach(). */
int control_end_recording(uint32_t pid, struct err *err);

#endif
