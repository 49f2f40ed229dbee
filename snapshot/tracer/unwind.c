#include "snapshot/tracer/unwind.h"

#include <stdbool.h>

#include "snapshot/tracer/nt.h"

/*
 * A function that addresses its frame by a register is unwound by what that register holds; after
 * code without unwind data that may be anything, and must not be followed.
 *
 * UNWIND_INFO: the low half of byte 3 is the frame register's number, 0 for none; "x64 exception
 * handling", Microsoft Learn. CONTEXT has the registers in the order of their numbers.
 */
static bool frame_is_sound(
	const CONTEXT *context, const uint8_t *unwind_info, uint64_t low, uint64_t high)
{
	unsigned number = unwind_info[3] & 15;
	uint64_t frame = number ? (&context->Rax)[number] : low;

	return frame >= low && frame < high;
}

/* One step outwards; 0 when there is none. */
static uint64_t step(CONTEXT *context, uint64_t low, uint64_t high)
{
	DWORD64 base, establisher;
	PVOID handler_data;
	PRUNTIME_FUNCTION function;

	if (context->Rsp < low || context->Rsp > high - 8 || context->Rsp & 7)
		return 0;
	function = RtlLookupFunctionEntry(context->Rip, &base, NULL);
	if (!function) { /* a leaf: no frame, the return address is on top */
		context->Rip = *(const DWORD64 *)context->Rsp;
		context->Rsp += 8;
		return context->Rip;
	}
	if (!frame_is_sound(context, (const uint8_t *)(base + function->UnwindData), low, high))
		return 0;
	RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context->Rip, function, context, &handler_data,
		&establisher, NULL);
	return context->Rip;
}

uint32_t unwind_stack(uint64_t *frames, uint32_t max, const struct unwind_skip *skip)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	uint64_t low = (uint64_t)tib->StackLimit, high = (uint64_t)tib->StackBase;
	uint64_t last_rsp, addr;
	CONTEXT context;
	uint32_t count = 0;

	RtlCaptureContext(&context);
	while (count < max) {
		last_rsp = context.Rsp;
		addr = step(&context, low, high);
		if (!addr || context.Rsp <= last_rsp)
			break;
		if (count || addr < skip->from || addr >= skip->to)
			frames[count++] = addr;
	}
	return count;
}
