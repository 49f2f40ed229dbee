/* Calls a function with patterns in all callee-saved registers, and with rounding modes that no
 * compiler sets. Counts the registers that changed. The x64 calling convention (Microsoft Learn)
 * preserves RBX, RBP, RDI, RSI, R12 to R15, XMM6 to XMM15, and the control words of SSE and of the
 * x87. */
#ifndef TESTS_REGISTERS_H
#define TESTS_REGISTERS_H

#include <stdint.h>
#include <string.h>

struct registers {
	uint64_t words[8 + 2 * 10]; /* whole registers, then halves of XMM6 to XMM15 */
	uint32_t mxcsr;
	uint16_t x87, unused;
};

/* Calls the function with the registers `given`, stores the registers after the call in `found`,
 * and returns the function's result. */
void *call_with(const struct registers *given, struct registers *found, const void *function,
	const uint64_t arguments[4]);

/* The frame has 32 bytes for the called function, then `found` at 32, then this function's saved
 * registers from 48 on. */
__asm__(".text\n"
	".macro put_xmm\n"
	"	.irp n, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
	"	movups %xmm\\n, 16 * \\n - 32(%r11)\n"
	"	.endr\n	stmxcsr 224(%r11)\n	fnstcw 228(%r11)\n"
	".endm\n"
	".macro take_xmm\n"
	"	.irp n, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
	"	movups 16 * \\n - 32(%r11), %xmm\\n\n"
	"	.endr\n	ldmxcsr 224(%r11)\n	fldcw 228(%r11)\n"
	".endm\n"
	".globl call_with\n"
	".seh_proc call_with\n"
	"call_with:\n"
	"	.irp reg, rbx, rbp, rsi, rdi, r12, r13, r14, r15\n"
	"	pushq %\\reg\n	.seh_pushreg %\\reg\n"
	"	.endr\n"
	"	subq $312, %rsp\n	.seh_stackalloc 312\n"
	"	.seh_endprologue\n"
	"	movq %rdx, 32(%rsp)\n"
	"	leaq 48(%rsp), %r11\n"
	"	put_xmm\n"
	"	movq %rcx, %r11\n"
	"	take_xmm\n"
	"	.set at, 0\n"
	"	.irp reg, rbx, rbp, rsi, rdi, r12, r13, r14, r15\n"
	"	movq at(%r11), %\\reg\n	.set at, at + 8\n"
	"	.endr\n"
	"	movq %r8, %rax\n"
	"	movq (%r9), %rcx\n	movq 8(%r9), %rdx\n	movq 16(%r9), %r8\n	movq "
	"24(%r9), %r9\n"
	"	call *%rax\n"
	"	movq 32(%rsp), %r11\n"
	"	put_xmm\n"
	"	.set at, 0\n"
	"	.irp reg, rbx, rbp, rsi, rdi, r12, r13, r14, r15\n"
	"	movq %\\reg, at(%r11)\n	.set at, at + 8\n"
	"	.endr\n"
	"	leaq 48(%rsp), %r11\n"
	"	take_xmm\n"
	"	addq $312, %rsp\n"
	"	.irp reg, r15, r14, r13, r12, rdi, rsi, rbp, rbx\n"
	"	popq %\\reg\n"
	"	.endr\n"
	"	ret\n"
	".seh_endproc\n");

/* Stores the result in *result; returns the number of changed registers. */
static inline unsigned call_and_compare(void **result, const void *function, const void *a1,
	uint64_t a2, const void *a3, uint64_t a4)
{
	const uint64_t arguments[] = {(uintptr_t)a1, a2, (uintptr_t)a3, a4};
	/* Both control words round to zero. */
	struct registers given = {.mxcsr = 0x7f80, .x87 = 0x0f7f}, found = {0};
	unsigned changed;

	for (unsigned i = 0; i < 28; i++)
		given.words[i] = 0x0101010101010101 * (i + 1);
	*result = call_with(&given, &found, function, arguments);
	changed = (found.mxcsr & ~0x3fu) != given.mxcsr; /* ignoring the exception flags */
	changed += found.x87 != given.x87;
	for (unsigned i = 0; i < 28; i++)
		changed += found.words[i] != given.words[i];
	return changed;
}

#endif
