/*
 * All threads of another process, standing still where they can be looked at and moved on.
 *
 * While they are held a helper process (guard_start()) waits for this one to end: however that
 * happens, the threads go on. One process at a time holds another one so, and the next one begins when
 * the last one's helper has ended, too: a helper that came late would let go what is just being held.
 */
#ifndef SNAPSHOT_CONTROL_THREADS_WINDOWS_H
#define SNAPSHOT_CONTROL_THREADS_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <windows.h>

#include "core/err.h"

struct held_thread {
	DWORD id;
	HANDLE handle;
	uint64_t ip, sp; /* where it will go on, and its stack */
};

struct threads {
	HANDLE process; /* the caller's */
	const char *name; /* for messages; the caller's */
	HANDLE turn; /* an object whose name says which process is held */
	struct guard *guard;
	struct held_thread *items;
	size_t count, cap;
	bool is_held;
};

void threads_init(struct threads *threads, HANDLE process, const char *name);

/* Lets them go if they are held. */
void threads_release(struct threads *threads);

/*
 * How many threads the process has now; 0: not known. A process whose one thread waits for this one
 * needs not be held.
 */
size_t threads_count(HANDLE process);

/*
 * Stops them all, also those that somebody is just adding, and finds out where each stands. Returns 0;
 * -ERR_GONE, -ERR_RIGHTS (a thread cannot be looked at), -ERR_BUSY (another hsnap holds it), -ERR_SYSTEM (the helper cannot be started,
 * or there are new threads all the time), -ERR_NOMEM: then none is held.
 */
int threads_hold(struct threads *threads, struct err *err);
void threads_let_go(struct threads *threads);

/* Has a held thread go on elsewhere, with its registers as they are; false: it could not be moved. */
bool threads_move(struct held_thread *thread, uint64_t ip);

#endif
