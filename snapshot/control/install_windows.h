/*
 * Switching the tracer on and off in a process that has loaded it.
 *
 * Each step leaves the process running rightly, should this program be ended right behind it: what is
 * reserved is named in the tracer's area at once, its state is ON before the first jump to it is
 * there, a jump is there whole or not at all, and the order is such that no block is taken for live
 * that is not. What was begun so is ended by remove_tracer() or by the next install().
 */
#ifndef SNAPSHOT_INSTALL_WINDOWS_H
#define SNAPSHOT_INSTALL_WINDOWS_H

#include "snapshot/target/target.h"
#include "snapshot/tracer/shared.h"

struct install_options {
	uint64_t limit_bytes; /* for its tables */
	uint64_t sample_bytes; /* 0: everything is recorded */
	uint32_t flags; /* TRACER_FLAG_* */
	/* If not NULL: how much it became, when there was not so much address space. */
	uint64_t *limit_found;
};

/*
 * Sets up the tracer whose area is at area_addr and hooks ntdll, with all threads held that could be
 * in it. process is a HANDLE of the target with the rights to read, write and change memory, to
 * suspend it and to ask for information. Returns 0; -ERR_TRACED (it is on; nothing was changed);
 * -ERR_INJECT, -ERR_TARGET, -ERR_GONE, -ERR_RIGHTS, -ERR_SYSTEM, -ERR_BITS, -ERR_NOMEM: nothing is
 * hooked.
 */
int install(struct target *target, void *process, uint64_t area_addr,
	const struct install_options *options, struct err *err);

/*
 * Takes the hooks out of ntdll, at a moment when no thread is in one. A program that calls hooked
 * functions from many threads all the time may have no such moment: then the hooks go while threads
 * are in them that are seen to come out again. A thread that stays in a hook for some seconds is an
 * error. The tables' memory is given back when all are out; the DLL and its trampolines stay. Returns
 * 0; -ERR_NOT_TRACED; -ERR_BUSY (a thread stays in a hook, or another program has changed a hooked
 * function) and the tracer goes on, or if err says so its tables stay; errors as install().
 */
int remove_tracer(struct target *target, void *process, uint64_t area_addr, struct err *err);

#endif
