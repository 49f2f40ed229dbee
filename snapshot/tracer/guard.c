#include "snapshot/tracer/guard.h"

#define TLS_SLOT_COUNT 64 /* more lie elsewhere, in memory that the system takes when it needs it */
#define WHAT_MASK ((uintptr_t)3)

uint32_t guard_offset;

uint32_t guard_new_slot(void)
{
	DWORD slot = TlsAlloc();

	if (slot < TLS_SLOT_COUNT)
		return guard_teb_slots + slot * (uint32_t)sizeof(void *);
	if (slot != TLS_OUT_OF_INDEXES)
		TlsFree(slot);
	return 0;
}

bool guard_init(void)
{
	guard_offset = guard_new_slot();
	return guard_offset;
}

enum guard guard_now(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), guard = *guard_slot(guard_offset);
	uintptr_t began = guard & ~WHAT_MASK;

	if (!guard || here >= began || began > (uintptr_t)((NT_TIB *)NtCurrentTeb())->StackBase)
		return GUARD_NONE;
	return (enum guard)(guard & WHAT_MASK);
}
