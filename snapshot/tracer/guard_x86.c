/*
 * guard_call() for x86. A called function may take fewer arguments than it is given, and removes
 * only its own from the stack (stdcall): so the stack pointer is restored from the frame.
 *
 * At EBP: the caller's EBP, return address, +8 a1 ... +28 a6, +32 function, +36 taken; at -4 the
 * previous value of the guard.
 */
#include "snapshot/tracer/guard.h"

/* struct _TEB, TlsSlots: public symbols of ntdll, x86, Windows 7 to 11; Wine's winternl.h */
const uint32_t guard_teb_slots = 0xe10;

_Static_assert(GUARD_HEAP == 1, "the number in the code below");
_Static_assert(GUARD_FAR_END == 64, "the number in the code below");

/* The low bits of a stack address are 0 here: ESP is a multiple of 4. */
__asm__(".text\n"
	".p2align 4\n"
	".globl _guard_call\n"
	".def _guard_call; .scl 2; .type 32; .endef\n"
	"_guard_call:\n"
	"	pushl %ebp\n"
	"	movl %esp, %ebp\n"
	"	movl _guard_offset, %ecx\n"
	"	cmpl $64, %ecx\n"
	"	jb 4f\n"
	"	addl %fs:0x18, %ecx\n" /* the TEB's own address */
	"1:	leal 3(%esp), %eax\n"
	"	cmpl %eax, (%ecx)\n"
	"	ja 2f\n"
	"	movl $0, (%ecx)\n" /* left over from a jump: it ends here */
	"2:	pushl (%ecx)\n"
	"	leal 1(%esp), %eax\n"
	"	movl %eax, (%ecx)\n"
	"	pushl 28(%ebp)\n"
	"	pushl 24(%ebp)\n"
	"	pushl 20(%ebp)\n"
	"	pushl 16(%ebp)\n"
	"	pushl 12(%ebp)\n"
	"	pushl 8(%ebp)\n"
	"	call *32(%ebp)\n"
	"	movl _guard_offset, %ecx\n"
	"	cmpl $64, %ecx\n"
	"	jb 5f\n"
	"	addl %fs:0x18, %ecx\n"
	"3:	movl -4(%ebp), %edx\n"
	"	movl %edx, (%ecx)\n"
	"	movl %ebp, %esp\n"
	"	popl %ebp\n"
	"	ret\n"
	"4:	pushl %ecx\n"
	"	call _guard_far_slot\n"
	"	popl %ecx\n"
	"	movl %eax, %ecx\n"
	"	jmp 1b\n"
	"5:	pushl %eax\n" /* the result */
	"	pushl %ecx\n"
	"	call _guard_far_slot\n"
	"	popl %ecx\n"
	"	movl %eax, %ecx\n"
	"	popl %eax\n"
	"	jmp 3b\n");
