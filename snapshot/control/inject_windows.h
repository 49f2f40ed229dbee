/*
 * Getting the tracer into a process that was created suspended.
 *
 * Its first thread is given four calls to make when the loader is done and before the program's
 * first instruction: load the tracer, say so, wait for hsnap, and close what it has waited for.
 * So the program's own thread does all that it does without hsnap, in the same order. Should hsnap die
 * meanwhile, the thread goes on: what it waits for is a mutex of hsnap's.
 */
#ifndef SNAPSHOT_INJECT_WINDOWS_H
#define SNAPSHOT_INJECT_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

#include "core/err.h"

struct injection {
	HANDLE process; /* the caller's */
	HANDLE loaded, go; /* an event, a mutex */
	HANDLE their_loaded, their_go; /* the same, in the process */
	void *their_path;
	bool is_queued; /* the thread may use what is theirs */
};

/* Before the thread is resumed. Returns 0 or -ERR_INJECT; injection_release() in both cases. name is
 * for messages. */
int injection_prepare(struct injection *injection, HANDLE process, HANDLE thread, const char *name,
	struct err *err);

enum injection_state {
	INJECTION_LOADED, /* the thread has tried to load the tracer and waits */
	INJECTION_ENDED, /* the process has ended before */
	INJECTION_LATE, /* the time is over */
	INJECTION_ORPHANED, /* so has its parent, and the thread does not seem to be resumed */
};

/* After that. parent is a HANDLE of the process that is to resume the thread, or NULL: it runs. until_ms
 * is as for wait_any(). */
enum injection_state injection_wait(struct injection *injection, HANDLE parent, int64_t until_ms);

/* Lets the thread go on to the program, and closes everything; but what a thread that was not seen to
 * wait may still use is left to its process. */
void injection_release(struct injection *injection);

/* What WaitForMultipleObjects() returns of any of them; WAIT_TIMEOUT when os_clock_ms() says until_ms.
 * 0: never. */
DWORD wait_any(DWORD count, const HANDLE *handles, int64_t until_ms);

#endif
