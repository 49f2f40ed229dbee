/*
 * The DLL inside the target: loaded, it only says where its hooks are. hsnap does the rest.
 */
#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/liveblocks.h"
#include "snapshot/tracer/loader_notes.h"
#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/record.h"

__attribute__((aligned(64))) struct tracer_area hsnap_tracer = {
	.magic = TRACER_MAGIC,
	.version = TRACER_VERSION,
	.area_bytes = sizeof(struct tracer_area),
	.pointer_bytes = sizeof(void *),
};

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
	/* Hooks point into this DLL: it stays until the process ends. */
	GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
		(LPCWSTR)instance, &pinned);
	DisableThreadLibraryCalls(instance);
	if (!guard_init() || !liveblocks_init()) {
		hsnap_tracer.failure = TRACER_NO_TLS_SLOT;
		hsnap_tracer.state = TRACER_FAILED;
		return TRUE;
	}
	hooks_heap_init();
	hooks_heaps_init();
	hooks_virtual_init();
	hooks_process_init();
	loader_notes_init();
	return TRUE;
}
