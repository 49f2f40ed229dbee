/*
 * The guard: marks the calling thread while it is inside a call of the real heap, or does work of
 * the tracer.
 *
 * Each thread has a guard word. It contains the stack address at which the activity began, and the
 * kind of activity in the low bits. The word is valid only while the stack is deeper than that
 * address. If a call is left by a jump, without unwinding, the word becomes stale. The next guarded
 * call from a less deep stack then overwrites it.
 *
 * The word is a TLS slot in the thread's TEB. If the program has used all of those slots, the word
 * is in threadwords.c.
 */
#ifndef SNAPSHOT_TRACER_GUARD_H
#define SNAPSHOT_TRACER_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"
#include "snapshot/tracer/tracer_nt.h"

enum guard {
	GUARD_NONE,
	GUARD_HEAP, /* inside the real heap: memory requested from the system belongs to the heap */
	GUARD_TRACER, /* inside the tracer: looking up unwind data may call code of the target */
};

/* Offset of a thread's first TLS slot from its TEB. Defined in guard_x64.c and guard_x86.c. */
extern const uint32_t guard_teb_slots;

/* Offsets below this refer to words in threadwords.c. All other offsets are relative to the TEB. */
#define GUARD_FAR_END 64u

/* Offset of the guard word. The assembly in guard_x64.c and guard_x86.c refers to this variable by
 * name. */
extern uint32_t guard_offset;

void guard_init(void);

/* Reserves one more word per thread. Returns the word's offset, for guard_slot(). */
uint32_t guard_new_slot(void);

/* Returns the calling thread's word in threadwords.c. If there is no room for the thread, returns a
 * word that several threads share. The contents of that word are not used. */
uintptr_t *guard_far_slot(uint32_t offset);

/* Returns the calling thread's word. TlsGetValue() cannot be used here, because it changes the last
 * error. */
static inline uintptr_t *guard_slot(uint32_t offset)
{
	if (__builtin_expect(offset < GUARD_FAR_END, 0))
		return guard_far_slot(offset);
	return (uintptr_t *)((char *)NtCurrentTeb() + offset);
}

enum guard guard_now(void);

/* Begins an activity. Returns a value that must be passed to guard_end(). */
static inline uintptr_t guard_begin(enum guard what)
{
	uintptr_t *slot = guard_slot(guard_offset), before = *slot;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)3;

	*slot = here | (uintptr_t)what;
	return before > (here | 3) ? before : 0;
}

static inline void guard_end(uintptr_t before)
{
	*guard_slot(guard_offset) = before;
}

/*
 * Calls function(a1 ... a6) under GUARD_HEAP and returns its result. `function` may have fewer
 * arguments. `taken` may be NULL. If an exception or longjmp() unwinds through the call, the call
 * counts as not made: the guard ends, and if `*taken` has a key, that block is added to the table
 * again.
 *
 * On x86, guard_call() has no unwind handler. If an exception unwinds through the call there, the
 * block is not added again, so it loses its stack. The guard word is stale until it is corrected as
 * described above.
 */
uintptr_t guard_call(uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4, uintptr_t a5,
	uintptr_t a6, const void *function, struct tracer_block *taken);

#endif
