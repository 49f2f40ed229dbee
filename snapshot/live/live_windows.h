/* A running Windows process: rights, modules, memory regions, clones, and the lock between
 * hsnaps. */
#ifndef SNAPSHOT_LIVE_LIVE_WINDOWS_H
#define SNAPSHOT_LIVE_LIVE_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/balance.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/target/target.h"

/* Rights that this process has to other processes. */

/*
 * Enables the right to debug any process (SeDebugPrivilege). Elevated administrators have this
 * right, but must enable it. Without it, Windows checks the access list of the process. The access
 * list of a service permits no user to suspend or clone the service. The right stays enabled until
 * this process exits. Returns false, and changes nothing, if the right is not available. Programs
 * that this process starts would inherit the enabled right, so callers that start other programs
 * must not call this function.
 */
bool process_enable_debug(void);

/*
 * Opens a process with all of `rights` and, if possible, also with `more`. Returns 0 and
 * `*process`, which the caller closes. Returns -ERR_USAGE (the process is hsnap itself),
 * -ERR_NO_PROCESS or -ERR_RIGHTS.
 */
int process_open(uint32_t pid, DWORD rights, DWORD more, HANDLE *process, struct err *err);

/* Returns the process's start time in ms since 1970, or 0 if it is not known. */
int64_t process_start_ms(HANDLE process);

/*
 * Lock of a process. Only one hsnap at a time changes a process: in attach, in detach, and in run
 * while the program starts. Otherwise two hsnaps could overwrite each other's tables and hooks, and
 * recorded data of the process would be lost.
 */

/* {0} if no lock is held */
struct process_lock {
	void *mutex;
};

/*
 * Locks the process against other hsnaps that want to change it. Waits at most `patience_ms`. The
 * lock belongs to the calling thread, which must also release it. If the thread exits, the lock is
 * free, too. Returns false if another hsnap, of any session and user, still holds the lock. Returns
 * true, but without a lock, if the system cannot create the object for the lock.
 */
bool process_lock_acquire(struct process_lock *lock, uint32_t pid, uint32_t patience_ms);

/* Releases the lock. Does nothing if no lock is held. */
void process_lock_release(struct process_lock *lock);

/* Named objects that all hsnaps of this machine can see (shared_name_windows.c). */

/* Creates or opens an object with the given full name, like CreateEventW() and OpenEventW(). */
typedef HANDLE (*shared_name_fn)(const wchar_t *full, void *ctx);

/*
 * Creates an object for all sessions. If the system refuses this, creates an object for this
 * session only. Sets `*space` to the prefix of the object's name. Returns the result of make(),
 * with its last error. ERROR_ACCESS_DENIED: the name is used by an object that this process cannot
 * open.
 */
HANDLE shared_name_make(const wchar_t *name, shared_name_fn make, void *ctx, const wchar_t **space);

/* Finds an object in either namespace. Returns the result of find(), with its last error. */
HANDLE shared_name_find(const wchar_t *name, shared_name_fn find, void *ctx, const wchar_t **space);

/*
 * Sets the rights of an object so that administrators, the system and this user can all use it, no
 * matter which of them creates it. The caller frees lpSecurityDescriptor with LocalFree(). NULL
 * represents the system's default.
 */
void shared_name_rights(SECURITY_ATTRIBUTES *rights);

/* Implements target_ops.modules. For a 32-bit process, lists the 32-bit and the 64-bit modules,
 * each once. */
int modules_list(struct target *target, struct snapshot *snapshot, struct err *err);

/* Queries the range that contains `addr`, like VirtualQueryEx(). Returns false with the last error
 * ERROR_INVALID_PARAMETER above the end of user space, and with another error after a failure. */
bool region_info(HANDLE process, uint64_t addr, MEMORY_BASIC_INFORMATION *info);

/* Implements target_ops.region. For a large region, may return only the part at and above
 * `addr`. */
int region_query(HANDLE process, uint64_t addr, struct target_region *region);

/*
 * Query a region, or read exactly `len` bytes at `addr`, in a process that is read through its
 * clone. The clone may lack memory that the process shares with other processes (mapped memory).
 * Such memory is read in the process itself, and may change meanwhile. Without a clone, both
 * handles refer to the process.
 */
int region_query_either(HANDLE clone, HANDLE process, uint64_t addr, struct target_region *region);
int region_read_either(HANDLE clone, HANDLE process, uint64_t addr, void *bytes, size_t len);

/*
 * The balance of a process (balance_windows.c): space(), tebs() and count() of struct target_ops.
 * Under Wine, one of the process's own threads answers balance_space(), so another thread of hsnap
 * waits for the answer, and is abandoned if the process exits.
 */
/* Returns the TEB of hsnap's own bitness, or 0 if it is not known. */
uint64_t balance_native_teb(HANDLE thread);

int balance_space(HANDLE process, bool is_wine, struct target_memory **list, size_t *count);
int balance_tebs(struct target *target, HANDLE process, struct target_teb **list, size_t *count);
void balance_count(HANDLE process, bool is_wine, struct balance *balance, struct arena *arena);

/* The system-specific part of holds (snapshot/live/process.h): process snapshots in Windows 8.1 and
 * later, suspension elsewhere. */

/* Additional right that a process handle needs for clones. */
#define CLONE_RIGHTS PROCESS_CREATE_PROCESS

#endif
