/*
 * Switching the tracer on and off in a process that has loaded it.
 */
#ifndef SNAPSHOT_INSTALL_WINDOWS_H
#define SNAPSHOT_INSTALL_WINDOWS_H

#include "snapshot/target/target.h"
#include "snapshot/tracer/shared.h"

struct install_options {
	uint64_t limit_bytes; /* for its tables */
	uint64_t sample_bytes; /* 0: everything is recorded */
	uint32_t flags; /* TRACER_FLAG_* */
};

/*
 * Sets up the tracer whose area is at area_addr and hooks ntdll. process is a HANDLE of the target
 * with the rights to read, write and change memory. Returns 0; -ERR_INJECT, and nothing is hooked.
 */
int install(struct target *target, void *process, uint64_t area_addr,
	const struct install_options *options, struct err *err);

#endif
