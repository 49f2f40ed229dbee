/*
 * guard_call() for x64. It is written in assembly for two reasons. If an exception passes through
 * the call, a language handler must undo the call. That handler needs a known frame layout.
 *
 * Offsets from the stack pointer inside guard_call():
 *   +0    room for the callee's first four arguments, then a5, a6
 *   +48   previous value of the guard word
 *   +56   result, while the guard word is looked up
 *   +72   return address, room for guard_call()'s own first four arguments, a5, a6
 *   +128  function
 *   +136  taken
 */
#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"

/* TlsSlots in struct _TEB: ntdll's public symbols, x64, Windows 7 to 11; Wine's winternl.h. */
const uint32_t guard_teb_slots = 0x1480;

_Static_assert(GUARD_FAR_END == 64, "the number in the code below");

#define FRAME_BEFORE 48
#define FRAME_TAKEN 136
_Static_assert(GUARD_HEAP == 1, "the number in the code below");

EXCEPTION_DISPOSITION guard_unwound(
	EXCEPTION_RECORD *exception, char *frame, CONTEXT *context, void *dispatch);

__asm__(".text\n"
	".p2align 4\n"
	".globl guard_call\n"
	".def guard_call; .scl 2; .type 32; .endef\n"
	".seh_proc guard_call\n"
	"guard_call:\n"
	"	subq $72, %rsp\n"
	"	.seh_stackalloc 72\n"
	"	.seh_endprologue\n"
	"	.seh_handler guard_unwound, @unwind\n"
	"	movl guard_offset(%rip), %r10d\n"
	"	cmpl $64, %r10d\n"
	"	jb 3f\n"
	"1:	movq %gs:(%r10), %rax\n"
	"	leaq 3(%rsp), %r11\n"
	"	cmpq %r11, %rax\n" /* a stale word, left by a jump, counts as 0 */
	"	movl $0, %r11d\n"
	"	cmovbeq %r11, %rax\n"
	"	movq %rax, 48(%rsp)\n"
	"	leaq 1(%rsp), %rax\n"
	"	movq %rax, %gs:(%r10)\n"
	"	movq 112(%rsp), %rax\n"
	"	movq %rax, 32(%rsp)\n"
	"	movq 120(%rsp), %rax\n"
	"	movq %rax, 40(%rsp)\n"
	"	call *128(%rsp)\n"
	"	movl guard_offset(%rip), %r10d\n"
	"	cmpl $64, %r10d\n"
	"	jb 4f\n"
	"2:	movq 48(%rsp), %rcx\n"
	"	movq %rcx, %gs:(%r10)\n"
	"	addq $72, %rsp\n"
	"	ret\n"
	/* The offset of a word in threadwords.c is the distance from the TEB to the word. */
	"3:	movq %rcx, 80(%rsp)\n"
	"	movq %rdx, 88(%rsp)\n"
	"	movq %r8, 96(%rsp)\n"
	"	movq %r9, 104(%rsp)\n"
	"	movl %r10d, %ecx\n"
	"	call guard_far_slot\n"
	"	movq %rax, %r10\n"
	"	subq %gs:0x30, %r10\n"
	"	movq 80(%rsp), %rcx\n"
	"	movq 88(%rsp), %rdx\n"
	"	movq 96(%rsp), %r8\n"
	"	movq 104(%rsp), %r9\n"
	"	jmp 1b\n"
	"4:	movq %rax, 56(%rsp)\n"
	"	movl %r10d, %ecx\n"
	"	call guard_far_slot\n"
	"	movq %rax, %r10\n"
	"	subq %gs:0x30, %r10\n"
	"	movq 56(%rsp), %rax\n"
	"	jmp 2b\n"
	".seh_endproc\n");

EXCEPTION_DISPOSITION guard_unwound(
	EXCEPTION_RECORD *exception, char *frame, CONTEXT *context, void *dispatch)
{
	struct tracer_block *taken = *(struct tracer_block **)(frame + FRAME_TAKEN);

	(void)exception;
	(void)context;
	(void)dispatch;
	guard_end(*(uintptr_t *)(frame + FRAME_BEFORE));
	if (taken && taken->key && hooks_are_on())
		liveblocks_add(taken);
	return ExceptionContinueSearch;
}
