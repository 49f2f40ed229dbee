/* Stacks from the system's unwinder, which goes one step at a time, for comparison with the
 * tracer's. */
#ifndef TESTS_WIN_UNWIND_TRUTH_H
#define TESTS_WIN_UNWIND_TRUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <windows.h>

#include "tests/win/tap.h"

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" : : : "memory") /* prevents a tail call */
#define FRAMES_MAX 400

static inline bool is_code(uint64_t addr)
{
	const DWORD executable =
		PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
	MEMORY_BASIC_INFORMATION info;

	return VirtualQuery((const void *)(uintptr_t)addr, &info, sizeof(info)) &&
	       info.State == MEM_COMMIT && info.Protect & executable;
}

/* Returns true if the address follows a call (call rcx) in the tests' own code that has no function
 * table. */
static inline bool was_called_from(uint64_t addr)
{
	return !memcmp((const char *)(uintptr_t)addr - 2, "\xff\xd1", 2);
}

/* Returns the return addresses, starting with that of the calling function. The stack ends at 0, at
 * an address outside code, and at the end of the stack memory. It also ends at calling code that
 * has no function table, because only a leaf may lack one, and at a frame based on a register that
 * does not point into the stack. */
static NOINLINE uint32_t true_stack(uint64_t *frames, uint32_t max)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	uint64_t low = (uint64_t)tib->StackLimit, high = (uint64_t)tib->StackBase;
	CONTEXT context;
	uint32_t count;

	RtlCaptureContext(&context);
	/* Resets the count, because gcc 14 assumes that the call above can return twice. */
	count = 0;
	while (count < max && context.Rsp >= low && context.Rsp < high) {
		DWORD64 base, frame, before = context.Rsp;
		RUNTIME_FUNCTION *function = RtlLookupFunctionEntry(context.Rip, &base, NULL);
		void *data;

		if (function) {
			unsigned number = ((uint8_t *)base)[function->UnwindData + 3] & 15;
			uint64_t holds = number ? (&context.Rax)[number] : low;

			if (holds < low || holds >= high)
				break;
			RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, function, &context,
				&data, &frame, NULL);
		} else {
			if (was_called_from(context.Rip))
				break;
			context.Rip = *(DWORD64 *)context.Rsp;
			context.Rsp += 8;
		}
		if (!is_code(context.Rip) || context.Rsp <= before)
			break;
		frames[count++] = context.Rip;
	}
	return count;
}

/* Number of calls of the system's unwinder by this program, since counting was turned on. */
static volatile LONG unwind_calls;
static PEXCEPTION_ROUTINE(NTAPI *unwind_real)(DWORD, DWORD64, DWORD64, PRUNTIME_FUNCTION, PCONTEXT,
	PVOID *, PDWORD64, PKNONVOLATILE_CONTEXT_POINTERS);

static PEXCEPTION_ROUTINE NTAPI unwind_counted(DWORD type, DWORD64 base, DWORD64 pc,
	PRUNTIME_FUNCTION function, PCONTEXT context, PVOID *data, PDWORD64 frame,
	PKNONVOLATILE_CONTEXT_POINTERS pointers)
{
	InterlockedIncrement(&unwind_calls);
	return unwind_real(type, base, pc, function, context, data, frame, pointers);
}

/* Only this program's own import is replaced, so calls by other modules are not counted. */
extern void *__imp_RtlVirtualUnwind;

static inline void count_unwind_calls(void)
{
	DWORD old;

	VirtualProtect(&__imp_RtlVirtualUnwind, sizeof(void *), PAGE_READWRITE, &old);
	*(void **)&unwind_real = __imp_RtlVirtualUnwind;
	__imp_RtlVirtualUnwind = (void *)unwind_counted;
}

#endif
