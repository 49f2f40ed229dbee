/*
 * A program that answers: it is started, written to and read from, and ended. Nobody trusts it to
 * answer, to listen or to end. helper_posix.c or helper_windows.c.
 *
 * It gets its standard input and output from us and nothing else of ours; what it complains about is
 * lost. Ctrl-C is not for it, and it does not outlive us, however we end; what it starts itself goes with it
 * when it is ended, but on POSIX not when we are killed.
 */
#ifndef SYMBOLIZE_BACKEND_HELPER_H
#define SYMBOLIZE_BACKEND_HELPER_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

#define HELPER_ARGS_MAX 15

struct helper;

/* program is a full path; args, without the program's name, end with NULL, are up to HELPER_ARGS_MAX and
 * have no blanks or quotes in them. NULL: it cannot be started. */
struct helper *helper_start(const char *program, const char *const *args);

/*
 * Hands on what it takes of len bytes and adds to answers what it says; waits up to wait_ms
 * milliseconds until it does one of both. Returns how many of the bytes it took; -ERR_READ when it
 * will say nothing any more.
 */
int64_t helper_exchange(struct helper *helper, const char *bytes, size_t len, struct buf *answers,
	unsigned wait_ms);

/* Ends it at once. helper may be NULL. */
void helper_stop(struct helper *helper);

#endif
