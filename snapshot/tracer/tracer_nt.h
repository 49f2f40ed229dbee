/*
 * Functions of ntdll that the tracer calls. None of them allocates memory. The tracer also imports
 * functions of kernel32, but only of three kinds: functions used while the DLL is loaded, functions
 * that only read a value of the process, and Rtl functions that kernel32 forwards to ntdll.
 *
 * Sources: for the documented Nt and Rtl functions, Windows SDK winternl.h and winnt.h, and the
 * driver kit pages of NtAllocateVirtualMemory and NtFreeVirtualMemory. For NtYieldExecution,
 * NtDelayExecution, NtSetEvent, NtReadVirtualMemory, NtDuplicateObject, NtResumeThread and
 * RtlDllShutdownInProgress, their published prototypes (phnt, ntpsapi.h, ntexapi.h, ntldr.h,
 * ntobapi.h).
 */
#ifndef SNAPSHOT_TRACER_TRACER_NT_H
#define SNAPSHOT_TRACER_TRACER_NT_H

#include <windows.h>

#include <winternl.h>

NTSYSAPI NTSTATUS NTAPI NtAllocateVirtualMemory(
	HANDLE process, PVOID *base, ULONG_PTR zero_bits, PSIZE_T bytes, ULONG type, ULONG protect);
NTSYSAPI NTSTATUS NTAPI NtFreeVirtualMemory(HANDLE process, PVOID *base, PSIZE_T bytes, ULONG type);
NTSYSAPI NTSTATUS NTAPI NtQueryVirtualMemory(
	HANDLE process, LPCVOID at, ULONG what, PVOID info, SIZE_T bytes, PSIZE_T returned);
NTSYSAPI NTSTATUS NTAPI NtYieldExecution(void);
NTSYSAPI NTSTATUS NTAPI NtDelayExecution(BOOLEAN alertable, const LARGE_INTEGER *interval);
NTSYSAPI BOOLEAN NTAPI RtlDllShutdownInProgress(void);
NTSYSAPI NTSTATUS NTAPI NtSetEvent(HANDLE event, PLONG previous);
NTSYSAPI NTSTATUS NTAPI NtWaitForMultipleObjects(ULONG count, const HANDLE *handles, ULONG wait_any,
	BOOLEAN alertable, const LARGE_INTEGER *timeout);

NTSYSAPI NTSTATUS NTAPI NtDuplicateObject(HANDLE from_process, HANDLE handle, HANDLE to_process,
	PHANDLE copy, ACCESS_MASK access, ULONG attributes, ULONG options);
NTSYSAPI NTSTATUS NTAPI NtResumeThread(HANDLE thread, PULONG suspended_before);
NTSYSAPI NTSTATUS NTAPI NtReadVirtualMemory(
	HANDLE process, LPCVOID addr, PVOID bytes, SIZE_T len, PSIZE_T got);

/* Result of NtQueryInformationThread(ThreadBasicInformation): THREAD_BASIC_INFORMATION in phnt. */
struct nt_thread_info {
	NTSTATUS exit_status;
	PVOID teb;
	ULONG_PTR process_id, thread_id;
	ULONG_PTR affinity;
	LONG priority, base_priority;
};
#define NT_THREAD_BASIC_INFORMATION ((THREADINFOCLASS)0)
/* THREAD_CREATE_FLAGS_CREATE_SUSPENDED: phnt, ntpsapi.h */
#define NT_CREATE_THREAD_SUSPENDED 1u
#define NT_MEMORY_BASIC_INFORMATION 0u /* driver kit page of ZwQueryVirtualMemory */

#define THIS_PROCESS ((HANDLE)(LONG_PTR)-1)
#define THIS_THREAD ((HANDLE)(LONG_PTR)-2)

#endif
