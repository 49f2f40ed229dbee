/* hook_cases: calls the heap's functions in unusual ways, and prints one line with the results of
 * each call. The results must be equal with a tracer and without. If a tracer is present, the
 * program checks the tracer's entry of the block after each case. A mismatch prints the line
 * "table: ..." and sets the exit status to 9. Some cases are errors (double free, wrong heap, wild
 * pointer), which Wine refuses before it continues. Each case frees all its blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"
#include "tests/targets/code.h"
#include "tests/targets/own_table.h"
#include "tests/targets/registers.h"

#define HUGE_BYTES ((SIZE_T)0x7ffffffffff0)
#define MARK 0x5a5a

typedef PVOID(WINAPI *rtl_create_fn)(
	ULONG flags, PVOID base, SIZE_T reserve, SIZE_T commit, PVOID lock, PVOID parameters);

static const struct tracer_area *area;
static HANDLE heap;
static int status;

static void messages(const char *format, ...)
{
	char line[200];
	va_list args;
	DWORD put;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	line[len++] = '\n';
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)len, &put, NULL);
}

/* Prints a call's result and the last error. */
static void answer(const char *what, unsigned long long value)
{
	DWORD error = GetLastError();

	messages("%s: %llu, error %lu", what, value, error);
	SetLastError(MARK);
}

static void wrong(const char *what, const char *why)
{
	messages("table: %s: %s", what, why);
	status = 9;
}

/* Checks that the tracer knows the block with this size and heap, and that its stack passes through
 * this function. */
static void known(
	const char *what, const void *block, uint64_t bytes, HANDLE of, const void *function)
{
	const struct tracer_block *found = area ? own_table_find(area, block) : NULL;

	if (!area)
		return;
	if (!found)
		wrong(what, "the block is not there");
	else if (tracer_block_bytes(found) != bytes)
		wrong(what, "another size");
	else if (tracer_heap_handle(area, tracer_block_heap(found)) != (uintptr_t)of)
		wrong(what, "another heap");
	else if (!own_table_is_by(area, found, function))
		wrong(what, "another caller");
}

static void unknown(const char *what, const void *block)
{
	if (area && own_table_find(area, block))
		wrong(what, "a block that is gone");
}

static NOINLINE void nothing_at_all(void)
{
	char *block = HeapAlloc(heap, 0, 0);

	answer("no bytes", block != NULL);
	known("no bytes", block, 0, heap, nothing_at_all);
	answer("no bytes, size", HeapSize(heap, 0, block));
	answer("no bytes, free", HeapFree(heap, 0, block));
	unknown("no bytes", block);
	answer("free NULL", HeapFree(heap, 0, NULL));
	answer("reallocate NULL", HeapReAlloc(heap, 0, NULL, 10) != NULL);
	free(NULL);
	answer("C free NULL", 0);
}

static NOINLINE void too_much(void)
{
	char *block = HeapAlloc(heap, HEAP_ZERO_MEMORY, 1000), *volatile by_c;

	answer("huge", HeapAlloc(heap, 0, HUGE_BYTES) != NULL);
	by_c = malloc(HUGE_BYTES);
	answer("huge by C", by_c != NULL);
	free(by_c);
	answer("all there is", HeapAlloc(heap, 0, (SIZE_T)-1) != NULL);
	answer("grow to huge", HeapReAlloc(heap, 0, block, HUGE_BYTES) != NULL);
	known("grow to huge", block, 1000, heap, too_much);
	answer("grow to huge, size", HeapSize(heap, 0, block));
	answer("grow to huge, free", HeapFree(heap, 0, block));
	unknown("grow to huge", block);
}

static NOINLINE void in_place(void)
{
	char *block = HeapAlloc(heap, 0, 3000), *next = HeapAlloc(heap, 0, 3000), *same;

	same = HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, 200000);
	answer("grow in place", same != NULL);
	known("grow in place", block, 3000, heap, in_place);
	same = HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, 500);
	answer("shrink in place", same == block);
	known("shrink in place", block, 500, heap, in_place);
	same = HeapReAlloc(heap, 0, block, 0);
	answer("shrink to nothing", same != NULL);
	answer("shrink to nothing, size", HeapSize(heap, 0, same));
	known("shrink to nothing", same, 0, heap, in_place);
	answer("in place, free", HeapFree(heap, 0, same) && HeapFree(heap, 0, next));
	unknown("in place", block);
	unknown("in place", same);
}

