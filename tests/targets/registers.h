/*
 * Calls a function with all the registers that a call has to leave as they are full of patterns, and
 * rounding modes that no compiler sets, and says how many of them have changed.
 *
 * x64 calling convention, Microsoft Learn: RBX, RBP, RDI, RSI, R12 to R15, XMM6 to XMM15, the control
 * words of SSE and of the x87.
 */
#ifndef TESTS_REGISTERS_H
#define TESTS_REGISTERS_H

#include <stdint.h>

/* The result is put into *result. */
uint64_t call_and_compare(void **result, const void *function, const void *a1, uint64_t a2,
	const void *a3, uint64_t a4);

#define SET(reg, n) "	movabsq $0x1111111111111111 * " #n ", %" #reg "\n"
#define IS(reg, n)                                                                                 \
	"	movabsq $0x1111111111111111 * " #n ", %rcx\n"                                      \
	"	cmpq %rcx, %" #reg "\n"                                                            \
	"	setne %cl\n"                                                                             \
	"	movzbl %cl, %ecx\n"                                                                      \
	"	addq %rcx, %rdx\n"
#define SET_XMM(n)                                                                                 \
	"	movabsq $0x0101010101010101 * " #n ", %r11\n"                                      \
	"	movq %r11, %xmm" #n "\n"                                                           \
	"	punpcklqdq %xmm" #n ", %xmm" #n "\n"
#define IS_XMM(n)                                                                                  \
	"	movabsq $0x0101010101010101 * " #n ", %r11\n"                                      \
	"	movq %r11, %xmm0\n"                                                                      \
	"	punpcklqdq %xmm0, %xmm0\n"                                                               \
	"	pcmpeqd %xmm" #n ", %xmm0\n"                                                       \
	"	pmovmskb %xmm0, %ecx\n"                                                                  \
	"	cmpl $0xffff, %ecx\n"                                                                    \
	"	setne %cl\n"                                                                             \
	"	movzbl %cl, %ecx\n"                                                                      \
	"	addq %rcx, %rdx\n"
#define ALL_XMM(op) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) op(14) op(15)
#define KEEP_XMM(n) "	movups %xmm" #n ", " #n " * 16(%rsp)\n"
#define LOAD_XMM(n) "	movups " #n " * 16(%rsp), %xmm" #n "\n"
#define ALL(op)                                                                                    \
	op(rbx, 1) op(rbp, 2) op(rsi, 3) op(rdi, 4) op(r12, 5) op(r13, 6) op(r14, 7) op(r15, 8)

/* The frame: 32 bytes for the called one, control words at 40 and 48, xmm6 to xmm15 from 96 on. */
__asm__(".text\n"
	".globl call_and_compare\n"
	".seh_proc call_and_compare\n"
	"call_and_compare:\n"
	"	pushq %rbx\n	.seh_pushreg %rbx\n"
	"	pushq %rbp\n	.seh_pushreg %rbp\n"
	"	pushq %rsi\n	.seh_pushreg %rsi\n"
	"	pushq %rdi\n	.seh_pushreg %rdi\n"
	"	pushq %r12\n	.seh_pushreg %r12\n"
	"	pushq %r13\n	.seh_pushreg %r13\n"
	"	pushq %r14\n	.seh_pushreg %r14\n"
	"	pushq %r15\n	.seh_pushreg %r15\n"
	"	subq $264, %rsp\n	.seh_stackalloc 264\n"
	"	.seh_endprologue\n" ALL_XMM(
		KEEP_XMM) "	movq %rcx, 56(%rsp)\n"
			  "	stmxcsr 40(%rsp)\n"
			  "	fnstcw 44(%rsp)\n"
			  "	movl $0x7f80, 48(%rsp)\n" /* rounds to zero */
			  "	ldmxcsr 48(%rsp)\n"
			  "	movw $0x0f7f, 52(%rsp)\n" /* so does that */
			  "	fldcw 52(%rsp)\n"
			  "	movq %rdx, %rax\n"
			  "	movq %r8, %rcx\n"
			  "	movq %r9, %rdx\n"
			  "	movq 368(%rsp), %r8\n"
			  "	movq 376(%rsp), %r9\n" ALL(SET) ALL_XMM(
				  SET_XMM) "	call *%rax\n"
					   "	xorl %edx, %edx\n" ALL(IS) ALL_XMM(
						   IS_XMM) "	stmxcsr 60 + 4(%rsp)\n"
							   "	fnstcw 68(%rsp)\n"
							   "	movl 64(%rsp), %ecx\n"
							   "	xorl 48(%rsp), %ecx\n"
							   "	andl $0xffc0, %ecx\n" /* not what has happened meanwhile */
							   "	addq %rcx, %rdx\n"
							   "	movzwl 68(%rsp), %ecx\n"
							   "	xorw 52(%rsp), %cx\n"
							   "	addq %rcx, %rdx\n"
							   "	ldmxcsr 40(%rsp)\n"
							   "	fldcw 44(%rsp)\n"
							   "	movq 56(%rsp), %rcx\n"
							   "	movq %rax, (%rcx)\n"
							   "	movq %rdx, %rax\n" ALL_XMM(
								   LOAD_XMM) "	addq $264, %rsp\n"
									     "	popq %r15\n	"
									     "popq %r14\n	"
									     "popq %r13\n	"
									     "popq %r12\n"
									     "	popq %rdi\n	"
									     "popq %rsi\n	"
									     "popq %rbp\n	"
									     "popq %rbx\n"
									     "	ret\n"
									     ".seh_endproc\n");

#endif
