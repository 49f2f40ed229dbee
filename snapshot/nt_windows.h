/* ntdll functions that <winternl.h> does not declare; prototypes as published in phnt. */
#ifndef SNAPSHOT_NT_WINDOWS_H
#define SNAPSHOT_NT_WINDOWS_H

#include <windows.h>

#include <winternl.h>

NTSYSAPI NTSTATUS NTAPI NtSuspendProcess(HANDLE process);
NTSYSAPI NTSTATUS NTAPI NtResumeProcess(HANDLE process);
NTSYSAPI NTSTATUS NTAPI NtQueueApcThread(
	HANDLE thread, void *function, ULONG_PTR first, ULONG_PTR second, ULONG_PTR third);

#endif
