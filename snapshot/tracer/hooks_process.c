/*
 * The hooks of process exit and process creation.
 *
 * A thread waits here only for hsnap. Each wait ends when hsnap's process ends. The wait for a new
 * process also has a time limit.
 */
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tracer_memory.h"
#include "snapshot/tracer/tracer_nt.h"

typedef ULONG_PTR(WINAPI *terminate_fn)(HANDLE process, NTSTATUS status);
typedef ULONG_PTR(WINAPI *create_process_fn)(PHANDLE process, PHANDLE thread,
	ACCESS_MASK process_access, ACCESS_MASK thread_access, PVOID process_attributes,
	PVOID thread_attributes, ULONG process_flags, ULONG thread_flags, PVOID parameters,
	PVOID create_info, PVOID attribute_list);

#define PATIENCE_MS 30000 /* maximum time for hsnap to prepare a new process */

static HANDLE handle(uint64_t value)
{
	return (HANDLE)(uintptr_t)value;
}

/* Blocks every thread that is about to end the process, until hsnap has taken its snapshot or has
 * exited. */
static void wait_for_snapshot(void)
{
	static LONG waited;
	struct tracer_area *area = &hsnap_tracer;
	HANDLE handles[] = {handle(area->exit_continue), handle(area->hsnap_process)};

	if (!area->exit_reached)
		return;
	if (!InterlockedExchange(&waited, 1)) {
		area->exit_thread = GetCurrentThreadId();
		NtSetEvent(handle(area->exit_reached), NULL);
	}
	NtWaitForMultipleObjects(2, handles, 1 /* any */, FALSE, NULL);
}

/* Returns true if a handle refers to this process. The rights of the handle do not matter. */
static bool is_own(HANDLE process)
{
	PROCESS_BASIC_INFORMATION info = {0};
	HANDLE same;
	NTSTATUS status;

	if (process == THIS_PROCESS)
		return true;
	if (NtDuplicateObject(THIS_PROCESS, process, THIS_PROCESS, &same,
		    PROCESS_QUERY_LIMITED_INFORMATION, 0, 0) < 0)
		return false;
	status =
		NtQueryInformationProcess(same, ProcessBasicInformation, &info, sizeof(info), NULL);
	NtClose(same);
	return status >= 0 && info.UniqueProcessId == GetCurrentProcessId();
}

static ULONG_PTR WINAPI hook_terminate(HANDLE process, NTSTATUS status)
{
	/* NULL: the call ends all other threads of this process, as an exiting process does
	 * first */
	if (hooks_are_on() && (!process || is_own(process)))
		wait_for_snapshot();
	return ((terminate_fn)hook_original(HOOK_TERMINATE))(process, status);
}

/* Session in which new processes are no longer announced to hsnap. Either hsnap did not answer, or
 * a thread was terminated while it waited for the answer. */
static uint32_t over_in;

static bool is_over(void)
{
	return __atomic_load_n(&over_in, __ATOMIC_RELAXED) == hsnap_tracer.session;
}

static void be_over(void)
{
	__atomic_store_n(&over_in, hsnap_tracer.session, __ATOMIC_RELAXED);
}

/* Acquires the right to announce, which only one thread has at a time. Returns false if announcing
 * is no longer useful. */
static bool begin_announcing(void)
{
	struct memory_patience patience = {0};

	while (!is_over()) {
		if (!__atomic_exchange_n(&hsnap_tracer.child_lock, 1, __ATOMIC_ACQUIRE))
			return true;
		if (memory_is_alone(hsnap_tracer.hsnap_process))
			return false;
		if (!memory_may_wait(&patience, (uint64_t)2 * PATIENCE_MS * 10000))
			be_over();
	}
	return false;
}

/*
 * Waits until hsnap has prepared the process. Returns false if hsnap does not answer in time. After
 * that, no other process is announced, because a late answer would count as the answer for the next
 * process.
 */
static bool is_taken(void)
{
	struct tracer_area *area = &hsnap_tracer;
	HANDLE handles[] = {handle(area->child_taken), handle(area->hsnap_process)};
	LARGE_INTEGER patience = {.QuadPart = -10000LL * PATIENCE_MS};

	if (NtSetEvent(handle(area->child_created), NULL) < 0)
		return false;
	return NtWaitForMultipleObjects(2, handles, 1 /* any */, FALSE, &patience) == STATUS_WAIT_0;
}

static void announce(HANDLE process, HANDLE thread)
{
	PROCESS_BASIC_INFORMATION process_info = {0};
	struct nt_thread_info thread_info = {0};

	if (NtQueryInformationProcess(process, ProcessBasicInformation, &process_info,
		    sizeof(process_info), NULL) < 0 ||
		NtQueryInformationThread(thread, NT_THREAD_BASIC_INFORMATION, &thread_info,
			sizeof(thread_info), NULL) < 0 ||
		!begin_announcing())
		return;
	if (!is_over()) {
		hsnap_tracer.child_pid = (uint32_t)process_info.UniqueProcessId;
		hsnap_tracer.child_tid = (uint32_t)thread_info.thread_id;
		if (!is_taken())
			be_over();
	}
	__atomic_store_n(&hsnap_tracer.child_lock, 0, __ATOMIC_RELEASE);
}

/*
 * The new process must not run before hsnap has prepared it. Kernelbase always creates the first
 * thread suspended and resumes it later. For other callers, this hook suspends and resumes the
 * thread, if the requested rights of the thread's handle allow it.
 */
static ULONG_PTR WINAPI hook_create_process(PHANDLE process, PHANDLE thread,
	ACCESS_MASK process_access, ACCESS_MASK thread_access, PVOID process_attributes,
	PVOID thread_attributes, ULONG process_flags, ULONG thread_flags, PVOID parameters,
	PVOID create_info, PVOID attribute_list)
{
	create_process_fn original = (create_process_fn)hook_original(HOOK_CREATE_PROCESS);
	bool follow = hooks_are_on() && hsnap_tracer.child_created;
	ULONG suspend = 0;
	ULONG_PTR result;

	if (follow && thread_access & (THREAD_SUSPEND_RESUME | MAXIMUM_ALLOWED | GENERIC_ALL))
		suspend = NT_CREATE_THREAD_SUSPENDED & ~thread_flags;
	follow = follow && (thread_flags | suspend) & NT_CREATE_THREAD_SUSPENDED;
	result = original(process, thread, process_access, thread_access, process_attributes,
		thread_attributes, process_flags, thread_flags | suspend, parameters, create_info,
		attribute_list);
	if ((NTSTATUS)result >= 0 && follow)
		announce(*process, *thread);
	if ((NTSTATUS)result >= 0) {
		handles_add(process, HANDLE_PROCESS, __builtin_return_address(0));
		handles_add(thread, HANDLE_THREAD, __builtin_return_address(0));
	}
	if ((NTSTATUS)result >= 0 && suspend)
		NtResumeThread(*thread, NULL);
	return result;
}

void hooks_process_init(void)
{
	hsnap_tracer.hooks[HOOK_TERMINATE].hook = (uintptr_t)hook_terminate;
	hsnap_tracer.hooks[HOOK_CREATE_PROCESS].hook = (uintptr_t)hook_create_process;
}
