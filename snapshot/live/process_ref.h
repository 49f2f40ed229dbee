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

struct kept_seen {
	uint32_t pid;
	int64_t start_ms; /* since 1970; 0: it lets nobody in */
	uint64_t private_bytes; /* KEPT_UNKNOWN_BYTES: the same */
};

/* The processes whose image is called name ("app.exe" or "app", any case), by pid; the caller frees
 * *seen. Returns 0, also for none; -ERR_SYSTEM, -ERR_NOMEM. */
int kept_find(const char *name, struct kept_seen **seen, size_t *count, struct err *err);

/* The same of one pid: *count is 0 or 1. */
int kept_find_pid(uint32_t pid, struct kept_seen **seen, size_t *count, struct err *err);

struct kept {
	intptr_t handle; /* os_wait() ends when the process does */
	uint32_t pid;
	int64_t start_ms;
	char image
		[1024]; /* path of its program or the end of it, UTF-8; hostile. Empty: not known */
};

/* Keeps the process that has this pid and started then (0: whenever). Returns 0; -ERR_NO_PROCESS, -ERR_GONE
 * (another one has its pid, or it has ended), -ERR_RIGHTS, -ERR_USAGE (hsnap itself). */
int kept_open(struct kept *kept, uint32_t pid, int64_t start_ms, struct err *err);
void kept_close(struct kept *kept);

bool kept_has_ended(const struct kept *kept);

/* Memory that it has for itself alone, in use or paged out: one call of the system. 0, -ERR_GONE or
 * -ERR_SYSTEM. */
int kept_private_bytes(const struct kept *kept, uint64_t *bytes, struct err *err);

/* As target_open_live(), and never of another process: -ERR_GONE. */
int kept_target(const struct kept *kept, struct target *target, struct err *err);

#endif
