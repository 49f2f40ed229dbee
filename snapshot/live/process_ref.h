/*
 * References to processes that last longer than one look at them: by pid and start time together.
 * While a reference is open, the pid is not given to another process, even after the process has
 * exited.
 */
#ifndef SNAPSHOT_LIVE_PROCESS_REF_H
#define SNAPSHOT_LIVE_PROCESS_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"

#define KEPT_UNKNOWN_BYTES UINT64_MAX

struct process_seen {
	uint32_t pid;
	int64_t start_ms; /* ms since 1970; 0: the process cannot be opened */
	uint64_t private_bytes; /* KEPT_UNKNOWN_BYTES: the process cannot be opened */
};

/* Finds the processes whose image is called name ("app.exe" or "app", any case), in order of pid;
 * the caller frees *seen. Returns 0, also if it finds none; -ERR_SYSTEM, -ERR_NOMEM. */
int process_ref_find(const char *name, struct process_seen **seen, size_t *count, struct err *err);

/* Finds the process with that pid: *count is 0 or 1. */
int process_ref_find_pid(uint32_t pid, struct process_seen **seen, size_t *count, struct err *err);

struct process_ref {
	intptr_t handle; /* os_wait() ends when the process does */
	uint32_t pid;
	int64_t start_ms;
	/* path of its program or the end of the path, UTF-8; hostile. Empty: unknown */
	char image[1024];
};

/* Opens a reference to the process with this pid and start time (0: any). Returns 0;
 * -ERR_NO_PROCESS, -ERR_GONE (another process has its pid, or it has exited), -ERR_RIGHTS,
 * -ERR_USAGE (hsnap itself). */
int process_ref_open(struct process_ref *ref, uint32_t pid, int64_t start_ms, struct err *err);
void process_ref_close(struct process_ref *ref);

bool process_ref_has_ended(const struct process_ref *ref);

/* Reads the process's private memory, in use or paged out, by one system call. Returns 0, -ERR_GONE
 * or -ERR_SYSTEM. */
int process_ref_private_bytes(const struct process_ref *ref, uint64_t *bytes, struct err *err);

/* Opens the process like target_open_live(), and never another process: returns -ERR_GONE then. */
int process_ref_target(const struct process_ref *ref, struct target *target, struct err *err);

#endif
