/*
 * A running process of Windows: rights, modules, memory regions, clones, and one hsnap at a
 * time.
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

/* What this process may do to others. */

/*
 * Uses the right to debug any process (SeDebugPrivilege), which elevated administrators have but have
 * to enable: without it the access list of a service decides, and that lets nobody suspend or clone
 * the service. From the first call on; false, and nothing changes, when it is not to be had. Programs
 * started later would have it enabled too, so whoever starts strangers' does not call this.
 */
bool process_enable_debug(void);

/* Handles of processes by their numbers. */

/* Opens a process with all of rights and, when they are to be had, more. Returns 0 and *process, which
 * the caller closes; -ERR_USAGE (hsnap itself), -ERR_NO_PROCESS, -ERR_RIGHTS. */
int process_open(uint32_t pid, DWORD rights, DWORD more, HANDLE *process, struct err *err);

/* When it began, in ms since 1970; 0: not known. */
int64_t process_start_ms(HANDLE process);

/*
 * One hsnap at a time changes a process: attach, detach, and run while the program starts. Two of them would
 * each lay tables and hooks over those of the other, and what the process had recorded would be lost.
 */

/* {0}: none is taken. */
struct process_lock {
	void *mutex;
};

/*
 * Locks the process against other hsnaps that would change it; waits patience_ms at most. The calling thread
 * holds the lock and releases it; it is free, too, when that thread ends. False: another hsnap still holds it, of any
 * session and user. Also true, and without a lock, where the system makes no such object.
 */
bool process_lock_take(struct process_lock *lock, uint32_t pid, uint32_t patience_ms);

/* Also of a lock that was never taken. */
void process_lock_release(struct process_lock *lock);

/* Named objects that other hsnaps of this machine see (shared_name_windows.c). */

/* Makes or opens an object by its full name, as CreateEventW() and OpenEventW() do. */
typedef HANDLE (*shared_name_fn)(const wchar_t *full, void *ctx);

/* Makes an object for all sessions, or for this one where the system refuses that. *space: the prefix of its name. Returns
 * what make() did, with its last error. ERROR_ACCESS_DENIED: an object that this process cannot open has the name. */
HANDLE shared_name_make(const wchar_t *name, shared_name_fn make, void *ctx, const wchar_t **space);

/* Finds an object in either place. Returns what find() did, with its last error. */
HANDLE shared_name_find(const wchar_t *name, shared_name_fn find, void *ctx, const wchar_t **space);

/* Rights on an object for administrators, the system and this user, whichever of them made it. The caller frees
 * lpSecurityDescriptor with LocalFree(); NULL: the system's default. */
void shared_name_rights(SECURITY_ATTRIBUTES *rights);

/* The loaded modules of a live process. */

/* As target_ops.modules: of a 32-bit process those of both kinds, each once. */
int modules_list(struct target *target, struct snapshot *snapshot, struct err *err);

/* The committed memory of a live process. */

/* As target_ops.region; of a large region it may give the part from near addr on. */
int region_query(HANDLE process, uint64_t addr, struct target_region *region);

/*
 * The same, and exactly len bytes at addr, of a process that is read by its clone: what it shares with
 * others (mapped memory) may not be in the clone; that is looked at in the process, and may change
 * meanwhile. Of a process without a clone the two are one.
 */
int region_query_either(HANDLE clone, HANDLE process, uint64_t addr, struct target_region *region);
int region_read_either(HANDLE clone, HANDLE process, uint64_t addr, void *bytes, size_t len);

/*
 * The system's part of snapshot/live/process.h: process snapshots of Windows 8.1 and later, suspension
 * elsewhere.
 */

/* Process handles should have it besides, for clones. */
#define CLONE_RIGHTS PROCESS_CREATE_PROCESS

#endif
