#include "snapshot/doctor/doctor_segment_windows.h"

#include <stdbool.h>
#include <string.h>

#include "snapshot/heap/nt_heap.h"

/* Of the flags of RtlCreateHeap(): winnt.h of the Windows 10 SDK. */
#ifndef HEAP_GROWABLE
#define HEAP_GROWABLE 2
#endif
#define CREATE_SEGMENT_HEAP 0x100

#define FIRST_BUILD 10240 /* of Windows 10 */

typedef void *(NTAPI *create_fn)(
	ULONG flags, void *base, SIZE_T reserve, SIZE_T commit, void *lock, void *parameters);

/* Whether Windows has such heaps at all. Wine has none, whatever version it says it is. */
static bool may_have_them(HMODULE ntdll)
{
	LONG(WINAPI * version)(OSVERSIONINFOW *) = (void *)GetProcAddress(ntdll, "RtlGetVersion");
	OSVERSIONINFOW info = {.dwOSVersionInfoSize = sizeof(info)};

	if (GetProcAddress(ntdll, "wine_get_version") || !version || version(&info))
		return false;
	return info.dwMajorVersion >= 10 && info.dwBuildNumber >= FIRST_BUILD;
}

/* Whether the flag had its effect: a system that does not know it makes a heap as any other. */
static bool is_segment_heap(HANDLE heap)
{
	DWORD signature = 0;

	memcpy(&signature, (const char *)heap + NT_HEAP_SIGNATURE_AT(8 * sizeof(void *)),
		sizeof(signature));
	return signature == SEGMENT_HEAP_SIGNATURE;
}

HANDLE doctor_segment_heap(void)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	create_fn create = ntdll ? (create_fn)(void *)GetProcAddress(ntdll, "RtlCreateHeap") : NULL;
	HANDLE heap = NULL;

	if (create && may_have_them(ntdll))
		heap = create(HEAP_GROWABLE | CREATE_SEGMENT_HEAP, NULL, 0, 0, NULL, NULL);
	if (heap && !is_segment_heap(heap)) {
		HeapDestroy(heap);
		heap = NULL;
	}
	return heap;
}
