/*
 * all_ways: allocates in every way that ends in ntdll's heap, and keeps the memory. For each way it
 * prints
 *
 *   way FUNCTION ADDRESS BYTES
 *
 * with the calling function, the address of the memory (which is inside a block, because some
 * functions add a header), and the number of requested bytes. Step 1 comes before the allocations,
 * step 2 after them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

#include <objbase.h>
#include <oleauto.h>

static void messages(const char *way, uintptr_t addr, size_t bytes)
{
	char line[120];
	DWORD put;
	int len = snprintf(
		line, sizeof(line), "way %s %llX %zu\n", way, (unsigned long long)addr, bytes);

	if (!addr)
		ExitProcess(5);
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)len, &put, NULL);
}

/* Keeps the value of an expression and prints it. */
#define WAY(name, bytes, expression)                                                               \
	static NOINLINE void name(void)                                                            \
	{                                                                                          \
		void *block = (void *)(uintptr_t)(expression);                                     \
                                                                                                   \
		step_leak(block);                                                                  \
		messages(#name, (uintptr_t)block, bytes);                                          \
	}

/* Finds a function by its name in a library that this program does not import. */
static void *function(const wchar_t *library, const char *name)
{
	HMODULE module = LoadLibraryW(library);
	void *found = module ? (void *)GetProcAddress(module, name) : NULL;

	if (!found)
		ExitProcess(6);
	return found;
}

typedef void *(*malloc_fn)(size_t bytes);
typedef void *(*realloc_fn)(void *block, size_t bytes);
typedef PVOID(WINAPI *rtl_allocate_fn)(PVOID heap, ULONG flags, SIZE_T bytes);
typedef PVOID(WINAPI *rtl_reallocate_fn)(PVOID heap, ULONG flags, PVOID block, SIZE_T bytes);
typedef BSTR(WINAPI *sys_alloc_fn)(const OLECHAR *text, UINT units);
typedef LPVOID(WINAPI *task_alloc_fn)(SIZE_T bytes);

static HANDLE own_heap, plain_heap;
/* volatile: the call's result must come from the C library, not from the compiler. */
static volatile size_t no_bytes;

WAY(way_malloc, 101, malloc(101))
WAY(way_calloc, 34 * 3, calloc(34, 3))
WAY(way_realloc, 5003, realloc(malloc(17), 5003))
WAY(way_realloc_of_nothing, 104, realloc(NULL, 104))
WAY(way_strdup, 11, _strdup("0123456789"))
WAY(way_large, 3000006, malloc(3000006))
WAY(way_nothing, 0, malloc(no_bytes))
WAY(way_new, 107, ((malloc_fn)function(L"msvcrt.dll", "??2@YAPEAX_K@Z"))(107))
WAY(way_new_array, 108, ((malloc_fn)function(L"msvcrt.dll", "??_U@YAPEAX_K@Z"))(108))
WAY(way_ucrt_malloc, 109, ((malloc_fn)function(L"ucrtbase.dll", "malloc"))(109))
WAY(way_ucrt_realloc, 210, ((realloc_fn)function(L"ucrtbase.dll", "realloc"))(NULL, 210))
WAY(way_process_heap, 111, HeapAlloc(GetProcessHeap(), 0, 111))
WAY(way_own_heap, 112, HeapAlloc(own_heap, HEAP_ZERO_MEMORY, 112))
WAY(way_unlocked_heap, 113, HeapAlloc(plain_heap, 0, 113))
WAY(way_heap_realloc, 7014,
	HeapReAlloc(own_heap, HEAP_ZERO_MEMORY, HeapAlloc(own_heap, 0, 14), 7014))
WAY(way_heap_shrunk, 15, HeapReAlloc(own_heap, 0, HeapAlloc(own_heap, 0, 9015), 15))
WAY(way_local, 116, LocalAlloc(LMEM_FIXED, 116))
WAY(way_local_realloc, 8017, LocalReAlloc(LocalAlloc(LMEM_FIXED, 17), 8017, LMEM_MOVEABLE))
WAY(way_global, 118, GlobalAlloc(GMEM_FIXED | GMEM_ZEROINIT, 118))
WAY(way_global_moveable, 119, GlobalLock(GlobalAlloc(GMEM_MOVEABLE, 119)))
WAY(way_rtl, 120,
	((rtl_allocate_fn)function(L"ntdll.dll", "RtlAllocateHeap"))(GetProcessHeap(), 0, 120))
WAY(way_rtl_realloc, 6021,
	((rtl_reallocate_fn)function(L"ntdll.dll", "RtlReAllocateHeap"))(
		GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, 21), 6021))
WAY(way_sys_alloc, 46, ((sys_alloc_fn)function(L"oleaut32.dll", "SysAllocStringLen"))(NULL, 23))
WAY(way_task_alloc, 124, ((task_alloc_fn)function(L"ole32.dll", "CoTaskMemAlloc"))(124))

static DWORD WINAPI thread_main(LPVOID unused)
{
	(void)unused;
	messages("thread_main", (uintptr_t)step_leak(malloc(125)), 125);
	return 0;
}

static void WINAPI fiber_main(LPVOID main_fiber)
{
	messages("fiber_main", (uintptr_t)step_leak(malloc(126)), 126);
	SwitchToFiber(main_fiber);
}

static void in_thread_and_fiber(void)
{
	HANDLE thread = CreateThread(NULL, 0, thread_main, NULL, 0, NULL);
	void *main_fiber;

	WaitForSingleObject(thread, INFINITE);
	CloseHandle(thread);
	main_fiber = ConvertThreadToFiber(NULL);
	SwitchToFiber(CreateFiber(0, fiber_main, main_fiber));
	ConvertFiberToThread();
}

/* Makes ntdll allocate blocks internally. */
static NOINLINE void inside_ntdll(void)
{
	static CRITICAL_SECTION sections[20];

	for (int i = 0; i < 20; i++)
		InitializeCriticalSection(&sections[i]);
	SetEnvironmentVariableW(L"HSNAP_ALL_WAYS", L"a value of some length, to be kept somewhere");
	LoadLibraryW(L"version.dll");
	AddVectoredExceptionHandler(0, (PVECTORED_EXCEPTION_HANDLER)(void *)inside_ntdll);
	RemoveVectoredExceptionHandler(
		AddVectoredExceptionHandler(0, (PVECTORED_EXCEPTION_HANDLER)(void *)inside_ntdll));
}

int main(void)
{
	static void (*const ways[])(void) = {way_malloc, way_calloc, way_realloc,
		way_realloc_of_nothing, way_strdup, way_large, way_nothing, way_new, way_new_array,
		way_ucrt_malloc, way_ucrt_realloc, way_process_heap, way_own_heap,
		way_unlocked_heap, way_heap_realloc, way_heap_shrunk, way_local, way_local_realloc,
		way_global, way_global_moveable, way_rtl, way_rtl_realloc, way_sys_alloc,
		way_task_alloc, in_thread_and_fiber, inside_ntdll};
	volatile size_t i;

	own_heap = HeapCreate(0, 0, 0);
	plain_heap = HeapCreate(HEAP_NO_SERIALIZE, 4096, 1 << 20);
	if (!step_done(1))
		return 0;
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		ways[i]();
	step_done(2);
	return 0;
}
