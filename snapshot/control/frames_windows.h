/*
 * The frames of a held thread of another process, as its images' unwind data tell them: which of the
 * values on its stack are return addresses, and which are left from earlier calls.
 */
#ifndef SNAPSHOT_CONTROL_FRAMES_WINDOWS_H
#define SNAPSHOT_CONTROL_FRAMES_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

#include "snapshot/target/target.h"

struct frames;

/* NULL: out of memory, or unwind data are not known for this kind of program. What it learns of images
 * holds as long as all threads are held. */
struct frames *frames_new(struct target *target, HANDLE process);
void frames_free(struct frames *frames);

/*
 * Goes from frame to frame of a held thread as long as there is no doubt, up to the address end on
 * its stack, and calls visit() with every return address. Returns the stack address up to which that
 * was all; visit() returning true ends it too.
 */
uint64_t frames_walk(struct frames *frames, HANDLE thread, uint64_t end,
	bool (*visit)(void *ctx, uint64_t addr), void *ctx);

#endif
