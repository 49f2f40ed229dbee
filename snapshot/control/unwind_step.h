/*
 * One step of going up a stack of 64-bit code from outside: from a function's registers to its
 * caller's, by its unwind data. Layout after Microsoft's "x64 exception handling".
 *
 * Bytes come through callbacks and are never trusted. What is not understood ends the walk: a wrong
 * step may pass over frames.
 */
#ifndef SNAPSHOT_CONTROL_UNWIND_STEP_H
#define SNAPSHOT_CONTROL_UNWIND_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_RSP 4
#define UNWIND_CODE_BYTES                                                                          \
	64 /* of code behind the instruction pointer, to find the end of functions */

struct unwind_registers {
	uint64_t ip;
	uint64_t general[16]; /* as instructions number them */
};

struct unwind_function {
	uint32_t begin, end, info; /* rvas */
};

struct unwind_source {
	/* Reads len bytes: false when they are not there. */
	bool (*read)(void *ctx, uint64_t addr, void *bytes, size_t len);
	void *ctx;
	uint64_t image; /* base of the image that the instruction pointer is in */
};

/*
 * Steps out of function (NULL: ip's image has no data for it, so it has no frame). is_innermost: the
 * thread was stopped there, and may be at the function's begin or end. False: it cannot be told.
 */
bool unwind_step(const struct unwind_source *source, const struct unwind_function *function,
	bool is_innermost, struct unwind_registers *registers);

#endif