static NOINLINE void moving(void)
{
	char *block = HeapAlloc(heap, 0, 100), *next = HeapAlloc(heap, 0, 100);
	char *moved = HeapReAlloc(heap, HEAP_ZERO_MEMORY, block, 300000), *large;

	answer("move", moved && moved != block);
	known("move", moved, 300000, heap, moving);
	unknown("move", block);
	large = HeapReAlloc(heap, 0, moved, 3000000);
	answer("move to one of its own", large && large != moved);
	known("move to one of its own", large, 3000000, heap, moving);
	unknown("move to one of its own", moved);
	answer("move, free", HeapFree(heap, 0, large) && HeapFree(heap, 0, next));
	unknown("move, free", large);
}

static NOINLINE void broken(void)
{
	char *block = HeapAlloc(heap, 0, 700), *other = HeapAlloc(heap, 0, 800), wild[64] = "";

	answer("free inside a block", HeapFree(heap, 0, block + 16));
	answer("free on the stack", HeapFree(heap, 0, wild + 16));
	answer("reallocate on the stack", HeapReAlloc(heap, 0, wild + 16, 10) != NULL);
	answer("free by another heap", HeapFree(GetProcessHeap(), 0, block));
	known("free by another heap", block, 700, heap, broken);
	answer("reallocate by another heap",
		HeapReAlloc(GetProcessHeap(), 0, block, 900000) != NULL);
	known("reallocate by another heap", block, 700, heap, broken);
	answer("free", HeapFree(heap, 0, block));
	unknown("free", block);
	answer("free again", HeapFree(heap, 0, block));
	answer("reallocate what is free", HeapReAlloc(heap, 0, block, 50) != NULL);
	unknown("free again", block);
	known("its neighbour", other, 800, heap, broken);
	answer("its neighbour", HeapFree(heap, 0, other));
}

/* ---------------------------------------------------------------- exceptions */

static jmp_buf back;
static void *made_in_handler, *freed_in_handler;

static LONG WINAPI on_exception(EXCEPTION_POINTERS *exception)
{
	if (exception->ExceptionRecord->ExceptionCode != (DWORD)STATUS_NO_MEMORY)
		return EXCEPTION_CONTINUE_SEARCH;
	made_in_handler = HeapAlloc(heap, 0, 333);
	HeapFree(heap, 0, freed_in_handler);
	longjmp(back, 1);
}

/* The call fails, and raises an exception if the flags request that. The block stays live. */
static NOINLINE void fail(const char *what, HANDLE of, ULONG flags, void *block)
{
	freed_in_handler = HeapAlloc(heap, 0, 444);
	made_in_handler = NULL;
	if (setjmp(back)) {
		answer(what, 1);
		known("a block made meanwhile", made_in_handler, 333, heap, on_exception);
		unknown("a block freed meanwhile", freed_in_handler);
		HeapFree(heap, 0, made_in_handler);
	} else if (block) {
		answer("not raised", HeapReAlloc(of, flags, block, HUGE_BYTES) != NULL);
	} else {
		answer("not raised", HeapAlloc(of, flags, HUGE_BYTES) != NULL);
	}
	if (!made_in_handler)
		HeapFree(heap, 0, freed_in_handler);
}

/* The real heap raises an exception, which passes through the hook to its handler. Wine ignores a
 * heap's flag and raises no exception. */
static NOINLINE void raising(const char *what, HANDLE of, ULONG flags)
{
	PVOID handler = AddVectoredExceptionHandler(1, on_exception);
	void *block = HeapAlloc(of, 0, 1000), *after;

	fail(what, of, flags, block);
	known(what, block, 1000, of, raising);
	after = HeapAlloc(heap, 0, 555);
	known("a block made afterwards", after, 555, heap, raising);
	answer("the block made afterwards", HeapFree(heap, 0, after));
	fail(what, of, flags, NULL);
	known(what, block, 1000, of, raising);
	answer("the block", HeapFree(of, 0, block));
	unknown("the block", block);
	RemoveVectoredExceptionHandler(handler);
}

