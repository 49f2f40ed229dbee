/* Processes, by pid and by name, and all operations on them except reading memory. */
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

/*
 * Opens a live process for snapshots. Returns 0; -ERR_NO_PROCESS, -ERR_RIGHTS, -ERR_GONE,
 * -ERR_USAGE (the process is hsnap itself), or -ERR_64_BITS (this hsnap is 32-bit, the process is
 * not). For a 32-bit process, target->bits is 32 and target->host_peb is set. target->ops->close()
 * closes the process.
 */
int target_open_live(struct target *target, uint32_t pid, struct err *err);

/* Opens the process stored in a minidump (minidump_memory.c). Returns 0; -ERR_OPEN, -ERR_READ,
 * -ERR_EMPTY, -ERR_NOT_MINIDUMP, -ERR_NO_HEAPS (the minidump lacks the heaps), or -ERR_NOMEM. */
int target_open_minidump(struct target *target, const char *path, struct err *err);

/* Opens a minidump in memory, which must outlive the target. If bytes is NULL, maps the file. */
int target_open_minidump_bytes(
	struct target *target, const void *bytes, size_t len, const char *path, struct err *err);

/* Like target_open_live(), but uses a handle that the caller still owns. */
int target_open_handle(struct target *target, void *process, struct err *err);

struct process_entry {
	uint32_t pid;
	char *name; /* file name of the process's image, in unmodified UTF-8; untrusted */
};

struct process_list {
	struct process_entry *items; /* sorted by pid */
	size_t count, cap;
};

/* Lists all processes, except the idle process, processes without threads, and hsnap itself.
 * Returns 0, -ERR_SYSTEM or -ERR_NOMEM. The caller must always call process_list_release(). */
int process_list_capture(struct process_list *list, struct err *err);
void process_list_release(struct process_list *list);

/* Returns true if `name` is a name of a process with this image, ignoring case: "app.exe" and "app"
 * are names of APP.EXE. */
bool process_is_called(const char *image, const char *name);

/* Returns true if another hsnap is adding its tracer to the process or removing it
 * (live_windows.h). */
bool process_is_changing(uint32_t pid);

/* Helper process that resumes the target if hsnap ends, for any reason, while it holds the target.
 * `process` is a HANDLE. guard_start() returns NULL if the helper could not be started. */
struct resume_guard;
struct resume_guard *guard_start(void *process);
/* Like guard_start(), but the helper also keeps the inheritable HANDLE `kept` open until it exits.
 * So when the object of the handle no longer exists, no helper can resume the process any more. */
struct resume_guard *guard_start_keeping(void *process, void *kept);
void guard_arm(struct resume_guard *guard); /* the target is about to be held */
void guard_disarm(struct resume_guard *guard); /* the target is running again */
void guard_stop(struct resume_guard *guard);

/* Runs the helper with the arguments that guard_start() passes. Returns the helper's exit
 * status. */
#define GUARD_COMMAND "--guard"
int guard_main(int argc, char **argv);

/* Conversion of Windows' page protections to accesses, for live targets and files. */

/* Converts PAGE_*, as in MEMORY_BASIC_INFORMATION.Protect, to enum target_access. A guard page has
 * no access. */
unsigned live_protection_access(uint32_t protect);

/* Returns true for mapped memory that has no write access and never had any. The arguments are the
 * fields of MEMORY_BASIC_INFORMATION. `allocation_protect` is 0 if it is not known. */
bool live_is_read_only_view(uint32_t type, uint32_t protect, uint32_t allocation_protect);

/* Returns true if the pages are copies that the process has made by writing to an image or a view.
 * The system changes the protection of such pages from PAGE_WRITECOPY to PAGE_READWRITE. */
bool live_is_copy(uint32_t type, uint32_t protect, uint32_t allocation_protect);

/* Files of a 32-bit process's modules. */

/*
 * Returns `path` with the folder `system` replaced by `wow64`. Returns `path` itself if it is not
 * in `system`. Ignores the case of ASCII letters. This is needed because a 32-bit process on 64-bit
 * Windows sees `wow64` under the name of `system`. All strings are UTF-8. The folders do not end
 * with a backslash.
 */
const char *live_wow64_path(
	struct arena *arena, const char *path, const char *system, const char *wow64);

/*
 * Holding a process in order to read it. If possible, hsnap clones the process's memory and reads
 * the clone while the process continues. Otherwise hsnap suspends the process.
 *
 * This part defines the order of the steps and handles their failures. target_live_windows.c is the
 * system-specific part. All handles are those of the system. Any thread may end a hold, and only
 * the first attempt has an effect. An interrupt ends holds permanently, on another thread. If hsnap
 * exits before the end, the guard resumes a suspended process. A clone has no threads, and
 * disappears when its last handle is closed.
 *
 * The guard is armed before the process is suspended, and is disarmed after the process runs again.
 * If hsnap is terminated in between, the guard may resume a process that is already running. This
 * has no effect, unless another program has suspended the process, too: threads count their
 * suspensions, so the other program's suspension would end early. In the opposite order, the
 * process could stay suspended, which would be worse.
 */

struct hold_calls {
	/* Both return true on success. Both are NULL if the system cannot make clones. */
	bool (*capture)(void *process, void **snapshot);
	bool (*clone)(void *snapshot, void **clone); /* the snapshot owns the clone's handle */
	void (*end_clone)(void *clone);
	void (*free_snapshot)(void *snapshot);
	long (*suspend)(void *process); /* returns a negative status if it fails */
	void (*resume)(void *process);
	/* Reads state that the clone will lack. Called while the process is suspended. */
	void (*look)(void *ctx);
	/* The guard: armed before the process is suspended, disarmed after the process runs
	 * again. */
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
	void *process, *ctx; /* ctx is passed to look(), arm() and disarm() */
	void *snapshot, *clone;
	_Atomic(void *) reader; /* handle for reading: the process or its clone */
	atomic_int state; /* enum hold_state */
	atomic_bool is_over; /* an interrupt has occurred */
	bool without_clones; /* making a clone has failed and is not tried again */
	/* call look() before a clone is made, so that its results and the clone show the same
	 * state */
	bool looks;
};

void hold_init(struct hold *hold, const struct hold_calls *calls, void *process, void *ctx);

#define HOLD_OVER LONG_MIN /* differs from every system status */

/*
 * Holds the process. Returns 0 or more if the memory of hold->reader no longer changes. Returns the
 * negative status of suspend() if suspending failed. Returns HOLD_OVER after an interrupt, when
 * nothing is held.
 */
long hold_start(struct hold *hold);

/* Ends a hold. Does nothing if nothing is held. */
void hold_end(struct hold *hold);

/*
 * Ends a hold because of an interrupt. May be called on any thread, at any moment. No process is
 * held after that. If another thread has just begun a hold, that thread ends it. If hsnap exits
 * before the hold has ended, the guard ends it.
 */
void hold_interrupt(struct hold *hold);

/* Returns true if a clone is held, and the process itself continues to run. */
bool hold_is_cloned(struct hold *hold);

#endif
