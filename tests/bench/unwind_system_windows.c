/* For measuring: replaces the tracer's unwinder with one call of the system's function per stack.
 * It requests 18 frames, some of which are the tracer's own. So at the end of 16 calls it finds
 * fewer frames than the tracer's unwinder. If a program requests more frames than exist, Wine reads
 * past the end of the stack, which is much slower. This is therefore the cheapest baseline. */
#include <windows.h>

#include "snapshot/tracer/unwind.h"

#ifndef SYSTEM_FRAMES
#define SYSTEM_FRAMES 18
#endif

uint64_t unwind_mismatches, unwind_exceptions;
uint32_t unwind_frees;

static int is_own(const void *frame, const struct unwind_skip *skip)
{
	return (uint64_t)frame >= skip->from && (uint64_t)frame < skip->to;
}

uint32_t unwind_stack(uint64_t *frames, uint32_t max, const struct unwind_skip *skip)
{
	PVOID found[SYSTEM_FRAMES];
	USHORT at = 0, end = RtlCaptureStackBackTrace(0, SYSTEM_FRAMES, found, NULL);
	uint32_t count = 0;

	while (at < end && is_own(found[at], skip))
		at++;
	while (at < end && found[at] && count < max)
		frames[count++] = (uint64_t)found[at++];
	return count;
}

uint32_t unwind_from(
	uint64_t *frames, uint32_t max, const struct unwind_skip *skip, uint64_t slot, uint64_t rbp)
{
	(void)slot;
	(void)rbp;
	return unwind_stack(frames, max, skip);
}

struct unwind_note *unwind_note(void)
{
	return NULL;
}

const struct unwind_note *unwind_reuse(uint64_t slot, uint64_t rbp)
{
	(void)slot;
	(void)rbp;
	return NULL;
}

void unwind_forget(uint64_t from, uint64_t to)
{
	(void)from;
	(void)to;
}

void unwind_forget_all(void)
{
}
