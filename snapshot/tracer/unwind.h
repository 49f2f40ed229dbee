/*
 * Return addresses of the calling thread.
 *
 * x64: the way from a return address to the caller's frame is learnt from the system's unwinder
 * once and cached (unwind_parts_x64.h). A walk is then a few loads a frame, all of them between its
 * start and the end of the thread's stack. Where it meets an earlier walk of the thread, it only
 * compares the words which that walk read. Code outside images is made at run time, and its unwind
 * data may be replaced. So nothing is cached for it: the data is looked up each time, and the step
 * read from it. An address may be new, or a step may depend on a register other than RSP and RBP.
 * Then the whole stack is walked with the system's unwinder, which is slow and right. All ways give
 * the same frames; some walks are repeated with the system's unwinder to check that.
 *
 * A stack ends where the way further out cannot be proven: before a return address that is not
 * code, and at code that made a call and has no unwind data. Such code is Go's and hand-made
 * assembler, and Wine 8's way from Unix code into a window procedure. Further words on the stack
 * are not frames.
 *
 * x86: by the rules of .eh_frame, which are cached in the same way (unwind_parts_x86.h); by EBP in
 * an image that has none, and in code outside images. The system has no unwinder. A stack ends
 * before an address that is not in code or does not follow a call. It also ends at a rule that is
 * damaged or not understood, and at the system's APC and exception dispatchers.
 *
 * Takes no lock, allocates nothing; any number of threads at a time. The system's unwinder calls
 * the target's function table callbacks, and reads memory that the target declares as unwind data.
 * An exception in there ends the walk (the frames found so far stay). The target is not notified,
 * but its vectored handlers and a debugger see the exception first: a first-chance exception inside
 * ntdll's unwinder or the callback, called by this DLL. A stack overflow is left to the target.
 * After a callback has raised an exception, no callback is called any more: ntdll may hold a lock
 * of its dynamic function tables forever (Wine does). Stacks then end at code outside images.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_H
#define SNAPSHOT_TRACER_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* The tracer's own code: frames inside [from, to) at the inner end are left out. */
struct unwind_skip {
	uint64_t from, to;
};

/*
 * Fills frames with up to max return addresses, innermost first, and returns their number. The
 * first one is the caller's, unless it is left out. The walk ends before the first address that is
 * not code or is 0 (Wine goes on past 0 with whatever is there). It also ends after code without
 * unwind data, when it leaves the thread's stack, and at max. Returns 0 if the walk would need the
 * system's unwinder, and less than 32 KiB of the stack are left.
 *
 * On a stack that is not the thread's own, the walk stays in the memory around the stack pointer.
 * Such a stack may be small, so unknown steps are read from unwind data alone: the walk ends at
 * code for which the data does not suffice.
 */
uint32_t unwind_stack(uint64_t *frames, uint32_t max, const struct unwind_skip *skip);

/*
 * Walks like unwind_stack(), but from an outer function: slot is the place of that function's
 * return address, and rbp is RBP as its caller has it. That leaves out the frames between.
 */
uint32_t unwind_from(uint64_t *frames, uint32_t max, const struct unwind_skip *skip, uint64_t slot,
	uint64_t rbp);

/*
 * The caller's note on the stack that the calling thread's last walk found; all 0 if there is no
 * note yet. unwind_note() returns NULL if that stack is not known. A note holds for the same max
 * and skip, and is lost with any unwind_forget().
 */
struct unwind_note {
	uint32_t id, session;
};

struct unwind_note *unwind_note(void);

/* Returns the note on one of the thread's last stacks if unwind_from() would find that stack again,
 * in less time than unwind_from() takes; otherwise NULL. */
const struct unwind_note *unwind_again(uint64_t slot, uint64_t rbp);

/*
 * Forgets everything about return addresses in [from, to). For a module that is unmapped: to be
 * called after its memory is free, and also before, if other threads may get the same addresses at
 * once.
 */
void unwind_forget(uint64_t from, uint64_t to);
void unwind_forget_all(void);

/* Number of times that memory was given back: after that, what is known of a stack that is not the
 * thread's own may not hold. */
extern uint32_t unwind_frees;

/* Number of walks for which both ways differed: the cache was then emptied, and the slow way
 * trusted. */
extern uint64_t unwind_mismatches;

/* Number of walks that an exception ended. */
extern uint64_t unwind_exceptions;

/*
 * Returns true if a near call ends where code points to, as must be before a return address. room
 * bytes before code, and the byte there, must be readable. The call may begin in the page before.
 */
bool unwind_is_after_call(const uint8_t *code, uint64_t room);

#endif
