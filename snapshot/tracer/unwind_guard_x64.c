/*
 * A call that comes back when there is an exception in it.
 *
 * The compiler has no __try for this; so a function in assembly has a language handler, which unwinds
 * to behind the call, as __except does: whatever lies between is told, and an exception that cannot be
 * continued (a C++ one) is no special case. An unwind that passes through (an outer handler's, a
 * thread's end) is none of its business.
 */
#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/unwind_slow_x64.h"

/* EXCEPTION_UNWINDING, _EXIT_UNWIND, _TARGET_UNWIND, _COLLIDED_UNWIND; winnt.h of the SDK */
#define UNWIND_FLAGS 0x66

extern const char unwind_guard_out[];

EXCEPTION_DISPOSITION unwind_guard_handler(
	EXCEPTION_RECORD *exception, void *frame, CONTEXT *context, DISPATCHER_CONTEXT *dispatch);

/* After the call a nop: what is there must not look like an epilogue. */
__asm__(".text\n"
	".globl unwind_guarded\n"
	".def unwind_guarded; .scl 2; .type 32; .endef\n"
	".seh_proc unwind_guarded\n"
	"unwind_guarded:\n"
	"	subq $40, %rsp\n"
	"	.seh_stackalloc 40\n"
	"	.seh_endprologue\n"
	"	.seh_handler unwind_guard_handler, @except\n"
	"	call unwind_slow\n"
	"	movl $1, %eax\n"
	".globl unwind_guard_out\n"
	"unwind_guard_out:\n" /* with 0 in rax after an exception */
	"	nop\n"
	"	addq $40, %rsp\n"
	"	ret\n"
	".seh_endproc\n");

EXCEPTION_DISPOSITION unwind_guard_handler(
	EXCEPTION_RECORD *exception, void *frame, CONTEXT *context, DISPATCHER_CONTEXT *dispatch)
{
	(void)context;
	if (exception->ExceptionFlags & UNWIND_FLAGS ||
		exception->ExceptionCode == (DWORD)STATUS_STACK_OVERFLOW)
		return ExceptionContinueSearch;
	RtlUnwindEx(frame, (PVOID)(ULONG_PTR)unwind_guard_out, exception, NULL,
		dispatch->ContextRecord, dispatch->HistoryTable);
	return ExceptionContinueSearch; /* not reached */
}
