/*
 * The stacks that Windows itself records for heap blocks (Windows 10 1607 and later): "os" stacks.
 *
 * They can be switched on in a running process; blocks allocated from then on have one. The system is
 * asked for them by an interface that it does not document, so this is experimental: whether it is
 * there is found out before it is used, and an answer that is not understood is refused as a whole.
 * What the answer looks like is os_stacks.h's; os_stacks_windows.c asks, elsewhere nobody does.
 */
#ifndef SNAPSHOT_STACKS_OS_STACKS_H
#define SNAPSHOT_STACKS_OS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"

#define OS_STACKS_DEPTH_MAX 64 /* frames of one stack that are kept */

struct os_stacks; /* all of one process, at one moment */

/*
 * Asks for all stacks of a live target, which must run: the system may let the process itself answer,
 * so it is called before the target is held. Blocks come and go meanwhile; compare os_stacks_bytes()
 * with a block's size. Returns 0 and *stacks, os_stacks_free() ends it; -ERR_NO_STACKS (no such
 * interface here, a file, or nothing recorded), -ERR_PLATFORM, -ERR_RIGHTS, -ERR_GONE.
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

/*
 * What Windows answers when it is asked for its heap stacks: a run of records, each handed over by a
 * call of its own, and what is kept of them.
 *
 *	init        Count, Total, Flags: three times 32 bits; first, once
 *	header      one for each heap; of its fields only the pointers' size matters here
 *	allocation  address, flags, size
 *	frames      groups of eight return addresses of the allocation before them; NULL ends a stack
 *
 * A record's kind is known by its length. Nothing in it is trusted. Each distinct stack is kept once.
 */

#define OS_STACKS_BLOCKS_MAX ((size_t)1 << 26) /* of one process; more is a broken answer */

/* Of a process that has so much memory: an answer with more blocks or stacks than have room in it is
 * a broken one. */
struct os_stacks *os_stacks_new(uint64_t committed_bytes);

/* Takes one record. Returns 0; -ERR_TARGET when it is none that may come now, or after such a
 * one. */
int os_stacks_put(struct os_stacks *stacks, const void *bytes, size_t len);

/* Whether any record came. */
bool os_stacks_is_begun(const struct os_stacks *stacks);

/* After the last record, before os_stacks_find(): 0, or the error of os_stacks_put(). */
int os_stacks_end(struct os_stacks *stacks);

/* How many blocks have a stack. */
size_t os_stacks_count(const struct os_stacks *stacks);

/*
 * Where fields of Windows' heap stack records lie, by the size of a pointer.
 */

struct os_stacks_layout {
	unsigned bits;
	size_t old_header_bytes, header_bytes;
	size_t allocation_address, allocation_size, allocation_bytes;
	size_t group_bytes; /* eight frames */
};

#define OS_STACKS_INIT_BYTES ((size_t)12)
#define OS_STACKS_HEADER_VERSION 0 /* 16 bits */
#define OS_STACKS_HEADER_POINTER 2 /* 16 bits: bytes of a pointer */
#define OS_STACKS_GROUP 8

const struct os_stacks_layout *os_stacks_layout(unsigned bits);

#endif
