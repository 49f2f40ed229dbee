/* Makes one call of hsnap.exe to the system or to the C library fail without performing it. This
 * file is linked into hsnap.exe. Before main() begins, it replaces each import in the table with a
 * gate that counts calls. tests/fail-every selects the call in the file that fail.h describes.
 * Calls that cannot fail with valid arguments are not included: closing, freeing, resuming, setting
 * hsnap's own objects, and querying this process. fwrite() is not included either, because it only
 * prints messages, and its failure cannot be reported. */
#include <errno.h>
#include <stdlib.h>

#include <windows.h>

#include "tests/fail/fail.h"

struct import {
	const char *name;
	uint64_t result; /* value returned on failure */
	DWORD error; /* GetLastError() after a failure; 0: unchanged */
	void *function;
};

#define NONE ((uint64_t)-1) /* INVALID_HANDLE_VALUE, WAIT_FAILED and the like */
#define NO_MEMORY ERROR_NOT_ENOUGH_MEMORY
#define REFUSED ERROR_ACCESS_DENIED
#define STATUS_REFUSED 0xc0000022u /* STATUS_ACCESS_DENIED */

static struct import imports[] = {
	{"malloc", 0, NO_MEMORY, NULL},
	{"calloc", 0, NO_MEMORY, NULL},
	{"realloc", 0, NO_MEMORY, NULL},
	{"_wcsdup", 0, NO_MEMORY, NULL},
	{"HeapAlloc", 0, NO_MEMORY, NULL},
	{"HeapReAlloc", 0, NO_MEMORY, NULL},
	{"HeapCreate", 0, NO_MEMORY, NULL},
	{"CommandLineToArgvW", 0, NO_MEMORY, NULL},
	{"fputs", NONE, ERROR_DISK_FULL, NULL},
	{"fflush", NONE, ERROR_DISK_FULL, NULL},
	{"_dup", NONE, ERROR_TOO_MANY_OPEN_FILES, NULL},
	{"_dup2", NONE, ERROR_TOO_MANY_OPEN_FILES, NULL},
	{"_popen", 0, NO_MEMORY, NULL},
	{"_beginthreadex", 0, NO_MEMORY, NULL},
	{"AddVectoredExceptionHandler", 0, NO_MEMORY, NULL},
	{"AssignProcessToJobObject", 0, REFUSED, NULL},
	{"CreateDirectoryW", 0, REFUSED, NULL},
	{"CreateEventW", 0, NO_MEMORY, NULL},
	{"CreateFileMappingW", 0, NO_MEMORY, NULL},
	{"CreateFileW", NONE, REFUSED, NULL},
	{"CreateJobObjectW", 0, NO_MEMORY, NULL},
	{"CreateMutexExW", 0, NO_MEMORY, NULL},
	{"CreateMutexW", 0, NO_MEMORY, NULL},
	{"CreateProcessW", 0, NO_MEMORY, NULL},
	{"CreateRemoteThread", 0, NO_MEMORY, NULL},
	{"CreateThread", 0, NO_MEMORY, NULL},
	{"CreateToolhelp32Snapshot", NONE, NO_MEMORY, NULL},
	{"DeleteFileW", 0, REFUSED, NULL},
	{"DuplicateHandle", 0, NO_MEMORY, NULL},
	{"FindFirstFileExW", NONE, REFUSED, NULL},
	{"FindNextFileW", 0, REFUSED, NULL},
	{"FlushFileBuffers", 0, ERROR_DISK_FULL, NULL},
	{"FlushInstructionCache", 0, REFUSED, NULL},
	{"FormatMessageW", 0, NO_MEMORY, NULL},
	{"GetComputerNameExW", 0, REFUSED, NULL},
	{"GetDriveTypeW", 0, 0, NULL},
	{"GetEnvironmentVariableW", 0, NO_MEMORY, NULL},
	{"GetExitCodeProcess", 0, REFUSED, NULL},
	{"GetFileAttributesW", INVALID_FILE_ATTRIBUTES, REFUSED, NULL},
	{"GetFileInformationByHandle", 0, REFUSED, NULL},
	{"GetFileInformationByHandleEx", 0, REFUSED, NULL},
	{"GetFileSizeEx", 0, REFUSED, NULL},
	{"GetFileType", 0, REFUSED, NULL},
	{"GetFinalPathNameByHandleW", 0, NO_MEMORY, NULL},
	{"GetFullPathNameW", 0, NO_MEMORY, NULL},
	{"GetModuleFileNameW", 0, NO_MEMORY, NULL},
	{"GetProcessIdOfThread", 0, REFUSED, NULL},
	{"GetProcessTimes", 0, REFUSED, NULL},
	{"GetSystemDirectoryW", 0, NO_MEMORY, NULL},
	{"GetTempPathW", 0, NO_MEMORY, NULL},
	{"GetThreadContext", 0, REFUSED, NULL},
	{"GlobalMemoryStatusEx", 0, REFUSED, NULL},
	{"InitializeProcThreadAttributeList", 0, NO_MEMORY, NULL},
	{"K32EnumProcessModulesEx", 0, ERROR_PARTIAL_COPY, NULL},
	{"K32GetModuleFileNameExW", 0, ERROR_PARTIAL_COPY, NULL},
	{"K32GetModuleInformation", 0, ERROR_PARTIAL_COPY, NULL},
	{"K32GetProcessMemoryInfo", 0, REFUSED, NULL},
	{"LoadLibraryExW", 0, NO_MEMORY, NULL},
	{"LoadLibraryW", 0, NO_MEMORY, NULL},
	{"LockFileEx", 0, REFUSED, NULL},
	{"MapViewOfFile", 0, NO_MEMORY, NULL},
	{"MoveFileExW", 0, REFUSED, NULL},
	{"MultiByteToWideChar", 0, ERROR_NO_UNICODE_TRANSLATION, NULL},
	{"OpenEventW", 0, REFUSED, NULL},
	{"OpenFileMappingW", 0, REFUSED, NULL},
	{"OpenMutexW", 0, REFUSED, NULL},
	{"OpenProcess", 0, REFUSED, NULL},
	{"OpenThread", 0, REFUSED, NULL},
	{"Process32FirstW", 0, NO_MEMORY, NULL},
	{"Process32NextW", 0, NO_MEMORY, NULL},
	{"QueryFullProcessImageNameW", 0, REFUSED, NULL},
	{"ReadFile", 0, ERROR_IO_DEVICE, NULL},
	{"ReadProcessMemory", 0, ERROR_PARTIAL_COPY, NULL},
	{"RemoveDirectoryW", 0, REFUSED, NULL},
	{"SearchPathW", 0, ERROR_FILE_NOT_FOUND, NULL},
	{"SetConsoleCtrlHandler", 0, NO_MEMORY, NULL},
	{"SetEndOfFile", 0, ERROR_DISK_FULL, NULL},
	{"SetEnvironmentVariableW", 0, NO_MEMORY, NULL},
	{"SetFileInformationByHandle", 0, REFUSED, NULL},
	{"SetFilePointerEx", 0, REFUSED, NULL},
	{"SetHandleInformation", 0, REFUSED, NULL},
	{"SetInformationJobObject", 0, REFUSED, NULL},
	{"SetThreadContext", 0, REFUSED, NULL},
	{"TerminateProcess", 0, REFUSED, NULL},
	{"Thread32First", 0, NO_MEMORY, NULL},
	{"Thread32Next", 0, NO_MEMORY, NULL},
	{"UpdateProcThreadAttribute", 0, NO_MEMORY, NULL},
	{"VirtualAllocEx", 0, NO_MEMORY, NULL},
	{"VirtualProtectEx", 0, REFUSED, NULL},
	{"VirtualQuery", 0, REFUSED, NULL},
	{"VirtualQueryEx", 0, REFUSED, NULL},
	{"WaitForMultipleObjects", WAIT_FAILED, REFUSED, NULL},
	{"WaitForSingleObject", WAIT_FAILED, REFUSED, NULL},
	{"WideCharToMultiByte", 0, ERROR_NO_UNICODE_TRANSLATION, NULL},
	{"WriteFile", 0, ERROR_DISK_FULL, NULL},
	{"WriteProcessMemory", 0, ERROR_PARTIAL_COPY, NULL},
	{"NtMapViewOfSection", STATUS_REFUSED, 0, NULL},
	{"NtQueryInformationProcess", STATUS_REFUSED, 0, NULL},
	{"NtQueryInformationThread", STATUS_REFUSED, 0, NULL},
	{"NtQueueApcThread", STATUS_REFUSED, 0, NULL},
	{"NtSuspendProcess", STATUS_REFUSED, 0, NULL},
	{"OpenProcessToken", 0, REFUSED, NULL},
	{"GetTokenInformation", 0, REFUSED, NULL},
	{"LookupPrivilegeValueW", 0, REFUSED, NULL},
	{"AdjustTokenPrivileges", 0, REFUSED, NULL},
};

