/* Blocks allocated on stacks that the thread's own block (TEB) does not describe, as in coroutine
 * libraries. In each step after the first, leak_on_own() <- run_on_own() is called 2,000 times for
 * 4,321 bytes on each of three stacks. The stacks are in the program's data, in a heap block, and
 * in memory from VirtualAlloc(). Between steps 3 and 4 the third stack is freed and replaced with a
 * smaller one. Prints "step K pid P" like samples/step.h. */
#include <stdlib.h>

#include "samples/step.h"

#define BLOCKS 2000
#define STACK_BYTES 65536

static char in_data[STACK_BYTES] __attribute__((aligned(16)));
static void *leaked;

static NOINLINE void leak_on_own(void)
{
	leaked = step_leak(malloc(4321));
}

static NOINLINE void run_on_own(void)
{
	leak_on_own();
	__asm__ volatile("" ::: "memory"); /* prevents a tail call */
}

static NOINLINE void switch_to(char *stack, size_t bytes)
{
	char *top = stack + bytes - 64;

#ifdef _WIN64
	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tsubq $64, %%rsp\n\tcall *%1\n\t"
			 "movq %%rbx, %%rsp"
			 :
			 : "r"(top), "r"(run_on_own)
			 : "rbx", "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory");
#else
	__asm__ volatile("movl %%esp, %%ebx\n\tmovl %0, %%esp\n\tcall *%1\n\tmovl %%ebx, %%esp"
			 :
			 : "r"(top), "r"(run_on_own)
			 : "ebx", "eax", "ecx", "edx", "memory");
#endif
}

int main(void)
{
	char *in_heap = malloc(STACK_BYTES), *in_pages = NULL;
	size_t page_bytes = STACK_BYTES;

	for (unsigned long step = 1; in_heap && step_done(step); step++) {
		if (in_pages)
			VirtualFree(in_pages, 0, MEM_RELEASE);
		in_pages = VirtualAlloc(NULL, page_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
		if (!in_pages)
			return 3;
		for (int i = 0; i < BLOCKS; i++) {
			switch_to(in_data, sizeof(in_data));
			switch_to(in_heap, STACK_BYTES);
			switch_to(in_pages, page_bytes);
		}
		page_bytes = STACK_BYTES / 2;
	}
	return 0;
}
