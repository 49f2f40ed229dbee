/*
 * The return addresses of the thread that calls.
 *
 * x64: how to get from a return address to the caller's frame is learnt from the system's unwinder
 * once and kept (unwind_parts_x64.h); a walk is then a few loads a frame, all of them between the
 * place it starts from and the end of the thread's stack. Where it meets an earlier walk of the thread it only compares what
 * that read. Of code in no image nothing is kept, as it is
 * made at run time, and its unwind data may be replaced: the data is looked up each time, and the step
 * read from it. Where an address is new, or the step hangs on another register than RSP and RBP, the
 * whole stack is walked with the system's unwinder, which is slow and right. All ways give the same
 * frames, and some walks are made again with the system's unwinder to see that.
 *
 * A stack ends where it cannot be proven further: with code that called and has no unwind data (Go's
 * and hand-made assembler, Wine 8's way from Unix code into a window procedure), and before a return
 * address that is no code. What lies behind on the stack are no frames.
 *
 * x86: by the rules of .eh_frame, which are kept in the same way (unwind_parts_x86.h); by EBP in an image that
 * has none, and in code of no image. There is no system's unwinder. A stack ends before an address that is not in code
 * or does not follow a call, with a rule that is damaged or not understood, and with the system's APC and exception dispatchers.
 *
 * Takes no lock, allocates nothing; any number of threads at a time. The system's unwinder calls the
 * target's function table callbacks, and reads what the target says is unwind data. An exception in
 * there ends the walk (the frames found so far stay); the target is not told, but its vectored
 * handlers and a debugger see it first, as a first-chance exception inside ntdll's unwinder or the
 * callback, called by this DLL. A stack overflow is left to the target. A callback that raised is not
 * asked again, nor any other one: ntdll may hold a lock of its dynamic function tables for ever then
 * (Wine does), so stacks end at code in no image from there on.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_H
#define SNAPSHOT_TRACER_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* Frames inside [from, to) at the inner end are left out: the tracer's own. */
struct unwind_skip {
	uint64_t from, to;
};

/*
 * Fills frames with up to max return addresses, innermost first, and returns how many: the first is
 * that of the caller, unless it is left out. The walk ends before the first address that is 0 (Wine goes
 * on past it with what happens to lie there) or no code, after code without unwind data, when it leaves
 * the thread's stack, or at max. 0 where it would take the system's unwinder, but the stack is full but for 32 KiB.
 *
 * On a stack that is not the thread's own, the walk stays in the memory around the stack pointer. Such a stack may be
 * small, so what is not known yet is read from unwind data alone: the walk ends at code that this does not suffice for.
 */
uint32_t unwind_stack(uint64_t *frames, uint32_t max, const struct unwind_skip *skip);

/*
 * The same from a function further out, in which this is: slot is where its return address stands, and rbp is RBP as its caller has
 * it. That leaves out the frames between; x86 goes through all the same, and skip says which they are.
 */
uint32_t unwind_from(uint64_t *frames, uint32_t max, const struct unwind_skip *skip, uint64_t slot,
	uint64_t rbp);

/*
 * What the caller noted of the stack that the calling thread's last walk found: all 0 if it did not yet. NULL
 * where that is not known. It holds for the same max and skip, and is gone with any unwind_forget().
 */
struct unwind_note {
	uint32_t id, session;
};

struct unwind_note *unwind_note(void);

/* What unwind_note() said of one of the thread's last stacks, if unwind_from() would find that one again, in less time than that;
 * else NULL. */
const struct unwind_note *unwind_again(uint64_t slot, uint64_t rbp);

/*
 * What is known of return addresses in [from, to) is forgotten. For a module that goes: to be called
 * after its memory is gone, and before that too if other threads may get the same addresses at once.
 */
void unwind_forget(uint64_t from, uint64_t to);
void unwind_forget_all(void);

/* How often memory was given back: what is known of a stack that is not the thread's own may not hold after that. */
extern uint32_t unwind_frees;

/* Walks where both ways differed: what was known was then forgotten, and the slow way believed. */
extern uint64_t unwind_mismatches;

/* Walks that an exception ended. */
extern uint64_t unwind_exceptions;

/*
 * Returns true if a near call ends where code points to: what a return address must be. room bytes before code, and
 * the byte there, can be read. The call may have begun in the page before.
 */
bool unwind_is_after_call(const uint8_t *code, uint64_t room);

#endif