#define IMPORTS (sizeof(imports) / sizeof(*imports))

static struct fail_file *shared;

/* Target of each gate, which passes its import in RAX. Either continues to the real function or
 * returns to the caller. */
void fail_gate(void);
int fail_decide(struct import *import);

__asm__(".text\n"
	".globl fail_gate\n"
	".def fail_gate; .scl 2; .type 32; .endef\n"
	".seh_proc fail_gate\n"
	"fail_gate:\n"
	"	push %rax\n	.seh_pushreg %rax\n"
	"	push %rcx\n	.seh_pushreg %rcx\n"
	"	push %rdx\n	.seh_pushreg %rdx\n"
	"	push %r8\n	.seh_pushreg %r8\n"
	"	push %r9\n	.seh_pushreg %r9\n"
	"	sub $0x20, %rsp\n	.seh_stackalloc 0x20\n"
	"	.seh_endprologue\n"
	"	mov %rax, %rcx\n"
	"	call fail_decide\n"
	"	add $0x20, %rsp\n"
	"	pop %r9\n	pop %r8\n	pop %rdx\n	pop %rcx\n	pop %r11\n"
	"	test %eax, %eax\n"
	"	jnz 1f\n"
	"	jmp *24(%r11)\n"
	"1:	mov 8(%r11), %rax\n"
	"	ret\n"
	".seh_endproc\n");

