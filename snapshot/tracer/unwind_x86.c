#include "snapshot/tracer/unwind.h"

#include "snapshot/tracer/tracer_nt.h"

uint64_t unwind_mismatches, unwind_exceptions;

/* From the frame of this very function, which has one since it asks for it. */
__attribute__((noinline)) uint32_t unwind_stack(
	uint64_t *frames, uint32_t max, const struct unwind_skip *skip)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	uint32_t ebp = (uint32_t)(uintptr_t)__builtin_frame_address(0);
	uint32_t low = (uint32_t)(uintptr_t)tib->StackLimit;
	struct unwind_window window = {
		ebp, (uint32_t)(uintptr_t)tib->StackBase, __builtin_frame_address(0)};

	/* Nothing below this frame is looked at, and all above it is there. */
	return ebp < low ? 0 : unwind_chain(frames, max, skip, &window, ebp);
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

const struct unwind_note *unwind_again(uint64_t slot, uint64_t rbp)
{
	(void)slot;
	(void)rbp;
	return NULL;
}

/* Nothing is known of addresses. */
void unwind_forget(uint64_t from, uint64_t to)
{
	(void)from;
	(void)to;
}

void unwind_forget_all(void)
{
}
