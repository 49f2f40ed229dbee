/* Stacks as the system's unwinder gives them, one plain step after the other, for tests of ours. */
#ifndef TESTS_WIN_UNWIND_TRUTH_H
#define TESTS_WIN_UNWIND_TRUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <windows.h>

#include "tests/win/tap.h"

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" : : : "memory") /* after a call: no jump instead of it */
#define FRAMES_MAX 400

/* Whether there is code at an address. */
static inline bool is_code(uint64_t addr)
{
	const DWORD executable =
		PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
	MEMORY_BASIC_INFORMATION info;

	return VirtualQuery((const void *)(uintptr_t)addr, &info, sizeof(info)) &&
	       info.State == MEM_COMMIT && info.Protect & executable;
}

/* The calls that the tests' own code without a function table makes: call rcx. */
static inline bool was_called_from(uint64_t addr)
{
	return !memcmp((const char *)(uintptr_t)addr - 2, "\xff\xd1", 2);
}

/*
 * The return addresses from that of the function that calls this outwards. They end at 0, at what is
 * no code, and where the stack does; and with code that called and that no function table has, for
 * only a function that calls none may be without; and with one whose frame hangs on a register that
 * does not point into the stack.
 */
static NOINLINE uint32_t true_stack(uint64_t *frames, uint32_t max)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	uint64_t low = (uint64_t)tib->StackLimit, high = (uint64_t)tib->StackBase;
	CONTEXT context;
	uint32_t count;

	RtlCaptureContext(&context);
	count = 0; /* after what gcc 14 takes for a call that returns twice */
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

/* How often the program asks the system's unwinder, from when on it is told to count. */
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

/* The program's own import, so calls from elsewhere are not counted. */
extern void *__imp_RtlVirtualUnwind;

static inline void count_unwind_calls(void)
{
	DWORD old;

	VirtualProtect(&__imp_RtlVirtualUnwind, sizeof(void *), PAGE_READWRITE, &old);
	*(void **)&unwind_real = __imp_RtlVirtualUnwind;
	__imp_RtlVirtualUnwind = (void *)unwind_counted;
}

#endif
