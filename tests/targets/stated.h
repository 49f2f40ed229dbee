/*
 * Statements of a target about its own memory, for tests/lib/Cell.pm, one per line. Numbers are
 * decimal, addresses and handles hexadecimal. All statements before a "step" line are true at that
 * step:
 *
 *   block ADDR BYTES DOOR      a live block, and how it was allocated
 *   gone ADDR DOOR             no block is there
 *   whole HANDLE DOOR          the heap's blocks are the blocks of this door
 *   sum FUNCTION BYTES BLOCKS  live blocks with this function on their stacks
 *   chain FUNCTION CALLER...   the program's functions on those stacks, innermost first
 *   heaps COUNT                heaps as the system counts them
 *
 * Statements allocate nothing: the buffer is static.
 */
#ifndef TARGETS_STATED_H
#define TARGETS_STATED_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

/* Prevents copies of a function under other names, so that a stack shows the function's own
 * name. */
#ifndef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline, noipa))
#endif

#define STATED_LINE 512

static char stated[1 << 16];
static size_t stated_len;

static void state_flush(void)
{
	size_t done = 0;
	DWORD put;

	while (done < stated_len && WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), stated + done,
					    (DWORD)(stated_len - done), &put, NULL))
		done += put;
	stated_len = 0;
}

__attribute__((format(__MINGW_PRINTF_FORMAT, 1, 2))) static void state(const char *format, ...)
{
	va_list args;
	int len;

	if (sizeof(stated) - stated_len < STATED_LINE)
		state_flush();
	va_start(args, format);
	len = vsnprintf(stated + stated_len, STATED_LINE, format, args);
	va_end(args);
	stated_len += len > 0 ? (size_t)len : 0;
}

/* Prints the statements and "step K pid P", then waits. Returns false if the target must end. */
static inline bool state_step(unsigned long step)
{
	state_flush();
	return step_done(step);
}

#endif
