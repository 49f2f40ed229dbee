/*
 * Processes by pid and by name, and what hsnap does to them besides reading.
 */
#ifndef SNAPSHOT_LIVE_PROCESS_H
#define SNAPSHOT_LIVE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>
#include <stdatomic.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "snapshot/target/target.h"

/* Opens a live process for snapshots. Returns 0; -ERR_NO_PROCESS, -ERR_RIGHTS,
 * -ERR_GONE, -ERR_USAGE (hsnap itself), -ERR_64_BITS (and this is a 32-bit hsnap). A 32-bit process has target->bits 32 and a host_peb. target->ops->close() ends it. */
int target_open_live(struct target *target, uint32_t pid, struct err *err);

/* Opens the process that a minidump holds (minidump_memory.c). Returns 0; -ERR_OPEN, -ERR_READ,
 * -ERR_EMPTY, -ERR_NOT_MINIDUMP, -ERR_NO_HEAPS (nothing can be listed), -ERR_NOMEM. */
int target_open_minidump(struct target *target, const char *path, struct err *err);

/* The same for a file that is in memory, which must outlive the target; bytes NULL: it is mapped. */
int target_open_minidump_bytes(
	struct target *target, const void *bytes, size_t len, const char *path, struct err *err);

/* The same as target_open_live() for a process that the caller has a handle of, which stays the caller's. */
int target_open_handle(struct target *target, void *process, struct err *err);

struct process_entry {
	uint32_t pid;
	char *name; /* of its image, without the folder; UTF-8 as it is, hostile */
};

struct process_list {
	struct process_entry *items; /* by pid */
	size_t count, cap;
};

/* All processes but the idle one, those without threads, and hsnap itself. Returns 0, -ERR_SYSTEM or -ERR_NOMEM; then
 * process_list_release() in both cases. */
int process_list_take(struct process_list *list, struct err *err);
void process_list_release(struct process_list *list);

/* Whether a process is called name: "app.exe" is app.exe and app, in any case. */
bool process_is_called(const char *image, const char *name);

/* Whether an hsnap gets its tracer into the process at this moment, or out of it (live_windows.h). */
bool process_is_changing(uint32_t pid);

/*
 * A helper process that continues the target if hsnap is ended while it holds it, in whatever way.
 * process is a HANDLE. NULL: it could not be started.
 */
struct resume_guard;
struct resume_guard *guard_start(void *process);
/* The same, and the helper keeps an inheritable HANDLE open until it ends: who waits for that object to
 * be gone knows that no helper will continue the process any more. */
struct resume_guard *guard_start_keeping(void *process, void *kept);
void guard_arm(struct resume_guard *guard); /* the target is about to be held */
void guard_disarm(struct resume_guard *guard); /* it runs again */
void guard_stop(struct resume_guard *guard);

/* The helper's main(): arguments as guard_start() gives them. Returns its exit status. */
#define GUARD_COMMAND "--guard"
int guard_main(int argc, char **argv);

/* What Windows' page protections let a process do, for live targets and files alike. */

/* PAGE_* as in MEMORY_BASIC_INFORMATION.Protect to enum target_access; a guard page has none. */
unsigned live_protection_access(uint32_t protect);

/* Returns true for memory that was mapped, and still is, without write access. type, protect, allocation_protect: as in
 * MEMORY_BASIC_INFORMATION; an allocation_protect of 0 is unknown. */
bool live_is_read_only_view(uint32_t type, uint32_t protect, uint32_t allocation_protect);

/* Where the files of a 32-bit process's modules lie. */

/*
 * A 32-bit process on 64-bit Windows sees the folder wow64 under the name of system: path with the
 * one put for the other when it lies there (in any case of ASCII letters), else path itself. All are
 * UTF-8, the folders without a backslash at their end.
 */
const char *live_wow64_path(
	struct arena *arena, const char *path, const char *system, const char *wow64);

/*
 * Making a process stand still to be read: by a clone of its memory, which is read instead while the
 * process runs on, or where there is none by suspending it.
 *
 * This is the order of things and what happens when one fails; target_live_windows.c is the system's part.
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
	/* Sees what a clone will not have, while the process is suspended. */
	void (*look)(void *ctx);
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
	void *process, *ctx; /* ctx is for look(), arm() and disarm() */
	void *snapshot, *clone;
	_Atomic(void *) reader; /* what is to be read: the process, or its clone */
	atomic_int state; /* enum hold_state */
	atomic_bool is_over; /* an interrupt came */
	bool without_clones; /* making one failed; it is not tried again */
	bool looks; /* before a clone is made look() is called, and both are of one moment */
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
