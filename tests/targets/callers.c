/*
 * callers: leaks five times from one place of each kind, at different depths of the stack. All
 * leaks of a kind have the same stack, because the stack ends where it cannot be unwound. Each kind
 * has its own function and size.
 *
 *   in_window    100 bytes, in a window procedure that the system calls, in Wine from its Unix side
 *   bare_leak    200 bytes, in code of this image that has no unwind data
 *   in_code      300 bytes, below generated code with a function table, all at one depth
 *   in_bare_code 400 bytes, below generated code without a function table
 */
#include "samples/step.h"
#include "tests/targets/code.h"

#define TIMES 5

static HWND window;
static char *code, *bare_code;
void *(WINAPI *bare_allocate)(HANDLE, DWORD, SIZE_T);

/* Calls HeapAlloc(heap, 0, 200) in a normal function that has no unwind data. */
void *bare_leak(HANDLE heap);
__asm__(".text\n"
	".globl bare_leak\n"
	"bare_leak:\n"
	"	subq $40, %rsp\n"
	"	movq %rsp, (%rsp)\n" /* this word differs at each depth */
	"	xorl %edx, %edx\n"
	"	movl $200, %r8d\n"
	"	call *bare_allocate(%rip)\n"
	"	addq $40, %rsp\n"
	"	ret\n");

static NOINLINE void *in_code(void)
{
	return step_leak(HeapAlloc(GetProcessHeap(), 0, 300));
}

static NOINLINE void *in_bare_code(void)
{
	return step_leak(HeapAlloc(GetProcessHeap(), 0, 400));
}

static NOINLINE LRESULT CALLBACK in_window(HWND to, UINT message, WPARAM wide, LPARAM number)
{
	if (message == WM_APP)
		step_leak(HeapAlloc(GetProcessHeap(), 0, 100));
	return DefWindowProcW(to, message, wide, number);
}

static NOINLINE void call_at(unsigned depth)
{
	if (depth) {
		call_at(depth - 1);
		__asm__ volatile("" : : : "memory"); /* prevents a tail call */
	} else {
		SendNotifyMessageW(window, WM_APP, 0, 0);
		step_leak(bare_leak(GetProcessHeap()));
		((void *(*)(void))(void *)bare_code)();
	}
}

int main(void)
{
	RUNTIME_FUNCTION function = {0, CODE_UNWIND, CODE_UNWIND};
	WNDCLASSW window_class = {.lpfnWndProc = in_window, .lpszClassName = L"callers"};

	bare_allocate = HeapAlloc;
	code = code_make(in_code);
	bare_code = code_make(in_bare_code);
	RtlAddFunctionTable(&function, 1, (DWORD64)code);
	RegisterClassW(&window_class);
	window = CreateWindowW(
		window_class.lpszClassName, L"", 0, 0, 0, 0, 0, HWND_MESSAGE, NULL, NULL, NULL);
	if (!window)
		return 4;
	for (volatile unsigned i = 0; i < TIMES; i++) {
		call_at(i);
		((void *(*)(void))(void *)code)();
	}
	return step_done(1);
}
