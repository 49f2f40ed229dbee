/*
 * Activity of the calling thread: inside a call of the real heap, or in the tracer's own work.
 *
 * A word of the thread has the stack address at which the activity began, and its kind in the low
 * bits. It counts only while the stack is deeper than that. A jump out of a call, without
 * unwinding, leaves the word set; the next call that is less deep corrects it.
 *
 * The word is a TLS slot in the thread's own block (its TEB), or in threadwords.c if the program
 * has taken all of those.
 */
#ifndef SNAPSHOT_TRACER_GUARD_H
#define SNAPSHOT_TRACER_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"
#include "snapshot/tracer/tracer_nt.h"

enum guard {
	GUARD_NONE,
	GUARD_HEAP, /* inside the real heap: memory that it takes from the system is its own */
	GUARD_TRACER, /* inside the tracer: a search for unwind data may call the target's code */
};

/* Offset of a thread's first TLS slots from its TEB: guard_x64.c, guard_x86.c. */
extern const uint32_t guard_teb_slots;

/* Offsets below this are words in threadwords.c; others count from the TEB. */
#define GUARD_FAR_END 64u

/* Offset of the guard's word. The code in guard_x64.c and guard_x86.c reads it by its name. */
extern uint32_t guard_offset;

void guard_init(void);

/* Reserves one more word for each thread and returns its offset, for guard_slot(). */
uint32_t guard_new_slot(void);

/* Returns the calling thread's word in threadwords.c. Without room there, returns a word that
 * threads share and that has no meaning. */
uintptr_t *guard_far_slot(uint32_t offset);

/* Returns the calling thread's word. TlsGetValue() would change the last error. */
static inline uintptr_t *guard_slot(uint32_t offset)
{
	if (__builtin_expect(offset < GUARD_FAR_END, 0))
		return guard_far_slot(offset);
	return (uintptr_t *)((char *)NtCurrentTeb() + offset);
}

enum guard guard_now(void);

/* Begins an activity. Returns a value for guard_end(). */
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
 * Calls function(a1 ... a6) under GUARD_HEAP and returns its result; function may take fewer
 * arguments. taken may be NULL. If an exception or longjmp() unwinds through the call, the call did
 * not happen: the guard ends, and the block *taken is put back into the table if it has a key.
 *
 * x86 has no handlers of functions, so there an exception that passes through costs the block its
 * stack; the guard corrects itself, as described above.
 */
uintptr_t guard_call(uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4, uintptr_t a5,
	uintptr_t a6, const void *function, struct tracer_block *taken);

#endif
