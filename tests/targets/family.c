/*
 * family WHAT [ARG...]: starts itself again, for hsnap run --children to follow.
 *
 *   tree N      prints "tree N pid P", keeps a block of (N + 1) * 1000 bytes, and starts tree N - 1
 *               if N is not 0; its status is 10 + N, or 99 if the child's status was wrong
 *   stay N      like tree, but prints "stay N pid P" once it has its block, and the last process,
 *               with N 0, waits forever
 *   orphan      starts a child that waits for its parent's end, then keeps a block of 4321 bytes,
 *               and prints "after the end"; the parent's status is 5
 *   ended       ends a child that has never run, and a child that waits forever; status 0
 *   many T N    T threads start N children each and check that each has its own status; prints the
 *               number of correct ones
 *   raw         starts tree 0 by ntdll's function, without requesting a suspended first thread;
 *               its status
 *   closed      starts a child that denies all access; its status, which is 8
 *   abandon     starts a child suspended, prints "abandoned P T", its process and thread, and exits
 *               without resuming it; the parent's status is 5
 *   revive P T  resumes such a child; its status is the child's, which is 7, or 97
 *   steps       like a sample: before each step except the first it starts a child and waits for
 *               its end
 *   end N       has the status N
 */
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

#include <winternl.h>

#define START_TRIES 5

static NOINLINE void keep_block(size_t bytes)
{
	step_leak(malloc(bytes));
}

/* Starts this program with other arguments. Where setup/wine cannot disable random addresses, one
 * start in some thousands fails under Wine 8: the new process exits before its first instruction,
 * and CreateProcessW() reports an internal error. hsnap cannot see such a process, so this function
 * starts it once more. */
static bool create(const char *arguments, DWORD flags, SECURITY_ATTRIBUTES *security,
	PROCESS_INFORMATION *info)
{
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	static wchar_t image[32768];
	wchar_t command[200];
	bool ok = false;

	if (!image[0])
		GetModuleFileNameW(NULL, image, 32768);
	for (int i = 0; i < START_TRIES && !ok; i++) {
		_snwprintf(command, 200, L"family %hs", arguments);
		ok = CreateProcessW(
			image, command, security, NULL, TRUE, flags, NULL, NULL, &startup, info);
		if (!ok && GetLastError() != ERROR_INTERNAL_ERROR)
			break;
	}
	return ok;
}

/* Calls create(); returns a handle of the process, or NULL. */
static HANDLE start(const char *arguments, DWORD flags, SECURITY_ATTRIBUTES *security)
{
	PROCESS_INFORMATION info;

	if (!create(arguments, flags, security, &info))
		return NULL;
	CloseHandle(info.hThread);
	return info.hProcess;
}

static DWORD finish(HANDLE process)
{
	DWORD status = 98;

	WaitForSingleObject(process, INFINITE);
	GetExitCodeProcess(process, &status);
	CloseHandle(process);
	return status;
}

static DWORD run(const char *arguments)
{
	HANDLE process = start(arguments, 0, NULL);

	return process ? finish(process) : 97;
}

static int tree(int depth)
{
	char arguments[40];

	printf("tree %d pid %lu\n", depth, GetCurrentProcessId());
	fflush(stdout);
	keep_block((size_t)(depth + 1) * 1000);
	snprintf(arguments, sizeof(arguments), "tree %d", depth - 1);
	return depth && run(arguments) != 9 + (DWORD)depth ? 99 : 10 + depth;
}

static int stay(int depth)
{
	char arguments[40];

	keep_block((size_t)(depth + 1) * 1000);
	printf("stay %d pid %lu\n", depth, GetCurrentProcessId());
	fflush(stdout);
	snprintf(arguments, sizeof(arguments), "stay %d", depth - 1);
	if (depth)
		run(arguments);
	Sleep(INFINITE);
	return 0;
}

static int orphan(void)
{
	HANDLE me = NULL, child;
	char arguments[60];

	DuplicateHandle(GetCurrentProcess(), GetCurrentProcess(), GetCurrentProcess(), &me,
		SYNCHRONIZE, TRUE, 0);
	snprintf(arguments, sizeof(arguments), "after %lu", (unsigned long)(ULONG_PTR)me);
	child = start(arguments, 0, NULL);
	return child ? 5 : 97;
}

static int after(HANDLE parent)
{
	if (WaitForSingleObject(parent, INFINITE) != WAIT_OBJECT_0)
		return 96;
	keep_block(4321);
	puts("after the end");
	return 0;
}

/* Ends a child from outside. The child may have run or not. */
static bool ends(DWORD flags)
{
	HANDLE process = start("wait", flags, NULL);

	if (!process)
		return false;
	TerminateProcess(process, 9);
	return finish(process) == 9;
}

struct crowd {
	int from, count;
	int right;
};

static DWORD WINAPI start_many(void *ctx)
{
	struct crowd *crowd = ctx;

	for (int i = 0; i < crowd->count; i++) {
		int status = 1 + (crowd->from + i) % 250;
		char arguments[40];
		DWORD got;

		snprintf(arguments, sizeof(arguments), "end %d", status);
		got = run(arguments);
		crowd->right += got == (DWORD)status;
		if (got != (DWORD)status)
			fprintf(stderr, "child %d: status %lu, error %lu\n", status, got,
				GetLastError());
	}
	return 0;
}

