/* Processes by pid and by name, and hsnap's operations on them besides reading. */
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

/* Opens a live process for snapshots. Returns 0; -ERR_NO_PROCESS, -ERR_RIGHTS, -ERR_GONE,
 * -ERR_USAGE (hsnap itself), -ERR_64_BITS (and this is a 32-bit hsnap). A 32-bit process has
 * target->bits 32 and a host_peb. target->ops->close() closes it. */
int target_open_live(struct target *target, uint32_t pid, struct err *err);

/* Opens the process in a minidump (minidump_memory.c). Returns 0; -ERR_OPEN, -ERR_READ, -ERR_EMPTY,
 * -ERR_NOT_MINIDUMP, -ERR_NO_HEAPS (nothing can be listed), -ERR_NOMEM. */
int target_open_minidump(struct target *target, const char *path, struct err *err);

/* Opens a minidump in memory, which must outlive the target; bytes NULL: maps the file. */
int target_open_minidump_bytes(
	struct target *target, const void *bytes, size_t len, const char *path, struct err *err);

/* Opens a process like target_open_live(), by a handle that stays the caller's. */
int target_open_handle(struct target *target, void *process, struct err *err);

struct process_entry {
	uint32_t pid;
	char *name; /* file name of its image; UTF-8 as it is, hostile */
};

struct process_list {
	struct process_entry *items; /* in order of pid */
	size_t count, cap;
};

/* Lists all processes except the idle one, those without threads, and hsnap itself. Returns 0,
 * -ERR_SYSTEM or -ERR_NOMEM; the caller calls process_list_release() in both cases. */
int process_list_take(struct process_list *list, struct err *err);
void process_list_release(struct process_list *list);

/* Returns true if a process with that image is called name: app.exe is called "app.exe" and "app",
 * in any case. */
bool process_is_called(const char *image, const char *name);

/* Returns true if an hsnap is putting its tracer into the process at this moment, or removing it
 * (live_windows.h). */
bool process_is_changing(uint32_t pid);

/*
 * Helper process that continues the target if hsnap ends, in whatever way, while it holds the
 * target. process is a HANDLE. guard_start() returns NULL if the helper could not be started.
 */
struct resume_guard;
struct resume_guard *guard_start(void *process);
/* Starts a helper that also keeps an inheritable HANDLE open until it exits: once that object no
 * longer exists, no helper will continue the process any more. */
struct resume_guard *guard_start_keeping(void *process, void *kept);
void guard_arm(struct resume_guard *guard); /* the target is about to be held */
void guard_disarm(struct resume_guard *guard); /* the target runs again */
void guard_stop(struct resume_guard *guard);

/* Runs the helper, with the arguments of guard_start(). Returns its exit status. */
#define GUARD_COMMAND "--guard"
int guard_main(int argc, char **argv);

/* Access by Windows' page protections, for live targets and files alike. */

/* Converts PAGE_* as in MEMORY_BASIC_INFORMATION.Protect to enum target_access; a guard page has no
 * access. */
unsigned live_protection_access(uint32_t protect);

/* Returns true for memory that was mapped, and still is, without write access. type, protect,
 * allocation_protect: as in MEMORY_BASIC_INFORMATION; an allocation_protect of 0 is unknown. */
bool live_is_read_only_view(uint32_t type, uint32_t protect, uint32_t allocation_protect);

/* Files of a 32-bit process's modules. */

/*
 * Returns path with the folder system replaced by wow64 if path is in system (in any case of ASCII
 * letters), otherwise path itself: a 32-bit process on 64-bit Windows sees wow64 under the name of
 * system. All are UTF-8, the folders without a backslash at their end.
 */
const char *live_wow64_path(
	struct arena *arena, const char *path, const char *system, const char *wow64);

/*
 * Holding a process to read it: by a clone of its memory, which is read while the process runs on,
 * or otherwise by suspending the process.
 *
 * This part has the order of the steps and their failures; target_live_windows.c is the system's
 * part. Handles are the system's. A hold is ended once, by the first thread to do so: an interrupt
 * ends it on another thread, for good. If hsnap exits before, the guard continues a suspended
 * process; a clone has no thread and disappears with the last handle.
 *
 * The guard is armed from before the process is suspended until after it runs again. If hsnap is
 * terminated in between, the guard may continue a process that already runs. That does nothing,
 * unless another program has suspended the process as well: threads count their suspensions, and
 * that program's suspension would count one less. The other order could leave the process
 * suspended, which is worse.
 */

struct hold_calls {
	/* Both return true on success. Both NULL: no clones here. */
	bool (*capture)(void *process, void **snapshot);
	bool (*clone)(void *snapshot, void **clone); /* the handle is the snapshot's */
	void (*end_clone)(void *clone);
	void (*free_snapshot)(void *snapshot);
	long (*suspend)(void *process); /* negative: failed */
	void (*resume)(void *process);
	/* Reads state that a clone will lack, while the process is suspended. */
	void (*look)(void *ctx);
	/* The guard: armed before the process is suspended, disarmed after it runs again. */
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
	_Atomic(void *) reader; /* process or clone to be read */
	atomic_int state; /* enum hold_state */
	atomic_bool is_over; /* an interrupt has come */
	bool without_clones; /* making a clone failed; it is not tried again */
	bool looks; /* look() is called before a clone is made, and both are of one moment */
};

void hold_init(struct hold *hold, const struct hold_calls *calls, void *process, void *ctx);

#define HOLD_OVER LONG_MIN /* not a status of any system */

/* Holds the process. Returns 0 or more: the memory of hold->reader stands still; the negative
 * status of suspend(); or HOLD_OVER after an interrupt, and nothing is held. */
long hold_start(struct hold *hold);

/* Ends a hold. Does nothing if nothing is held. */
void hold_end(struct hold *hold);

/* Ends a hold at an interrupt, on any thread at any moment: nothing is held after that. A hold that
 * the other thread has just begun is ended by that thread or, if this process exits before, by the
 * guard. */
void hold_interrupt(struct hold *hold);

/* Returns true if a clone is held, and the process itself runs on. */
bool hold_is_cloned(struct hold *hold);

#endif