_Static_assert(offsetof(struct import, result) == 8 && offsetof(struct import, function) == 24,
	"as the gate takes them");

int fail_decide(struct import *import)
{
	void *frames[FAIL_FRAMES];
	char *base = (char *)GetModuleHandleW(NULL);
	USHORT count;

	if (!fail_now(shared, (unsigned)(import - imports)))
		return 0;
	count = RtlCaptureStackBackTrace(2, FAIL_FRAMES, frames, NULL);
	for (USHORT i = 0; i < count; i++)
		shared->frames[i] = (uint64_t)((char *)frames[i] - base);
	shared->frame_count = count;
	if (import->error)
		SetLastError(import->error);
	errno = ENOMEM;
	return 1;
}

#define GATE_BYTES 32

/* mov rax, import; mov r11, fail_gate; jmp r11 */
static void gate_write(unsigned char *gate, const struct import *import)
{
	void (*to)(void) = fail_gate;

	memcpy(gate, (unsigned char[]){0x48, 0xb8}, 2);
	memcpy(gate + 2, &import, 8);
	memcpy(gate + 10, (unsigned char[]){0x49, 0xbb}, 2);
	memcpy(gate + 12, &to, 8);
	memcpy(gate + 20, (unsigned char[]){0x41, 0xff, 0xe3}, 3);
}

static void redirect(void **slot, const char *name, unsigned char *gates)
{
	DWORD old;

	for (size_t i = 0; i < IMPORTS; i++) {
		if (strcmp(imports[i].name, name) != 0)
			continue;
		imports[i].function = *slot;
		gate_write(gates + i * GATE_BYTES, &imports[i]);
		VirtualProtect(slot, sizeof(*slot), PAGE_READWRITE, &old);
		*slot = gates + i * GATE_BYTES;
		VirtualProtect(slot, sizeof(*slot), old, &old);
	}
}

static void redirect_all(unsigned char *gates)
{
	char *base = (char *)GetModuleHandleW(NULL);
	const IMAGE_NT_HEADERS *headers =
		(IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
	const IMAGE_IMPORT_DESCRIPTOR *dll =
		(IMAGE_IMPORT_DESCRIPTOR *)(base +
					    headers->OptionalHeader
						    .DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT]
						    .VirtualAddress);

	for (; dll->Name; dll++) {
		const IMAGE_THUNK_DATA *name = (IMAGE_THUNK_DATA *)(base + dll->OriginalFirstThunk);
		void **slot = (void **)(base + dll->FirstThunk);

		for (; name->u1.AddressOfData; name++, slot++) {
			if (!IMAGE_SNAP_BY_ORDINAL(name->u1.Ordinal))
				redirect(slot,
					((IMAGE_IMPORT_BY_NAME *)(base + name->u1.AddressOfData))
						->Name,
					gates);
		}
	}
}

static struct fail_file *map_shared(const wchar_t *path)
{
	HANDLE file = CreateFileW(path, GENERIC_READ | GENERIC_WRITE,
		FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
	HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READWRITE, 0, 0, NULL);
	struct fail_file *mapped = MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, sizeof(*mapped));

	CloseHandle(mapping);
	CloseHandle(file);
	return mapped;
}

/* Runs after the C library's start-up code, whose calls must not be counted. If no call was
 * counted, a test fails. */
__attribute__((constructor)) static void begin(void)
{
	unsigned char *gates = VirtualAlloc(
		NULL, IMPORTS * GATE_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
	wchar_t path[1024];
	DWORD len = GetEnvironmentVariableW(L"HSNAP_FAIL", path, 1024);

	if (!len || len >= 1024)
		return;
	shared = map_shared(path);
	if (!gates || !shared || !fail_own(shared, GetCurrentProcessId()))
		return;
	for (size_t i = 0; i < IMPORTS; i++)
		strcpy(shared->functions[i].name, imports[i].name);
	redirect_all(gates);
}
