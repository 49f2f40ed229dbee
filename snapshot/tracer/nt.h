/*
 * The ntdll functions the tracer calls. It uses nothing above ntdll, so that it can be the first
 * DLL a process loads, and nothing that allocates.
 *
 * Sources: the documented Nt and Rtl functions (Windows SDK winternl.h, winnt.h; driver kit pages
 * of NtAllocateVirtualMemory, NtFreeVirtualMemory); NtYieldExecution, NtDelayExecution,
 * NtSetEvent and RtlDllShutdownInProgress by their published prototypes (phnt, ntpsapi.h, ntexapi.h,
 * ntldr.h).
 */
#ifndef SNAPSHOT_TRACER_NT_H
#define SNAPSHOT_TRACER_NT_H

#include <windows.h>

#include <winternl.h>

NTSYSAPI NTSTATUS NTAPI NtAllocateVirtualMemory(
	HANDLE process, PVOID *base, ULONG_PTR zero_bits, PSIZE_T bytes, ULONG type, ULONG protect);
NTSYSAPI NTSTATUS NTAPI NtFreeVirtualMemory(HANDLE process, PVOID *base, PSIZE_T bytes, ULONG type);
NTSYSAPI NTSTATUS NTAPI NtQueryVirtualMemory(
	HANDLE process, LPCVOID at, ULONG what, PVOID info, SIZE_T bytes, PSIZE_T returned);
NTSYSAPI NTSTATUS NTAPI NtProtectVirtualMemory(
	HANDLE process, PVOID *base, PSIZE_T bytes, ULONG protect, PULONG old);
NTSYSAPI NTSTATUS NTAPI NtYieldExecution(void);
NTSYSAPI NTSTATUS NTAPI NtDelayExecution(BOOLEAN alertable, const LARGE_INTEGER *interval);
NTSYSAPI BOOLEAN NTAPI RtlDllShutdownInProgress(void);
NTSYSAPI NTSTATUS NTAPI NtSetEvent(HANDLE event, PLONG previous);
NTSYSAPI NTSTATUS NTAPI NtWaitForMultipleObjects(ULONG count, const HANDLE *handles, ULONG wait_any,
	BOOLEAN alertable, const LARGE_INTEGER *timeout);
NTSYSAPI NTSTATUS NTAPI NtFlushInstructionCache(HANDLE process, LPCVOID base, SIZE_T bytes);

#define THIS_PROCESS ((HANDLE)(LONG_PTR)-1)

#endif
