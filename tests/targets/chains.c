/* chains: allocates in functions whose callers are known, and states both (stated.h). Only the C
 * library lies between malloc and these functions. It is built with frame pointers and, as
 * chains_fpo, optimised without them. Step K: every function has allocated K times. */
#include <malloc.h>

#include "tests/targets/stated.h"

/* Prevents a tail call. */
#define STAY() __asm__ volatile("" ::: "memory")

static const size_t bytes = 100;
static volatile unsigned depth = 4;

static NOINLINE void in_malloc(void)
{
	step_leak(malloc(bytes));
	STAY();
}

static NOINLINE void in_calloc(void)
{
	step_leak(calloc(1, bytes));
	STAY();
}

static NOINLINE void in_realloc(void)
{
	step_leak(realloc(step_leak(malloc(7)), bytes));
	STAY();
}

static NOINLINE void in_heap_alloc(void)
{
	step_leak(HeapAlloc(GetProcessHeap(), 0, bytes));
	STAY();
}

static NOINLINE void in_local_alloc(void)
{
	step_leak(LocalAlloc(LMEM_FIXED, bytes));
	STAY();
}

static NOINLINE void in_recursion(unsigned left)
{
	if (left)
		in_recursion(left - 1);
	else
		step_leak(malloc(bytes));
	STAY();
}

/* The size of this function's frame is known only at run time. */
static NOINLINE void in_alloca(unsigned size)
{
	volatile char *room = alloca(size);

	room[0] = 1;
	step_leak(malloc(bytes));
	room[size - 1] = 2;
}

static NOINLINE void in_aligned(void)
{
	volatile char room[256] __attribute__((aligned(64)));

	room[0] = 1;
	step_leak(malloc(bytes));
	room[255] = room[0];
}

static NOINLINE void in_large_frame(void)
{
	volatile char room[50000];

	room[0] = 1;
	step_leak(malloc(bytes));
	room[sizeof(room) - 1] = 2;
}

/* In a 32-bit program this function pops its own arguments. */
static NOINLINE void WINAPI in_stdcall(int a, int b, int c, int d, int e)
{
	volatile int sum = a + b + c + d + e;

	step_leak(malloc(bytes));
	STAY();
	(void)sum;
}

static NOINLINE void in_varargs(int count, ...)
{
	va_list args;
	volatile int sum = 0;

	va_start(args, count);
	for (int i = 0; i < count; i++)
		sum += va_arg(args, int);
	va_end(args);
	step_leak(malloc(bytes));
	STAY();
}

struct large {
	int words[40];
};

static NOINLINE struct large in_struct(struct large by_value)
{
	step_leak(malloc(bytes));
	by_value.words[0]++;
	return by_value;
}

static bool is_compared;

/* The C library calls this function. */
static NOINLINE int __cdecl in_callback(const void *a, const void *b)
{
	if (!is_compared) {
		is_compared = true;
		step_leak(malloc(bytes));
	}
	return *(const int *)a - *(const int *)b;
}

/* Keeps values in all callee-saved registers. */
static NOINLINE int in_registers(int a, int b, int c, int d)
{
	int e = a * b, f = b * c, g = c * d, h = d * a;

	step_leak(malloc(bytes));
	return a + b + c + d + e + f + g + h;
}

static NOINLINE DWORD WINAPI in_thread(void *unused)
{
	(void)unused;
	step_leak(malloc(bytes));
	STAY();
	return 0;
}

static NOINLINE void by_pointer(void (*function)(void))
{
	function();
	STAY();
}

static NOINLINE void sort_two(void)
{
	int two[2] = {2, 1};

	is_compared = false;
	qsort(two, 2, sizeof(*two), in_callback);
	STAY();
}

static NOINLINE void call_plain(void)
{
	in_malloc();
	in_calloc();
	in_realloc();
	in_heap_alloc();
	in_local_alloc();
	in_recursion(depth);
	STAY();
}

static NOINLINE void call_frames(void)
{
	in_alloca(100 * depth);
	in_aligned();
	in_large_frame();
	STAY();
}

static NOINLINE void call_odd(void)
{
	struct large large = {{0}};
	volatile int sum;

	in_stdcall(1, 2, 3, 4, 5);
	in_varargs(4, 1, 2, 3, 4);
	large = in_struct(large);
	sort_two();
	sum = in_registers((int)depth, 3, 5, 7) + large.words[0];
	(void)sum;
	STAY();
}

static void run_thread(void)
{
	HANDLE thread = CreateThread(NULL, 0, in_thread, NULL, 0, NULL);

	WaitForSingleObject(thread, INFINITE);
	CloseHandle(thread);
}

static void state_all(unsigned long step)
{
	static const char *const chains[] = {"in_malloc call_plain by_pointer main",
		"in_calloc call_plain by_pointer main", "in_realloc call_plain by_pointer main",
		"in_heap_alloc call_plain by_pointer main",
		"in_local_alloc call_plain by_pointer main",
		"in_recursion in_recursion in_recursion in_recursion in_recursion call_plain "
		"by_pointer main",
		"in_alloca call_frames by_pointer main", "in_aligned call_frames by_pointer main",
		"in_large_frame call_frames by_pointer main", "in_stdcall call_odd by_pointer main",
		"in_varargs call_odd by_pointer main", "in_struct call_odd by_pointer main",
		"in_callback sort_two call_odd by_pointer main",
		"in_registers call_odd by_pointer main", "in_thread"};

	for (size_t i = 0; i < sizeof(chains) / sizeof *chains; i++) {
		state("sum %.*s %lu %lu\n", (int)strcspn(chains[i], " "), chains[i],
			(unsigned long)bytes * step, step);
		state("chain %s\n", chains[i]);
	}
}

int main(void)
{
	for (volatile unsigned long step = 1;; step++) {
		by_pointer(call_plain);
		by_pointer(call_frames);
		by_pointer(call_odd);
		run_thread();
		state_all(step);
		if (!state_step(step))
			return 0;
	}
}
