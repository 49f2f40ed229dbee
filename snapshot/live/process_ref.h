/*
 * Processes that are known for longer than one look at them takes: by pid and start time together. While one
 * is kept its pid is not given to another one, even when it has ended.
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
	int64_t start_ms; /* since 1970; 0: it lets nobody in */
	uint64_t private_bytes; /* KEPT_UNKNOWN_BYTES: the same */
};

/* The processes whose image is called name ("app.exe" or "app", any case), by pid; the caller frees
 * *seen. Returns 0, also for none; -ERR_SYSTEM, -ERR_NOMEM. */
int process_ref_find(const char *name, struct process_seen **seen, size_t *count, struct err *err);

/* The same of one pid: *count is 0 or 1. */
int process_ref_find_pid(uint32_t pid, struct process_seen **seen, size_t *count, struct err *err);

struct process_ref {
	intptr_t handle; /* os_wait() ends when the process does */
	uint32_t pid;
	int64_t start_ms;
	char image
		[1024]; /* path of its program or the end of it, UTF-8; hostile. Empty: not known */
};

/* Keeps the process that has this pid and started then (0: whenever). Returns 0; -ERR_NO_PROCESS, -ERR_GONE
 * (another one has its pid, or it has ended), -ERR_RIGHTS, -ERR_USAGE (hsnap itself). */
int process_ref_open(struct process_ref *ref, uint32_t pid, int64_t start_ms, struct err *err);
void process_ref_close(struct process_ref *ref);

bool process_ref_has_ended(const struct process_ref *ref);

/* Memory that it has for itself alone, in use or paged out: one call of the system. 0, -ERR_GONE or
 * -ERR_SYSTEM. */
int process_ref_private_bytes(const struct process_ref *ref, uint64_t *bytes, struct err *err);

/* As target_open_live(), and never of another process: -ERR_GONE. */
int process_ref_target(const struct process_ref *ref, struct target *target, struct err *err);

#endif
