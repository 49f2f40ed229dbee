#include "snapshot/tracer/unwind.h"

#include "snapshot/tracer/nt.h"

/* One step outwards; 0 when there is none. */
static uint64_t step(CONTEXT *context, uint64_t low, uint64_t high)
{
	DWORD64 base, establisher;
	PVOID handler_data;
	PRUNTIME_FUNCTION function;

	if (context->Rsp < low || context->Rsp > high - 8 || context->Rsp & 7)
		return 0;
	function = RtlLookupFunctionEntry(context->Rip, &base, NULL);
	if (function) {
		RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context->Rip, function, context,
			&handler_data, &establisher, NULL);
	} else { /* a leaf: no frame, the return address is on top */
		context->Rip = *(const DWORD64 *)context->Rsp;
		context->Rsp += 8;
	}
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
