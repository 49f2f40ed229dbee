#include "snapshot/tracer/guard.h"

#include "snapshot/tracer/nt.h"

/*
 * The slot is read in the TEB itself, since TlsGetValue() changes the last error; offsets: TlsSlots in
 * struct _TEB, public symbols of ntdll, x64, Windows 7 to 11.
 */
#define TEB_TLS_SLOTS 0x1480
#define TLS_SLOT_COUNT 64
#define WHAT_MASK ((uintptr_t)3)

static DWORD slot;

bool guard_init(void)
{
	slot = TlsAlloc();
	return slot < TLS_SLOT_COUNT;
}

static uintptr_t get(void)
{
	return __readgsqword((unsigned)(TEB_TLS_SLOTS + slot * 8));
}

static void set(uintptr_t value)
{
	__writegsqword((unsigned)(TEB_TLS_SLOTS + slot * 8), value);
}

enum guard guard_now(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), guard = get();
	uintptr_t began = guard & ~WHAT_MASK;

	if (!guard || here >= began || began > (uintptr_t)((NT_TIB *)NtCurrentTeb())->StackBase)
		return GUARD_NONE;
	return (enum guard)(guard & WHAT_MASK);
}

uintptr_t guard_begin(enum guard what)
{
	uintptr_t before = get();

	set(((uintptr_t)__builtin_frame_address(0) & ~WHAT_MASK) | what);
	return before;
}

void guard_end(uintptr_t before)
{
	set(before);
}