static NOINLINE void *deeper(int bytes)
{
	volatile char room[5000]; /* this call is deeper than the one that longjmp left */

	room[0] = 0;
	return step_leak(HeapAlloc(heap, 0, (SIZE_T)bytes + (SIZE_T)room[0]));
}

static void *jump_to[5]; /* for __builtin_setjmp() */

static LONG WINAPI on_exception_jump(EXCEPTION_POINTERS *exception)
{
	if (exception->ExceptionRecord->ExceptionCode == (DWORD)STATUS_NO_MEMORY)
		__builtin_longjmp(jump_to, 1);
	return EXCEPTION_CONTINUE_SEARCH;
}

/* A jump without unwinding leaves the guard set until the next call at a smaller depth. */
static NOINLINE void jumping(void)
{
	PVOID handler = AddVectoredExceptionHandler(1, on_exception_jump);
	void *block;

	if (!__builtin_setjmp(jump_to))
		HeapAlloc(heap, HEAP_GENERATE_EXCEPTIONS, HUGE_BYTES);
	HeapFree(heap, 0, HeapAlloc(heap, 0, 10));
	block = deeper(20);
	known("after a jump", block, 20, heap, jumping);
	answer("after a jump", HeapFree(heap, 0, block));
	RemoveVectoredExceptionHandler(handler);
}

static void exceptions(void)
{
	HANDLE strict = HeapCreate(HEAP_GENERATE_EXCEPTIONS, 0, 0);

	raising("raise because of the call", heap, HEAP_GENERATE_EXCEPTIONS);
	raising("raise because of the heap", strict, 0);
	answer("destroy", HeapDestroy(strict));
}

/* ---------------------------------------------------------------- code outside images */

static void *made_in_callback, *freed_in_callback;

/* The tracer calls this function while it unwinds. Blocks that are allocated and freed here must
 * not be lost. */
static NOINLINE PRUNTIME_FUNCTION CALLBACK describe(DWORD64 pc, PVOID context)
{
	static RUNTIME_FUNCTION function = {0, CODE_UNWIND, CODE_UNWIND};

	(void)pc;
	(void)context;
	if (!made_in_callback) {
		made_in_callback = HeapAlloc(heap, 0, 666);
		HeapFree(heap, 0, freed_in_callback);
	}
	return &function;
}

static NOINLINE void *below_code(void)
{
	return step_leak(HeapAlloc(heap, 0, 777));
}

static NOINLINE void made_code(void)
{
	char *code = code_make(below_code);
	void *block;

	freed_in_callback = HeapAlloc(heap, 0, 888);
	RtlInstallFunctionTableCallback(
		(DWORD64)code | 3, (DWORD64)code, CODE_BYTES, describe, NULL, NULL);
	block = ((void *(*)(void))(void *)code)();
	known("called by code without an image", block, 777, heap, below_code);
	known("through code without an image", block, 777, heap, made_code);
	if (area && !made_in_callback)
		wrong("code without an image", "nobody asked for its unwind data");
	if (area) {
		known("a block made while unwinding", made_in_callback, 666, heap, describe);
		unknown("a block freed while unwinding", freed_in_callback);
	}
	RtlDeleteFunctionTable((PRUNTIME_FUNCTION)((DWORD64)code | 3));
	answer("code without an image", HeapFree(heap, 0, block));
	HeapFree(heap, 0, made_in_callback ? made_in_callback : freed_in_callback);
	VirtualFree(code, 0, MEM_RELEASE);
	SetLastError(MARK);
}

/* ---------------------------------------------------------------- heaps */

static NOINLINE void whole_heap(const char *what, HANDLE of, SIZE_T last_bytes)
{
	char *blocks[50], *own = HeapAlloc(GetProcessHeap(), 0, 77);

	for (int i = 0; i < 50; i++)
		blocks[i] = HeapAlloc(of, 0, i < 49 ? 50 + (SIZE_T)i : last_bytes);
	known(what, blocks[49], last_bytes, of, whole_heap);
	answer(what, HeapDestroy(of));
	for (int i = 0; i < 50; i++)
		unknown(what, blocks[i]);
	known("a block of another heap", own, 77, GetProcessHeap(), whole_heap);
	answer("destroy the process's heap", HeapDestroy(GetProcessHeap()));
	known("a block of the process's heap", own, 77, GetProcessHeap(), whole_heap);
	HeapFree(GetProcessHeap(), 0, own);
}

