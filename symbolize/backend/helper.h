/*
 * A helper program: starts it, exchanges data with it, and stops it. No function relies on the
 * helper to answer, to read its input, or to exit. Implemented in helper_posix.c and
 * helper_windows.c.
 *
 * The helper inherits only its standard input and output; its standard error is discarded. It does
 * not receive Ctrl-C, and it never outlives this process. Stopping the helper also ends its
 * children. On POSIX the children survive if this process is killed.
 */
#ifndef SYMBOLIZE_BACKEND_HELPER_H
#define SYMBOLIZE_BACKEND_HELPER_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

#define HELPER_ARGS_MAX 15

struct helper;

/* Starts a program, given by its full path. `args` ends with NULL and does not contain the
 * program's name. It has at most HELPER_ARGS_MAX entries, which must not contain blanks or quotes.
 * Returns NULL on failure. */
struct helper *helper_start(const char *program, const char *const *args);

/*
 * Sends some or all of the `len` bytes and appends any output to `answers`. Waits up to `wait_ms`
 * until the helper accepts input or produces output. Returns the number of bytes sent, or -ERR_READ
 * if the helper's output has ended.
 */
int64_t helper_exchange(struct helper *helper, const char *bytes, size_t len, struct buf *answers,
	unsigned wait_ms);

/* Kills the helper immediately. `helper` may be NULL. */
void helper_stop(struct helper *helper);

#endif
