/* Loading of the tracer into a process, either before the program's first instruction or while the
 * program runs. */
#ifndef SNAPSHOT_CONTROL_INJECT_WINDOWS_H
#define SNAPSHOT_CONTROL_INJECT_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "snapshot/control/refusal.h"
#include "snapshot/control/tracee_windows.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/target/target.h"

/*
 * Injection of the tracer into a process that was created suspended.
 *
 * Four calls are queued to the first thread of the process. The thread makes them after the loader
 * has finished and before the program's first instruction. The calls load the tracer, set the event
 * `loaded`, wait for the mutex `go`, and close the handle of the mutex. So the program's own thread
 * does everything that it does without hsnap, in the same order. hsnap owns the mutex. If hsnap
 * dies meanwhile, the wait ends and the thread continues.
 */

struct injection {
	HANDLE process; /* owned by the caller */
	HANDLE loaded, go; /* `loaded` is an event, `go` a mutex */
	/* values of the handles for `loaded` and `go` in the process */
	HANDLE their_loaded, their_go;
	void *their_path;
	bool is_queued; /* the thread may be using the process's handles and path */
};

/* Prepares an injection, before the thread is resumed. `name` is used in messages. Returns 0 or
 * -ERR_INJECT. The caller must always call injection_release(). */
int injection_prepare(struct injection *injection, HANDLE process, HANDLE thread, const char *name,
	struct err *err);

enum injection_state {
	INJECTION_LOADED, /* the thread has tried to load the tracer and is waiting */
	INJECTION_ENDED, /* the process ended before the tracer was loaded */
	INJECTION_LATE, /* the time limit is over */
	INJECTION_ORPHANED, /* the parent has exited, and the thread was probably never resumed */
};

/* Waits until the thread has loaded the tracer. `parent` is a HANDLE of the process that will
 * resume the thread, or NULL if the thread is running. `until_ms` is as in inject_wait_any(). */
enum injection_state injection_wait(struct injection *injection, HANDLE parent, int64_t until_ms);

/* Lets the thread continue to the program, and closes everything. If the thread was not seen
 * waiting, it may still use some objects, which therefore stay open in its process. */
void injection_release(struct injection *injection);

/* Waits for any of the handles, and returns the result of WaitForMultipleObjects(). Returns
 * WAIT_TIMEOUT when os_clock_ms() reaches `until_ms` (0: no limit). */
DWORD inject_wait_any(DWORD count, const HANDLE *handles, int64_t until_ms);

/*
 * A process that is traced from before its first instruction until its end.
 *
 * One thread of hsnap prepares the process, brings it up and follows it until the process ends. The
 * thread, or hsnap as a whole, may end earlier for any reason. All objects for which the process
 * waits are then released, so the process continues.
 */

struct traced {
	HANDLE process; /* owned by the caller */
	const char *name; /* for messages; owned by the caller */
	struct control_facts facts;
	struct target target; /* open while the process is prepared */
	/* held until the process is brought up, so that control_attach() waits */
	struct process_lock lock;
	struct injection injection;
	uint64_t area_addr;
	/* actual limit of the tables; lower than requested if address space is short */
	uint64_t limit_bytes;
	/* Events shared with the process. NULL: not used. */
	HANDLE exit_reached, exit_continue, child_created, child_taken;
};

struct traced_options {
	/* if TRACER_FLAG_CHILDREN is set, the process announces its children */
	struct install_options install;
	bool stops_at_exit;
	int64_t until_ms; /* end of the time limit, in the time of os_clock_ms(); 0: none */
};

enum traced_event {
	TRACED_ENDED,
	TRACED_LATE, /* the time limit is over */
	TRACED_AT_EXIT, /* reported once; the process waits until exit_continue is set */
	/* traced_child() identifies the child; the process waits until child_taken is set */
	TRACED_CHILD,
};

/*
 * Makes the first thread load the tracer as soon as the thread runs. The thread must not have run
 * yet. `process` has the rights TRACED_RIGHTS. Returns 0; -ERR_BITS or -ERR_CANNOT_TRACE (nothing
 * was written into the process); -ERR_INJECT; or -ERR_TRACED if another hsnap is working on the
 * process, for example because it follows all children of this hsnap. The caller must always call
 * traced_release().
 */
#define TRACED_RIGHTS                                                                              \
	(PROCESS_VM_READ | PROCESS_VM_WRITE | PROCESS_VM_OPERATION | PROCESS_DUP_HANDLE |          \
		PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME | SYNCHRONIZE)
#define TRACED_THREAD_RIGHTS (THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION)
int traced_prepare(
	struct traced *traced, HANDLE process, HANDLE thread, const char *name, struct err *err);

/*
 * Waits until the first thread has loaded the tracer, turns the tracer on, and lets the program
 * begin. `parent` is a HANDLE of the process that will resume the thread, or NULL if the thread was
 * already resumed. Returns 0 even if the process exits or the time limit ends first. After an
 * error, the thread waits until traced_release(), or was never resumed.
 */
int traced_bring_up(struct traced *traced, HANDLE parent, const struct traced_options *options,
	struct err *err);

enum traced_event traced_wait(struct traced *traced, int64_t until_ms);

/* The child in a TRACED_CHILD event. The ids come from the process, so they may be any numbers.
 * traced_child() returns false if the ids cannot be read. */
struct traced_child {
	uint32_t pid, tid;
};

bool traced_child(struct traced *traced, struct traced_child *child);

void traced_release(struct traced *traced);

/* Loading the tracer into a running process. */

#define LOAD_RIGHTS (PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION | PROCESS_VM_WRITE | SYNCHRONIZE)

/*
 * Makes a new thread of the process load the DLL that is next to hsnap, and waits until the thread
 * ends. Waits at most ten seconds, because another thread may hold the loader lock. After that,
 * leaves the thread and its copy of the path in the process. If the DLL is loaded later, it does
 * nothing. `name` is used in messages, and `facts` explain a failure. Returns 0 if the thread has
 * ended; -ERR_CANNOT_TRACE, -ERR_INJECT, -ERR_BUSY (ten seconds have passed), -ERR_GONE or
 * -ERR_NOMEM.
 */
int inject_load_tracer(
	HANDLE process, const char *name, const struct control_facts *facts, struct err *err);

/* Makes a new thread of the process call a function without arguments. Returns false if the
 * function has not returned in time. */
bool inject_call(HANDLE process, uint64_t function);

int inject_not_loaded(
	const struct control_facts *facts, enum refusal_way way, const char *name, struct err *err);

#endif
