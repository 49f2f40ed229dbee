/*
 * Data export and entry point of the tracer's DLL. When the DLL is loaded, it only publishes the
 * addresses of its hooks and registers for the loader's notifications. hsnap does everything else.
 * The DLL does not use a C library, so this file defines memcpy() and memset() for the compiler.
 */
#include <stddef.h>

#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"
#include "snapshot/tracer/tracer_nt.h"

/* string.h declares these functions with reserved names.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */
void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
	void *start = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
	return start;
}

void *memset(void *to, int value, size_t len)
{
	void *start = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(len) : "a"(value) : "memory");
	return start;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

__attribute__((aligned(64))) struct tracer_area hsnap_tracer = {
	.magic = TRACER_MAGIC,
	.version = TRACER_VERSION,
	.area_bytes = sizeof(struct tracer_area),
	.pointer_bytes = sizeof(void *),
};

__declspec(dllexport) void tracer_mark(const char *label);

/* Called by the program, through hsnap-mark.h. */
void tracer_mark(const char *label)
{
	rings_mark(&hsnap_tracer, label);
}

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved);

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
	const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)instance;
	const IMAGE_NT_HEADERS *nt = (const IMAGE_NT_HEADERS *)((const char *)dos + dos->e_lfanew);
	HMODULE pinned;

	(void)reserved;
	if (reason != DLL_PROCESS_ATTACH)
		return TRUE;
	record_init((ULONG_PTR)instance, (ULONG_PTR)instance + nt->OptionalHeader.SizeOfImage);
	/* Hooks jump into this DLL, so it must stay loaded until the process exits. */
	GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
		(LPCWSTR)instance, &pinned);
	DisableThreadLibraryCalls(instance);
	guard_init();
	liveblocks_init();
	memory_thread_word_init();
	hooks_heap_init();
	hooks_virtual_init();
	hooks_process_init();
	hooks_thread_init();
	hooks_handles_init();
	loader_notes_init();
	return TRUE;
}