#define THREADS_MAX 16

static int many(int threads, int count)
{
	struct crowd crowds[THREADS_MAX];
	HANDLE handles[THREADS_MAX];
	int right = 0;

	for (int i = 0; i < threads && i < THREADS_MAX; i++) {
		crowds[i] = (struct crowd){i * count, count, 0};
		handles[i] = CreateThread(NULL, 0, start_many, &crowds[i], 0, NULL);
	}
	for (int i = 0; i < threads && i < THREADS_MAX; i++) {
		WaitForSingleObject(handles[i], INFINITE);
		right += crowds[i].right;
	}
	printf("%d\n", right);
	return 0;
}

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

static UNICODE_STRING unicode(wchar_t *text)
{
	USHORT bytes = (USHORT)(wcslen(text) * sizeof(*text));

	return (UNICODE_STRING){bytes, bytes + sizeof(*text), text};
}

static int start_raw(void)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	parameters_fn make =
		(parameters_fn)(void *)GetProcAddress(ntdll, "RtlCreateProcessParametersEx");
	create_fn create_process = (create_fn)(void *)GetProcAddress(ntdll, "NtCreateUserProcess");
	static wchar_t path[MAX_PATH + 4] = L"\\??\\", arguments[] = L"family tree 0";
	UNICODE_STRING image, line = unicode(arguments);
	struct create_info info = {.bytes = sizeof(info)};
	struct attribute_list list = {.bytes = sizeof(list), .image.what = ATTRIBUTE_IMAGE_NAME};
	HANDLE process, thread;
	PVOID parameters;

	GetModuleFileNameW(NULL, path + 4, MAX_PATH);
	image = unicode(path);
	list.image.bytes = image.Length;
	list.image.value = image.Buffer;
	if (make(&parameters, &image, NULL, NULL, &line, NULL, NULL, NULL, NULL, NULL,
		    PARAMETERS_NORMALIZED) ||
		create_process(&process, &thread, MAXIMUM_ALLOWED, MAXIMUM_ALLOWED, NULL, NULL, 0,
			0, parameters, &info, &list))
		return 97;
	return (int)finish(process);
}

/* Starts a child with an empty access list, which denies all access. */
static int start_closed(void)
{
	SECURITY_DESCRIPTOR nobody;
	SECURITY_ATTRIBUTES security = {sizeof(security), &nobody, FALSE};
	HANDLE process;
	ACL empty;

	InitializeAcl(&empty, sizeof(empty), ACL_REVISION);
	InitializeSecurityDescriptor(&nobody, SECURITY_DESCRIPTOR_REVISION);
	SetSecurityDescriptorDacl(&nobody, TRUE, &empty, FALSE);
	process = start("end 8", 0, &security);
	return process ? (int)finish(process) : 97;
}

static int abandon(void)
{
	PROCESS_INFORMATION info;

	if (!create("end 7", CREATE_SUSPENDED, NULL, &info))
		return 97;
	printf("abandoned %lu %lu\n", info.dwProcessId, info.dwThreadId);
	return 5;
}

static int revive(DWORD pid, DWORD tid)
{
	HANDLE process = OpenProcess(SYNCHRONIZE | PROCESS_QUERY_INFORMATION, FALSE, pid);
	HANDLE thread = OpenThread(THREAD_SUSPEND_RESUME, FALSE, tid);

	if (!process || !thread || ResumeThread(thread) != 1)
		return 97;
	CloseHandle(thread);
	return (int)finish(process);
}

static int steps(void)
{
	for (int step = 1; step_done(step); step++) {
		if (run("end 7") != 7)
			return 99;
	}
	return 0;
}

/* Returns the argument with this index, or the default value if the argument is missing. */
static int number_at(int at, int argc, char **argv, int otherwise)
{
	return at < argc ? (int)strtol(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int number = number_at(2, argc, argv, 0);

	if (!strcmp(what, "tree"))
		return tree(number);
	if (!strcmp(what, "stay"))
		return stay(number);
	if (!strcmp(what, "orphan"))
		return orphan();
	if (!strcmp(what, "after"))
		return after((HANDLE)(ULONG_PTR)(unsigned)number);
	if (!strcmp(what, "ended"))
		return !ends(CREATE_SUSPENDED) || !ends(0);
	if (!strcmp(what, "many"))
		return many(number, number_at(3, argc, argv, 1));
	if (!strcmp(what, "raw"))
		return start_raw();
	if (!strcmp(what, "closed"))
		return start_closed();
	if (!strcmp(what, "abandon"))
		return abandon();
	if (!strcmp(what, "revive"))
		return revive((DWORD)number, (DWORD)number_at(3, argc, argv, 0));
	if (!strcmp(what, "steps"))
		return steps();
	if (!strcmp(what, "wait"))
		Sleep(INFINITE);
	return number;
}
