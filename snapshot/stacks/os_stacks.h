/*
 * The stacks that Windows itself records for heap blocks (Windows 10 1607 and later): "os" stacks.
 *
 * They can be switched on in a running process; blocks allocated from then on have one. The system is
 * asked for them by an interface that it does not document, so this is experimental: whether it is
 * there is found out before it is used, and an answer that is not understood is refused as a whole.
 * What the answer looks like is os_stacks_parse.h's; os_stacks_windows.c asks, elsewhere nobody does.
 */
#ifndef SNAPSHOT_OS_STACKS_H
#define SNAPSHOT_OS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "snapshot/target/target.h"

#define OS_STACKS_DEPTH_MAX 64 /* frames of one stack that are kept */

struct os_stacks; /* all of one process, at one moment */

/*
 * Asks for all stacks of a live target, which must run: the system may let the process itself answer,
 * so it is called before the target is held. Blocks come and go meanwhile; compare os_stacks_bytes()
 * with a block's size. Returns 0 and *stacks, os_stacks_free() ends it; -ERR_NO_STACKS (no such
 * interface here, a file, or nothing recorded), -ERR_PLATFORM, -ERR_RIGHTS, -ERR_GONE, -ERR_NOMEM.
 */
int os_stacks_take(struct target *target, struct os_stacks **stacks, struct err *err);

/* The frames of the block at addr, innermost first, and how many: 0, with *frames as it was, when
 * there is no such block or it has no stack. They are valid until os_stacks_free(). */
uint32_t os_stacks_find(const struct os_stacks *stacks, uint64_t addr, const uint64_t **frames);

/* The size that the block at addr has in the answer; 0: there is no such block. */
uint64_t os_stacks_bytes(const struct os_stacks *stacks, uint64_t addr);

/* NULL is harmless. */
void os_stacks_free(struct os_stacks *stacks);

/* Switches recording on or off in a running process. Returns 0; -ERR_NO_STACKS, -ERR_PLATFORM,
 * -ERR_RIGHTS, -ERR_NO_PROCESS, -ERR_SYSTEM. */
int os_stacks_switch(uint32_t pid, bool on, struct err *err);

#endif
