/* Holds all threads of another process: suspends the process, lists its threads and reads where
 * each thread is. Repeats this until two lists are equal. */
#include <stdlib.h>

#include <windows.h>
#include <tlhelp32.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "snapshot/control/threads_windows.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"

#define TRIES 100 /* tries until the same threads are found twice */
#define RIGHTS (THREAD_GET_CONTEXT | THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION | SYNCHRONIZE)
#define PATIENCE_MS 30000 /* maximum time to wait for another hsnap */
#define PAUSE_MS 10
#define AGAIN 1 /* threads have started or ended meanwhile */

#if defined(_WIN64)
#define CONTEXT_IP Rip
#define CONTEXT_SP Rsp
#else
#define CONTEXT_IP Eip
#define CONTEXT_SP Esp
#endif

void threads_init(struct threads *threads, HANDLE process, const char *name)
{
	*threads = (struct threads){.process = process, .name = name};
}

static void forget(struct threads *threads)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->items[i].handle)
			CloseHandle(threads->items[i].handle);
	}
	threads->count = 0;
}

static int system_err(const struct threads *threads, const char *what, struct err *err)
{
	char text[300];

	return err_set(err, ERR_SYSTEM, threads->name, "%s: %s", what,
		windows_error(GetLastError(), text, sizeof(text)));
}

/* Calls each() for every thread of the process. Returns 0, the result of each(), or -ERR_SYSTEM. */
static int for_each(
	HANDLE process, int (*each)(void *ctx, size_t index, DWORD id), void *ctx, size_t *count)
{
	HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
	THREADENTRY32 entry = {.dwSize = sizeof(entry)};
	DWORD pid = GetProcessId(process);
	int rc = 0;

	*count = 0;
	if (all == INVALID_HANDLE_VALUE)
		return -ERR_SYSTEM;
	for (BOOL more = Thread32First(all, &entry); more && !rc;
		more = Thread32Next(all, &entry)) {
		if (entry.th32OwnerProcessID == pid)
			rc = each(ctx, (*count)++, entry.th32ThreadID);
	}
	CloseHandle(all);
	return rc;
}

static int only_count(void *ctx, size_t index, DWORD id)
{
	(void)ctx;
	(void)index;
	(void)id;
	return 0;
}

size_t threads_count(HANDLE process)
{
	size_t count;

	return for_each(process, only_count, NULL, &count) ? 0 : count;
}

static int add(void *ctx, size_t index, DWORD id)
{
	struct threads *threads = ctx;

	if (array_try_grow((void **)&threads->items, &threads->cap, index, sizeof(*threads->items)))
		return -ERR_NOMEM;
	threads->items[index] = (struct held_thread){.id = id};
	threads->count = index + 1;
	return 0;
}

static int compare(void *ctx, size_t index, DWORD id)
{
	const struct threads *threads = ctx;

	return index < threads->count && threads->items[index].id == id ? 0 : AGAIN;
}

/* Reads where a thread is. Reading a thread's registers also waits until the thread is really
 * suspended. */
static int look_at(struct threads *threads, struct held_thread *thread, struct err *err)
{
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};
	char what[60];

	thread->handle = OpenThread(RIGHTS, FALSE, thread->id);
	if (!thread->handle && GetLastError() == ERROR_INVALID_PARAMETER)
		return AGAIN;
	if (thread->handle && GetThreadContext(thread->handle, &context)) {
		thread->ip = context.CONTEXT_IP;
		thread->sp = context.CONTEXT_SP;
		return 0;
	}
	if (thread->handle && WaitForSingleObject(thread->handle, 0) == WAIT_OBJECT_0)
		return AGAIN;
	snprintf(what, sizeof(what), "its thread %lu cannot be read", thread->id);
	return err_set(err, ERR_RIGHTS, threads->name, "%s", what);
}

/* Reads where all threads are. Returns 0 if no thread has started or ended since the last
 * listing. */
