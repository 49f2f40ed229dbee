/*
 * A process under the tracer, from before its first instruction to its end.
 *
 * One thread prepares it, brings it up and follows it to its end. Whatever becomes of that thread or of
 * hsnap, the process goes on: all that it waits for ends with them.
 */
#ifndef SNAPSHOT_TRACED_WINDOWS_H
#define SNAPSHOT_TRACED_WINDOWS_H

#include <windows.h>

#include "snapshot/control/inject_windows.h"
#include "snapshot/control/install_windows.h"
#include "snapshot/live/turn_windows.h"

struct traced {
	HANDLE process; /* the caller's */
	const char *name; /* for messages; the caller's */
	struct target target; /* open while it is prepared */
	struct turn turn; /* until it is brought up: an attach() meanwhile waits */
	struct injection injection;
	uint64_t area_addr;
	uint64_t
		limit_bytes; /* of its tables: less than was asked for where address space is short */
	/* Events that the process has, too; NULL: that was not asked for. */
	HANDLE exit_reached, exit_continue, child_created, child_taken;
};

struct traced_options {
	struct install_options install; /* with TRACER_FLAG_CHILDREN: children are announced */
	bool stops_at_exit;
	int64_t until_ms; /* by os_clock_ms(): so long is waited for the process; 0: for ever */
};

enum traced_event {
	TRACED_ENDED,
	TRACED_LATE, /* the time is over */
	TRACED_AT_EXIT, /* once; it waits until exit_continue is set */
	TRACED_CHILD, /* traced_child() says which; it waits until child_taken is set */
};

/*
 * Has the first thread, which has not run yet, load the tracer when it does. process has the rights
 * TRACED_RIGHTS. Returns 0; -ERR_BITS (the process has nothing of us), -ERR_TRACED (another hsnap is at
 * it, as one that follows all children of this one does), -ERR_INJECT. traced_release() in every case.
 */
#define TRACED_RIGHTS                                                                              \
	(PROCESS_VM_READ | PROCESS_VM_WRITE | PROCESS_VM_OPERATION | PROCESS_DUP_HANDLE |          \
		PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME | SYNCHRONIZE)
#define TRACED_THREAD_RIGHTS (THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION)
int traced_prepare(
	struct traced *traced, HANDLE process, HANDLE thread, const char *name, struct err *err);

/*
 * Waits until that thread has loaded the tracer; switches it on, and lets the program begin. parent is a
 * HANDLE of the process that resumes the thread, or NULL: it was resumed. Returns 0, also when the
 * process ends before, or the time is over; or an error: the thread still waits, until traced_release(),
 * or it was never resumed.
 */
int traced_bring_up(struct traced *traced, HANDLE parent, const struct traced_options *options,
	struct err *err);

enum traced_event traced_wait(struct traced *traced, int64_t until_ms);

/* Whom TRACED_CHILD is about, as the process says: that may be anything. False: it cannot be read. */
struct traced_child {
	uint32_t pid, tid;
};

bool traced_child(struct traced *traced, struct traced_child *child);

void traced_release(struct traced *traced);

#endif
