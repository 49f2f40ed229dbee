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
#ifndef SNAPSHOT_OS_STACKS_PARSE_H
#define SNAPSHOT_OS_STACKS_PARSE_H

#include <stddef.h>

#include "snapshot/stacks/os_stacks.h"

#define OS_STACKS_BLOCKS_MAX ((size_t)1 << 26) /* of one process; more is a broken answer */

/* Of a process that has so much memory: an answer with more blocks or stacks than have room in it is
 * a broken one. NULL: out of memory. */
struct os_stacks *os_stacks_new(uint64_t committed_bytes);

/* Takes one record. Returns 0; -ERR_TARGET when it is none that may come now, -ERR_NOMEM. After an
 * error every further record is refused with the same. */
int os_stacks_put(struct os_stacks *stacks, const void *bytes, size_t len);

/* Whether any record came. */
bool os_stacks_is_begun(const struct os_stacks *stacks);

/* After the last record, before os_stacks_find(): 0, or the error of os_stacks_put(). */
int os_stacks_end(struct os_stacks *stacks);

/* How many blocks have a stack. */
size_t os_stacks_count(const struct os_stacks *stacks);

#endif
