/*
 * Processes by pid and by name, and what hsnap does to them besides reading.
 */
#ifndef SNAPSHOT_LIVE_PROCESS_H
#define SNAPSHOT_LIVE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"

/* Opens a live process for snapshots. Returns 0; -ERR_NO_PROCESS, -ERR_RIGHTS,
 * -ERR_GONE, -ERR_USAGE (hsnap itself), -ERR_64_BITS (and this is a 32-bit hsnap). A 32-bit process has target->bits 32 and a host_peb. target->ops->close() ends it. */
int target_open_live(struct target *target, uint32_t pid, struct err *err);

/* Opens the process that a minidump holds (target_minidump.c). Returns 0; -ERR_OPEN, -ERR_READ,
 * -ERR_EMPTY, -ERR_NOT_MINIDUMP, -ERR_NO_HEAPS (nothing can be listed), -ERR_NOMEM. */
int target_open_minidump(struct target *target, const char *path, struct err *err);

/* The same for a file that is in memory, which must outlive the target. */
int target_open_minidump_bytes(
	struct target *target, const void *bytes, size_t len, const char *name, struct err *err);

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

/* Whether an hsnap gets its tracer into the process at this moment, or out of it (turn_windows.h). */
bool process_is_changing(uint32_t pid);

/*
 * A helper process that continues the target if hsnap is ended while it holds it, in whatever way.
 * process is a HANDLE. NULL: it could not be started.
 */
struct guard;
struct guard *guard_start(void *process);
/* The same, and the helper keeps an inheritable HANDLE open until it ends: who waits for that object to
 * be gone knows that no helper will continue the process any more. */
struct guard *guard_start_keeping(void *process, void *kept);
void guard_arm(struct guard *guard); /* the target is about to be held */
void guard_disarm(struct guard *guard); /* it runs again */
void guard_stop(struct guard *guard);

/* The helper's main(): arguments as guard_start() gives them. Returns its exit status. */
#define GUARD_COMMAND "--guard"
int guard_main(int argc, char **argv);

#endif
