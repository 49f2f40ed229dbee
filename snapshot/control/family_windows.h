/*
 * The first program and the processes that it starts, each under the tracer: one thread for each.
 */
#ifndef SNAPSHOT_FAMILY_WINDOWS_H
#define SNAPSHOT_FAMILY_WINDOWS_H

#include <windows.h>

#include "snapshot/control/run_windows.h"
#include "snapshot/control/traced_windows.h"

struct family {
	const struct run *run;
	struct traced_options options; /* for each */
	CRITICAL_SECTION turn; /* of snapshots, and of what is said */
	volatile LONG count; /* threads that follow one */
	volatile LONG is_late; /* one was ended, as its time was over */
	HANDLE all_ended;
	HANDLE volatile last; /* a thread of those, which outlives all that have left */
};

/* Returns 0 or -ERR_NOMEM. The calling thread is one of those that follow a process. */
int family_init(struct family *family, const struct run *run, struct err *err);

/*
 * Follows a process that was brought up to its end, or ends it when its time is over: takes its snapshot,
 * and has threads follow its children. Returns 0, or what the snapshot returned; -ERR_NO_EXIT.
 */
int family_follow(struct family *family, struct traced *traced, struct err *err);

/* The calling thread has no process to follow any more: waits until that is true of all, and releases. */
void family_end(struct family *family);

#endif
