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

#endif
