/*
 * Tracing a process that runs, and leaving it again.
 *
 * One hsnap at a time controls a process: others wait for it, for a while.
 */
#ifndef SNAPSHOT_CONTROL_ATTACH_H
#define SNAPSHOT_CONTROL_ATTACH_H

#include <stdint.h>

#include "core/base/err.h"

struct attach_options {
	uint64_t limit_bytes; /* for the tracer's tables */
	uint64_t sample_bytes; /* 0: everything is recorded */
};

/*
 * Loads the tracer into the process unless it is there, and switches it on. *limit_found becomes how
 * much its tables may take: less than wanted when there is not so much address space. Returns 0;
 * -ERR_TRACED (nothing was changed), -ERR_BITS (another hsnap can: nothing was done), -ERR_BUSY,
 * -ERR_NO_PROCESS, -ERR_RIGHTS, -ERR_GONE, -ERR_INJECT, -ERR_TARGET (another version's tracer),
 * -ERR_USAGE (hsnap itself), -ERR_SYSTEM, -ERR_NOMEM: the process runs on as before.
 */
int attach(
	uint32_t pid, const struct attach_options *options, uint64_t *limit_found, struct err *err);

/* Switches the tracer off and takes its hooks out. Returns 0; -ERR_NOT_TRACED, -ERR_BUSY (it goes on
 * tracing), and errors as attach(). */
int detach(uint32_t pid, struct err *err);

#endif
