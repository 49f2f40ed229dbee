/* Functions of ntdll that <winternl.h> does not declare. The prototypes are those published in
 * phnt. */
#ifndef SNAPSHOT_LIVE_NT_WINDOWS_H
#define SNAPSHOT_LIVE_NT_WINDOWS_H

#include <windows.h>

#include <winternl.h>

NTSYSAPI NTSTATUS NTAPI NtSuspendProcess(HANDLE process);
NTSYSAPI NTSTATUS NTAPI NtResumeProcess(HANDLE process);
NTSYSAPI NTSTATUS NTAPI NtGetNextThread(HANDLE process, HANDLE thread, ACCESS_MASK rights,
	ULONG attributes, ULONG flags, HANDLE *next);
NTSYSAPI NTSTATUS NTAPI NtQueueApcThread(
	HANDLE thread, void *function, ULONG_PTR first, ULONG_PTR second, ULONG_PTR third);
NTSYSAPI NTSTATUS NTAPI NtMapViewOfSection(HANDLE section, HANDLE process, PVOID *base,
	ULONG_PTR zero_bits, SIZE_T commit_bytes, PLARGE_INTEGER offset, PSIZE_T bytes,
	ULONG inherit, ULONG type, ULONG protect);
NTSYSAPI NTSTATUS NTAPI NtUnmapViewOfSection(HANDLE process, PVOID base);

#define NT_VIEW_UNMAP 2 /* for NtMapViewOfSection(): child processes do not inherit the view */

#define NT_PROCESS_WOW64_INFORMATION                                                               \
	26 /* for NtQueryInformationProcess(); the result is a 32-bit PEB, 1 (Wine 8), or 0 */

/* Data of class 5 for RtlQueryHeapInformation() and RtlSetHeapInformation(), which are called
 * without a heap. */
#define NT_HEAP_STACK_DATABASE 5
#define NT_HEAP_STACK_ENABLE 1
#define NT_HEAP_STACK_DISABLE 2

struct nt_heap_stack_control {
	USHORT version; /* must be 1 */
	USHORT flags; /* NT_HEAP_STACK_ENABLE or NT_HEAP_STACK_DISABLE */
	HANDLE process;
};

struct nt_heap_stack_query {
	ULONG version; /* 2; or 1, which omits the last two fields */
	HANDLE process;
	void *write; /* a function that receives the result piece by piece */
	void *context;
	UCHAR level, flags;
};

#endif
