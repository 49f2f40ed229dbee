/*
 * All threads of another process, suspended so that hsnap can inspect and move them.
 *
 * While the threads are suspended, a helper process (guard_start()) waits for this hsnap to end. If
 * this hsnap ends for any reason, the helper resumes the threads. Only one hsnap at a time can hold
 * the threads of a process. The next hsnap must also wait until the helper of the previous one has
 * exited, because a late helper would resume threads that were just suspended.
 */
#ifndef SNAPSHOT_CONTROL_THREADS_WINDOWS_H
#define SNAPSHOT_CONTROL_THREADS_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "snapshot/live/live_windows.h"

struct held_thread {
	DWORD id;
	HANDLE handle;
	uint64_t ip, sp; /* address where the thread will continue, and its stack pointer */
};

struct threads {
	HANDLE process; /* owned by the caller */
	const char *name; /* for messages; owned by the caller */
	HANDLE lock; /* object whose name identifies the held process */
	struct resume_guard *guard;
	struct held_thread *items;
	size_t count, cap;
	bool is_held;
};

void threads_init(struct threads *threads, HANDLE process, const char *name);

/* Resumes the threads if they are held. */
void threads_release(struct threads *threads);

/* Returns the current number of threads of the process, or 0 if it is not known. A process need not
 * be held if its only thread is waiting for this hsnap. */
size_t threads_count(HANDLE process);

/*
 * Suspends all threads, including any that start meanwhile, and reads where each thread is. Returns
 * 0, or an error, after which no thread is held: -ERR_GONE, -ERR_RIGHTS (a thread cannot be
 * inspected), -ERR_BUSY (another hsnap holds the process, or its threads change all the time),
 * -ERR_SYSTEM (the helper cannot be started) or -ERR_NOMEM.
 */
int threads_hold(struct threads *threads, struct err *err);
void threads_let_go(struct threads *threads);

/* Makes a held thread continue at another address, with its registers unchanged. Returns false if
 * the thread could not be moved. */
bool threads_move(struct held_thread *thread, uint64_t ip);

#endif
