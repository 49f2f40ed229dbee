/*
 * guard_call() for x86. The called function may have fewer arguments than guard_call() pushes, and
 * removes only its own arguments from the stack (stdcall). So the stack pointer is restored from
 * EBP.
 *
 * Offsets from EBP:
 *   -4    previous value of the guard word
 *   +0    the caller's EBP, then the return address
 *   +8    a1 to a6
 *   +32   function
 *   +36   taken
 */
#include "snapshot/tracer/guard.h"

/* TlsSlots in struct _TEB: ntdll's public symbols, x86, Windows 7 to 11; Wine's winternl.h. */
const uint32_t guard_teb_slots = 0xe10;

_Static_assert(GUARD_HEAP == 1, "the number in the code below");
_Static_assert(GUARD_FAR_END == 64, "the number in the code below");

/* ESP is a multiple of 4 here, so the two low bits of a stack address are free for the kind. */
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
	"	movl $0, (%ecx)\n" /* clear a stale word, left by a jump */
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