static void heaps(void)
{
	rtl_create_fn create = (rtl_create_fn)(void *)GetProcAddress(
		GetModuleHandleW(L"ntdll.dll"), "RtlCreateHeap");
	void *room = VirtualAlloc(NULL, 16 << 20, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	HANDLE placed;

	whole_heap("destroy", HeapCreate(0, 0, 0), 2000000);
	whole_heap("destroy again", HeapCreate(HEAP_NO_SERIALIZE, 0, 0), 20);
	if (area && own_table_virtual(area, RANGE_COMMITTED, (uintptr_t)room,
			    (uintptr_t)room + (16 << 20)) != 16 << 20)
		wrong("memory for a heap", "it is not known");
	placed = create(0, room, 16 << 20, 65536, NULL, NULL);
	answer("a heap in memory that is there", placed == room);
	if (area && own_table_virtual(
			    area, RANGE_COMMITTED, (uintptr_t)room, (uintptr_t)room + (16 << 20)))
		wrong("memory for a heap", "it is not the heap's");
	whole_heap("destroy it", placed, 20000);
	VirtualFree(room, 0, MEM_RELEASE);
	SetLastError(MARK);
	answer("a heap too large", HeapCreate(0, 0, HUGE_BYTES) != NULL);
}

/* ---------------------------------------------------------------- registers */

static void registers(void)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	void *block, *moved, *result;

	answer("registers, allocate",
		call_and_compare(&block, (void *)GetProcAddress(ntdll, "RtlAllocateHeap"), heap, 0,
			(void *)100, 0));
	answer("registers, reallocate",
		call_and_compare(&moved, (void *)GetProcAddress(ntdll, "RtlReAllocateHeap"), heap,
			0, block, 400000));
	answer("registers, free",
		call_and_compare(
			&result, (void *)GetProcAddress(ntdll, "RtlFreeHeap"), heap, 0, moved, 0));
	answer("the results", block && moved && (uintptr_t)result & 0xff);
}

/* ---------------------------------------------------------------- the DLL, the end */

/* Loading the tracer twice keeps one copy. Freeing it too often does not unload it. */
static NOINLINE void dll(void)
{
	wchar_t path[MAX_PATH];
	HMODULE tracer = GetModuleHandleW(L"" TRACER_DLL_64);
	void *block;

	if (!area || !GetModuleFileNameW(tracer, path, MAX_PATH))
		return;
	if (LoadLibraryW(path) != tracer)
		wrong("the DLL", "is there twice");
	for (int i = 0; i < 20; i++)
		FreeLibrary(tracer);
	if (own_table() != area || area->state != TRACER_ON)
		wrong("the DLL", "is gone");
	block = HeapAlloc(heap, 0, 99);
	known("after the DLL was freed", block, 99, heap, dll);
	HeapFree(heap, 0, block);
}

static NOINLINE void WINAPI at_the_end(PVOID image, DWORD reason, PVOID reserved)
{
	void *block;

	(void)image;
	(void)reserved;
	if (reason != DLL_PROCESS_DETACH || !heap)
		return;
	block = HeapAlloc(heap, 0, 31);
	known("at the end", block, 31, heap, at_the_end);
	messages("at the end: %d", HeapFree(heap, 0, block));
	unknown("at the end", block);
	if (status)
		TerminateProcess(GetCurrentProcess(), (UINT)status);
}

/* In this section the linker collects the callbacks that run before and after main. */
__attribute__((section(".CRT$XLD"), used)) static PIMAGE_TLS_CALLBACK callback = at_the_end;

int main(void)
{
	static void (*const cases[])(void) = {nothing_at_all, too_much, in_place, moving, broken,
		exceptions, jumping, made_code, heaps, registers, dll};

	area = own_table();
	heap = HeapCreate(0, 0, 0);
	SetLastError(MARK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cases[i]();
	if (area && (area->dropped_blocks || area->dropped_stacks))
		wrong("all", "something was dropped");
	return status;
}
