/* What Windows' page protections let a process do, for live targets and files alike. */
#ifndef SNAPSHOT_LIVE_LIVE_H
#define SNAPSHOT_LIVE_LIVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <stdatomic.h>

#include "core/base/memory.h"

/* PAGE_* as in MEMORY_BASIC_INFORMATION.Protect to enum target_access; a guard page has none. */
unsigned protection_access(uint32_t protect);

/* Where the files of a 32-bit process's modules lie. */

/*
 * A 32-bit process on 64-bit Windows sees the folder wow64 under the name of system: path with the
 * one put for the other when it lies there (in any case of ASCII letters), else path itself. All are
 * UTF-8, the folders without a backslash at their end. NULL: out of memory.
 */
const char *wow64_path(
	struct arena *arena, const char *path, const char *system, const char *wow64);

/*
 * Making a process stand still to be read: by a clone of its memory, which is read instead while the
 * process runs on, or where there is none by suspending it.
 *
 * This is the order of things and what happens when one fails; clone_windows.c is the system's part.
 * Handles are the system's. What was begun is ended once, by whoever comes first: an interrupt ends it
 * on another thread, for good. Should hsnap end without it, the guard continues a suspended process; a
 * clone has no thread and goes with the last handle.
 *
 * The guard is armed from before the process is suspended until after it runs again: ended in between
 * by force, hsnap may leave it to continue a process that runs already. That does nothing, unless
 * somebody else has suspended the process as well: threads count how often they were suspended, and
 * theirs would count one less. The other order could leave the process suspended, which is worse.
 */

struct hold_calls {
	/* Each of the first two returns true when there is one. NULL, both: no clones here. */
	bool (*capture)(void *process, void **snapshot);
	bool (*clone)(void *snapshot, void **clone); /* the handle is the snapshot's */
	void (*end_clone)(void *clone);
	void (*free_snapshot)(void *snapshot);
	long (*suspend)(void *process); /* negative: it could not */
	void (*resume)(void *process);
	/* The guard: told before the process is suspended, and after it runs again. */
	void (*arm)(void *ctx);
	void (*disarm)(void *ctx);
};

enum hold_state {
	HOLD_NONE,
	HOLD_CLONED,
	HOLD_SUSPENDED,
};

struct hold {
	const struct hold_calls *calls;
	void *process, *ctx; /* ctx is for arm() and disarm() */
	void *snapshot, *clone;
	_Atomic(void *) reader; /* what is to be read: the process, or its clone */
	atomic_int state; /* enum hold_state */
	atomic_bool is_over; /* an interrupt came */
	bool without_clones; /* making one failed; it is not tried again */
};

void hold_init(struct hold *hold, const struct hold_calls *calls, void *process, void *ctx);

#define HOLD_OVER LONG_MIN /* no status of a system's */

/* Returns a value from 0 on, and hold->reader stands still; the negative one of suspend(); or HOLD_OVER
 * after an interrupt, and nothing is held. */
long hold_start(struct hold *hold);

/* Harmless when nothing is held. */
void hold_end(struct hold *hold);

/* hold_end() for an interrupt, on any thread at any moment: nothing is held from now on. What the
 * other thread has just begun it ends itself, or, when this process ends before, the guard does. */
void hold_interrupt(struct hold *hold);

/* Whether the process itself runs on. */
bool hold_is_cloned(struct hold *hold);

#endif
