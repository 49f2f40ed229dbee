/*
 * What the calling thread is doing: whether it stands inside a call of the real heap, or in the
 * tracer's own work.
 *
 * A TLS slot of the thread holds the stack address of the hook that began it, and what it is in the
 * low bits. It counts only while the stack is deeper than that, for an exception may have passed
 * through the hook.
 */
#ifndef SNAPSHOT_TRACER_GUARD_H
#define SNAPSHOT_TRACER_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum guard {
	GUARD_NONE,
	GUARD_HEAP, /* inside the real heap: memory it takes from the system is its own */
	GUARD_TRACER, /* inside the tracer: finding unwind data may call the target's code */
};

/* Takes the TLS slot; false when there is none. */
bool guard_init(void);

/* What the thread is doing. */
enum guard guard_now(void);

/* Begins something; guard_end() takes what this returned. */
uintptr_t guard_begin(enum guard what);
void guard_end(uintptr_t before);

#endif
