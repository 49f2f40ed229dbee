/*
 * A running process of Windows: rights, modules, memory regions, clones, and one hsnap at a time.
 */
#ifndef SNAPSHOT_LIVE_LIVE_WINDOWS_H
#define SNAPSHOT_LIVE_LIVE_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/target/target.h"

/* Rights of this process on other processes. */

/*
 * Enables the right to debug any process (SeDebugPrivilege), which elevated administrators have but
 * need to enable. Without it the access list of a service decides, which lets no user suspend or
 * clone the service. Holds from the first call on. Returns false, and changes nothing, if the right
 * is not available. Programs started later would have it enabled too, so a caller that starts
 * foreign programs does not call this.
 */
bool process_enable_debug(void);

/* Opens a process with all of rights and, if they are available, more. Returns 0 and *process,
 * which the caller closes; -ERR_USAGE (hsnap itself), -ERR_NO_PROCESS, -ERR_RIGHTS. */
int process_open(uint32_t pid, DWORD rights, DWORD more, HANDLE *process, struct err *err);

/* Returns when the process began, in ms since 1970; 0: unknown. */
int64_t process_start_ms(HANDLE process);

/*
 * Lock of a process: one hsnap at a time changes it, by attach, detach, and run while the program
 * starts. Otherwise two hsnaps would put tables and hooks over each other's, and the process's
 * recorded data would be lost.
 */

/* {0}: no lock is held. */
struct process_lock {
	void *mutex;
};

/*
 * Locks the process against other hsnaps that would change it; waits patience_ms at most. The
 * calling thread holds the lock and releases it; the lock is also free when that thread ends.
 * Returns false if another hsnap, of any session and user, still holds it. Returns true, without a
 * lock, if the system makes no such object.
 */
bool process_lock_take(struct process_lock *lock, uint32_t pid, uint32_t patience_ms);

/* Releases the lock. Does nothing if it was never taken. */
void process_lock_release(struct process_lock *lock);

/* Named objects that other hsnaps of this machine see (shared_name_windows.c). */

/* Makes or opens an object by its full name, as CreateEventW() and OpenEventW() do. */
typedef HANDLE (*shared_name_fn)(const wchar_t *full, void *ctx);

/* Makes an object for all sessions, or for this one if the system refuses that. *space: the prefix
 * of its name. Returns the result of make(), with its last error. ERROR_ACCESS_DENIED: an object
 * that this process cannot open has the name. */
HANDLE shared_name_make(const wchar_t *name, shared_name_fn make, void *ctx, const wchar_t **space);

/* Finds an object in either namespace. Returns the result of find(), with its last error. */
HANDLE shared_name_find(const wchar_t *name, shared_name_fn find, void *ctx, const wchar_t **space);

/* Sets the rights on an object for administrators, the system and this user, whichever of them
 * makes it. The caller frees lpSecurityDescriptor with LocalFree(); NULL: the system's default. */
void shared_name_rights(SECURITY_ATTRIBUTES *rights);

/* Implements target_ops.modules. For a 32-bit process it lists the modules of both kinds, each
 * once. */
int modules_list(struct target *target, struct snapshot *snapshot, struct err *err);

/* Implements target_ops.region. For a large region it may return the part from near addr on. */
int region_query(HANDLE process, uint64_t addr, struct target_region *region);

/*
 * Query a region, and read exactly len bytes at addr, of a process that is read by its clone.
 * Memory that the process shares with others (mapped memory) may not be in the clone; that is read
 * in the process, and may change meanwhile. Without a clone, both handles are the process's.
 */
int region_query_either(HANDLE clone, HANDLE process, uint64_t addr, struct target_region *region);
int region_read_either(HANDLE clone, HANDLE process, uint64_t addr, void *bytes, size_t len);

/*
 * The system's part of holds (snapshot/live/process.h): process snapshots of Windows 8.1 and later,
 * suspension elsewhere.
 */

/* Additional right of process handles, for clones. */
#define CLONE_RIGHTS PROCESS_CREATE_PROCESS

#endif
