/*
 * References to processes: a pid and a start time. A reference identifies a process across several
 * captures. While the reference is open, no other process gets the pid, even after the process has
 * exited.
 */
#ifndef SNAPSHOT_LIVE_PROCESS_REF_H
#define SNAPSHOT_LIVE_PROCESS_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/balance.h"
#include "snapshot/target/target.h"

#define KEPT_UNKNOWN_BYTES UINT64_MAX

struct process_seen {
	uint32_t pid;
	int64_t start_ms; /* ms since 1970; 0: the process cannot be opened */
	uint64_t private_bytes; /* KEPT_UNKNOWN_BYTES: the process cannot be opened */
};

/*
 * Finds the processes with the image name `name` ("app.exe" or "app", in any case), sorted by pid.
 * The caller frees `*seen`. Returns 0, even if no process has that name; -ERR_SYSTEM or -ERR_NOMEM.
 */
int process_ref_find(const char *name, struct process_seen **seen, size_t *count, struct err *err);

/* Finds the process with this pid. Sets *count to 0 or 1. */
int process_ref_find_pid(uint32_t pid, struct process_seen **seen, size_t *count, struct err *err);

struct process_ref {
	intptr_t handle; /* os_wait() on this handle ends when the process ends */
	uint32_t pid;
	int64_t start_ms;
	/* path of the process's program, or the end of that path; UTF-8, untrusted; empty: not
	 * known */
	char image[1024];
};

/*
 * Opens a reference to the process with this pid and start time (0: any). Returns 0;
 * -ERR_NO_PROCESS, -ERR_GONE (the process has exited, or another process has its pid), -ERR_RIGHTS
 * or -ERR_USAGE (the process is hsnap itself).
 */
int process_ref_open(struct process_ref *ref, uint32_t pid, int64_t start_ms, struct err *err);
void process_ref_close(struct process_ref *ref);

bool process_ref_has_ended(const struct process_ref *ref);

/* Reads one of the system's figures of the process: BALANCE_PRIVATE (resident or paged out, with
 * one system call), BALANCE_THREADS, BALANCE_HANDLES, BALANCE_GDI or BALANCE_USER. Returns 0,
 * -ERR_GONE or -ERR_SYSTEM (the system does not provide it). */
int process_ref_figure(const struct process_ref *ref, enum balance_figure figure, uint64_t *value,
	struct err *err);

/* Opens the process like target_open_live(). Returns -ERR_GONE instead of opening another
 * process. */
int process_ref_target(const struct process_ref *ref, struct target *target, struct err *err);

#endif
