/*
 * A helper program: started, written to, read from, and ended. It is not trusted to answer, to read
 * its input or to end. Defined in helper_posix.c and helper_windows.c.
 *
 * The helper inherits its standard input and output and nothing else; its standard error is
 * discarded. It does not receive Ctrl-C. It never outlives this process. Its own children end when
 * it is stopped; on POSIX they survive if this process is killed.
 */
#ifndef SYMBOLIZE_BACKEND_HELPER_H
#define SYMBOLIZE_BACKEND_HELPER_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

#define HELPER_ARGS_MAX 15

struct helper;

/* Starts a program. program is a full path; args excludes the program's name, ends with NULL, and
 * has up to HELPER_ARGS_MAX entries without blanks or quotes. Returns NULL on failure. */
struct helper *helper_start(const char *program, const char *const *args);

/*
 * Sends part of the len bytes and appends output to answers; waits up to wait_ms until one of both
 * is possible. Returns the number of bytes sent, or -ERR_READ if the output has ended.
 */
int64_t helper_exchange(struct helper *helper, const char *bytes, size_t len, struct buf *answers,
	unsigned wait_ms);

/* Kills the helper at once. helper may be NULL. */
void helper_stop(struct helper *helper);

#endif