static int look(struct threads *threads, struct err *err)
{
	size_t count = 0;
	int rc = for_each(threads->process, add, threads, &count);

	if (rc == -ERR_NOMEM)
		return err_set(err, ERR_NOMEM, threads->name, NULL);
	if (rc)
		return system_err(threads, "its threads", err);
	for (size_t i = 0; i < threads->count && !rc; i++)
		rc = look_at(threads, &threads->items[i], err);
	if (!rc)
		rc = for_each(threads->process, compare, threads, &count);
	return rc == -ERR_SYSTEM	     ? system_err(threads, "its threads", err) :
	       !rc && count < threads->count ? AGAIN :
					       rc;
}

static int suspend(struct threads *threads, struct err *err)
{
	NTSTATUS status;

	guard_arm(threads->guard);
	status = NtSuspendProcess(threads->process);
	if (status >= 0) {
		threads->is_held = true;
		return 0;
	}
	guard_disarm(threads->guard);
	if (WaitForSingleObject(threads->process, 0) == WAIT_OBJECT_0)
		return err_set(err, ERR_GONE, threads->name, NULL);
	return err_set(err, ERR_RIGHTS, threads->name, "status %08lX", (unsigned long)status);
}

static HANDLE make_lock(const wchar_t *full, void *ctx)
{
	return CreateEventW(ctx, TRUE, FALSE, full);
}

/* Waits until no other hsnap holds the process, in any session, and the helpers of other hsnaps
 * have exited. */
static bool acquire_lock(struct threads *threads)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	const wchar_t *space;
	wchar_t name[60];

	_snwprintf(name, 60, L"hsnap-hold-%lu", GetProcessId(threads->process));
	for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += PAUSE_MS) {
		HANDLE lock = shared_name_make(name, make_lock, &inherit, &space);
		DWORD code = GetLastError();

		if (lock && code != ERROR_ALREADY_EXISTS) {
			threads->lock = lock;
			return true;
		}
		if (!lock && code != ERROR_ACCESS_DENIED)
			return false;
		if (lock)
			CloseHandle(lock);
		WaitForSingleObject(threads->process, PAUSE_MS);
	}
	return false;
}

static int begin(struct threads *threads, struct err *err)
{
	if (!threads->lock && !acquire_lock(threads))
		return err_set(err, ERR_BUSY, threads->name, "another hsnap is working on it");
	if (!threads->guard)
		threads->guard = guard_start_keeping(threads->process, threads->lock);
	if (!threads->guard)
		return system_err(threads, "starting the helper that would resume it", err);
	return 0;
}

int threads_hold(struct threads *threads, struct err *err)
{
	int begun = begin(threads, err);

	if (begun)
		return begun;
	for (int i = 0; i < TRIES; i++) {
		int rc = suspend(threads, err);

		if (!rc)
			rc = look(threads, err);
		if (!rc)
			return 0;
		threads_let_go(threads);
		if (rc != AGAIN)
			return rc;
		if (WaitForSingleObject(threads->process, 1) == WAIT_OBJECT_0)
			return err_set(err, ERR_GONE, threads->name, NULL);
	}
	return err_set(err, ERR_BUSY, threads->name, "keeps starting and ending threads");
}

void threads_let_go(struct threads *threads)
{
	forget(threads);
	if (!threads->is_held)
		return;
	NtResumeProcess(threads->process);
	threads->is_held = false;
	guard_disarm(threads->guard);
}

void threads_release(struct threads *threads)
{
	threads_let_go(threads);
	guard_stop(threads->guard);
	if (threads->lock)
		CloseHandle(threads->lock);
	free(threads->items);
	*threads = (struct threads){0};
}

bool threads_move(struct held_thread *thread, uint64_t ip)
{
	CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};

	if (!GetThreadContext(thread->handle, &context))
		return false;
	context.CONTEXT_IP = (ULONG_PTR)ip;
	if (!SetThreadContext(thread->handle, &context))
		return false;
	thread->ip = ip;
	return true;
}
