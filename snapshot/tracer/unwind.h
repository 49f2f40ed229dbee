/*
 * Return addresses of the calling thread.
 *
 * x64: a step leads from a return address to the caller's frame. The system's unwinder finds each
 * step only once; then the step is cached (unwind_parts_x64.h). After that, a walk compares the
 * return addresses on the stack with sequences that earlier walks found. If all words that one of
 * the thread's last walks read are unchanged, the stack is the same, and there is no walk. Code
 * outside images is generated at run time, and its unwind data may be replaced. So no steps are
 * cached for such code: its unwind data is looked up and read each time. If an address is new, or
 * its step depends on a register other than RSP and RBP, the system's unwinder walks the whole
 * stack. It is slow but correct. All methods find the same frames. As a check, some walks are
 * repeated with the system's unwinder.
 *
 * A walk ends where the next frame cannot be proven. It ends before a return address that is not
 * code. It also ends at code that made a call but has no unwind data. Examples are Go code,
 * hand-written assembly, and Wine 8's transition from Unix code into a window procedure. Words
 * further out on the stack are not reported as frames.
 *
 * x86: the system has no unwinder. Walks follow the rules in .eh_frame, which are cached in the
 * same way (unwind_parts_x86.h). In images without .eh_frame, and in code outside images, walks
 * follow EBP. A walk ends before an address that is not in code or does not follow a call. It also
 * ends at a rule that is damaged or not understood, and at the system's APC and exception
 * dispatchers.
 *
 * The functions take no lock and allocate nothing. Any number of threads may call them at the same
 * time. The system's unwinder calls the target's function table callbacks, and reads memory that
 * the target declares as unwind data. An exception in the unwinder or in a callback ends the walk,
 * and the frames found so far are returned. The target is not notified. However, its vectored
 * handlers and its debugger see a first-chance exception inside ntdll's unwinder or the callback,
 * called by this DLL. A stack overflow is left to the target. After a callback has raised an
 * exception, ntdll may hold the lock of its dynamic function tables forever (as Wine does). So no
 * callback is called any more, and stacks end at code outside images.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_H
#define SNAPSHOT_TRACER_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* Address range of the tracer's own code. Innermost frames in [from, to) are omitted. */
struct unwind_skip {
	uint64_t from, to;
};

/*
 * Fills `frames` with up to `max` return addresses, innermost first, and returns their number. The
 * first address is in the caller, unless `skip` omits it. The walk ends before the first address
 * that is 0 or not code. (Wine's own unwinder continues past 0 with arbitrary words.) The walk also
 * ends after code without unwind data, at the end of the thread's stack, and after `max` frames.
 * Returns 0 if the walk would need the system's unwinder and less than 32 KiB of the stack are
 * left.
 *
 * If the stack is not the thread's own, the walk stays in the memory around the stack pointer. Such
 * a stack may be too small for the system's unwinder. Unknown steps are therefore read from unwind
 * data only, and the walk ends at code whose unwind data is not sufficient.
 */
uint32_t unwind_stack(uint64_t *frames, uint32_t max, const struct unwind_skip *skip);

/*
 * Walks like unwind_stack(), but starts at an outer function, so the frames inside that function
 * are omitted. `slot` is the address of that function's return address, and `rbp` is the caller's
 * value of RBP.
 */
uint32_t unwind_from(uint64_t *frames, uint32_t max, const struct unwind_skip *skip, uint64_t slot,
	uint64_t rbp);

/*
 * A note that the caller of the unwinder attaches to a stack. unwind_note() returns the note of the
 * stack that the thread's last walk found, or NULL if the unwinder has not stored the whole stack.
 * All fields are 0 if nothing is attached yet. A note is valid only for the same `max` and `skip`.
 * Any unwind_forget() discards it.
 */
struct unwind_note {
	uint32_t id, session;
};

struct unwind_note *unwind_note(void);

/* Returns the note on one of the thread's last stacks if unwind_from() would find the same stack
 * again; otherwise NULL. Takes less time than unwind_from(). */
const struct unwind_note *unwind_reuse(uint64_t slot, uint64_t rbp);

/*
 * Forgets everything about return addresses in [from, to). Call this function after the memory of
 * an unmapped module was freed. If other threads may reuse the addresses at once, call it before
 * the memory is freed, too.
 */
void unwind_forget(uint64_t from, uint64_t to);
void unwind_forget_all(void);

/* Number of times that memory was freed. Each free may invalidate stored facts about a stack that
 * is not the thread's own. */
extern uint32_t unwind_frees;

/* Number of checked walks in which cached steps and the system's unwinder gave different frames.
 * Each time, the cache was emptied, and the frames of the system's unwinder were used. */
extern uint64_t unwind_mismatches;

/* Number of walks that were ended by an exception. */
extern uint64_t unwind_exceptions;

/*
 * Returns true if a near call instruction ends at `code`, as it must before a return address. The
 * byte at `code`, and `room` bytes before it, must be readable. The call may begin in the previous
 * page.
 */
bool unwind_is_after_call(const uint8_t *code, uint64_t room);

#endif
