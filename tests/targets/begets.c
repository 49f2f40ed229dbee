/*
 * begets HOW: begins children that keep a block of 2500 bytes, got by child_block(), and end with
 * status 40; waits for them, and ends with status 41, or another one when something was not so.
 *
 *   raw      one child, by ntdll's function itself, whose first thread is not asked to be suspended
 *   crowd    12 children by 4 threads at the same time
 *   child    is one
 */
#include <stdlib.h>

#include "samples/step.h"
#include "tests/targets/begin.h"

#include <winternl.h>

#define THREADS 4
#define EACH 3

/* RtlCreateProcessParametersEx, NtCreateUserProcess, PS_CREATE_INFO, PS_ATTRIBUTE_LIST: phnt,
 * ntrtl.h and ntpsapi.h; Wine's include/winternl.h. */
typedef NTSTATUS(NTAPI *parameters_fn)(PVOID *parameters, const UNICODE_STRING *image,
	PVOID dll_path, PVOID directory, const UNICODE_STRING *command, PVOID environment,
	PVOID title, PVOID desktop, PVOID shell, PVOID runtime, ULONG flags);
typedef NTSTATUS(NTAPI *create_fn)(PHANDLE process, PHANDLE thread, ACCESS_MASK process_access,
	ACCESS_MASK thread_access, PVOID process_attributes, PVOID thread_attributes,
	ULONG process_flags, ULONG thread_flags, PVOID parameters, PVOID info, PVOID attributes);

struct create_info {
	SIZE_T bytes;
	BYTE rest[80];
};

struct attribute_list {
	SIZE_T bytes;
	struct {
		ULONG_PTR what;
		SIZE_T bytes;
		const void *value;
		SIZE_T *returned;
	} image;
};

#define ATTRIBUTE_IMAGE_NAME 0x20005u
#define PARAMETERS_NORMALIZED 1u

static wchar_t program[MAX_PATH], command[MAX_PATH + 20];

static NOINLINE void child_block(void)
{
	step_leak(malloc(2500));
}

static bool ends_well(HANDLE process)
{
	DWORD status = 0;

	WaitForSingleObject(process, INFINITE);
	GetExitCodeProcess(process, &status);
	return status == 40;
}

static UNICODE_STRING unicode(wchar_t *text)
{
	USHORT bytes = (USHORT)(wcslen(text) * sizeof(*text));

	return (UNICODE_STRING){bytes, bytes + sizeof(*text), text};
}

static bool beget_raw(void)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	parameters_fn make =
		(parameters_fn)(void *)GetProcAddress(ntdll, "RtlCreateProcessParametersEx");
	create_fn create = (create_fn)(void *)GetProcAddress(ntdll, "NtCreateUserProcess");
	static wchar_t nt_path[MAX_PATH + 4] = L"\\??\\";
	UNICODE_STRING image, line;
	struct create_info info = {.bytes = sizeof(info)};
	struct attribute_list list = {.bytes = sizeof(list)};
	HANDLE process, thread;
	PVOID parameters;

	wcscpy(nt_path + 4, program);
	image = unicode(nt_path);
	line = unicode(command);
	if (make(&parameters, &image, NULL, NULL, &line, NULL, NULL, NULL, NULL, NULL,
		    PARAMETERS_NORMALIZED))
		return false;
	list.image.what = ATTRIBUTE_IMAGE_NAME;
	list.image.bytes = image.Length;
	list.image.value = image.Buffer;
	return !create(&process, &thread, MAXIMUM_ALLOWED, MAXIMUM_ALLOWED, NULL, NULL, 0, 0,
		       parameters, &info, &list) &&
	       ends_well(process);
}

static DWORD WINAPI beget(LPVOID unused)
{
	(void)unused;
	for (int i = 0; i < EACH; i++) {
		PROCESS_INFORMATION info;

		if (!begin_process(program, command, 0, NULL, &info) || !ends_well(info.hProcess))
			return 1;
	}
	return 0;
}

static bool beget_crowd(void)
{
	HANDLE threads[THREADS];
	bool all = true;

	for (int i = 0; i < THREADS; i++)
		threads[i] = CreateThread(NULL, 0, beget, NULL, 0, NULL);
	for (int i = 0; i < THREADS; i++) {
		DWORD status = 1;

		WaitForSingleObject(threads[i], INFINITE);
		GetExitCodeThread(threads[i], &status);
		all = all && !status;
	}
	return all;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "child")) {
		child_block();
		return 40;
	}
	GetModuleFileNameW(NULL, program, MAX_PATH);
	wcscpy(command, program);
	wcscat(command, L" child");
	if (!strcmp(how, "raw"))
		return beget_raw() ? 41 : 5;
	return beget_crowd() ? 41 : 6;
}
