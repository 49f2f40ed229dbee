/*
 * Live processes as targets. This file contains the system-specific part of holds: clones and
 * suspension. It also reads a target's memory, threads, modules and environment blocks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/dump/kv.h"
#include "core/base/text.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/live/spawn_windows.h"
#include "snapshot/target/nt_process.h"

#include <tlhelp32.h>

/* Process snapshotting, as documented by Microsoft (processsnapshot.h, Windows 8.1). The functions
 * are looked up at run time, because Windows 7 and Wine do not have them. */
#define CAPTURE_VA_CLONE 1u /* PSS_CAPTURE_VA_CLONE */
/* PSS_CREATE_BREAKAWAY_OPTIONAL; qualifies the next flag */
#define CREATE_BREAKAWAY_OPTIONAL 0x04000000u
/* PSS_CREATE_BREAKAWAY: the clone is outside the process's job */
#define CREATE_BREAKAWAY 0x08000000u
/* PSS_CREATE_RELEASE_SECTION: releases the image's section */
#define CREATE_RELEASE_SECTION 0x80000000u
#define QUERY_VA_CLONE 1 /* PSS_QUERY_VA_CLONE_INFORMATION */

struct va_clone {
	HANDLE process; /* PSS_VA_CLONE_INFORMATION.VaCloneHandle */
};

typedef DWORD(WINAPI *capture_fn)(
	HANDLE process, DWORD flags, DWORD thread_flags, HANDLE *snapshot);
typedef DWORD(WINAPI *query_fn)(HANDLE snapshot, int what, void *info, DWORD bytes);
typedef DWORD(WINAPI *free_fn)(HANDLE process, HANDLE snapshot);

static struct {
	capture_fn capture;
	query_fn query;
	free_fn free;
} pss;

static bool capture(void *process, void **snapshot)
{
	const DWORD flags = CAPTURE_VA_CLONE | CREATE_BREAKAWAY_OPTIONAL | CREATE_BREAKAWAY |
			    CREATE_RELEASE_SECTION;

	/* A clone counts towards the limits of its process's job, which may be full. */
	return pss.capture(process, flags, 0, snapshot) == ERROR_SUCCESS ||
	       pss.capture(process, CAPTURE_VA_CLONE, 0, snapshot) == ERROR_SUCCESS;
}

static bool clone(void *snapshot, void **process)
{
	struct va_clone info = {0};

	if (pss.query(snapshot, QUERY_VA_CLONE, &info, sizeof(info)) != ERROR_SUCCESS ||
		!info.process)
		return false;
	*process = info.process;
	return true;
}

/* Ends the clone's process. Freeing the snapshot closes the clone's handles, but it is not
 * documented that this alone ends the process. */
static void end_clone(void *process)
{
	TerminateProcess(process, 0);
}

static void free_snapshot(void *snapshot)
{
	pss.free(GetCurrentProcess(), snapshot);
}

static long suspend(void *process)
{
	return NtSuspendProcess(process);
}

static void resume(void *process)
{
	NtResumeProcess(process);
}

/* Returns a struct with the system's functions, for process handles. If the system cannot make
 * clones, `capture` and `clone` are NULL. The caller adds `arm` and `disarm`. */
static struct hold_calls target_clone_calls(void)
{
	struct hold_calls calls = {.end_clone = end_clone,
		.free_snapshot = free_snapshot,
		.suspend = suspend,
		.resume = resume};
	HMODULE kernel32 = GetModuleHandleW(L"kernel32.dll");

	pss.capture = (capture_fn)(void *)GetProcAddress(kernel32, "PssCaptureSnapshot");
	pss.query = (query_fn)(void *)GetProcAddress(kernel32, "PssQuerySnapshot");
	pss.free = (free_fn)(void *)GetProcAddress(kernel32, "PssFreeSnapshot");
	if (pss.capture && pss.query && pss.free) {
		calls.capture = capture;
		calls.clone = clone;
	}
	return calls;
}

#define PATH_UNITS 32768
#define OWN_BITS ((unsigned)(8 * sizeof(void *)))
#define RIGHTS (PROCESS_VM_READ | PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME | SYNCHRONIZE)

#define CONTEXT_BYTES 2048 /* greater than any CONTEXT without extensions */

struct live_thread {
	struct target_thread thread;
	unsigned char context[CONTEXT_BYTES];
};

struct live {
	HANDLE process;
	int64_t from_ms; /* time when the hold began */
	bool is_ours; /* process must be closed with this struct */
	struct hold_calls calls;
	struct hold hold;
	struct resume_guard *guard;
	bool is_guard_tried;
	struct target *target; /* owner of this struct, while the target is held */
	/* 64-bit PEB of a 32-bit process, whether it is used or not; otherwise 0 */
	uint64_t native_peb;
	struct live_thread *threads; /* threads that were found when the process was cloned */
	size_t thread_count, thread_cap;
};

static HANDLE reader(struct target *target)
{
	struct live *live = target->system;

	return atomic_load(&live->hold.reader);
}

static int live_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	struct live *live = target->system;

	return region_read_either(reader(target), live->process, addr, bytes, len);
}

static int live_region(struct target *target, uint64_t addr, struct target_region *region)
{
	struct live *live = target->system;

	return region_query_either(reader(target), live->process, addr, region);
}

#define THREAD_RIGHTS (THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION)

/* Reads a thread's registers. In a 32-bit process, reads the registers of the 32-bit half. */
static bool registers(
	struct target *target, HANDLE handle, void *room, struct target_thread *thread)
{
#if defined(_WIN64)
	CONTEXT *context = room;
	WOW64_CONTEXT *guest = room;

	if (target->bits == 32) {
		guest->ContextFlags = WOW64_CONTEXT_FULL;
		thread->context_bytes = sizeof(*guest);
		if (!Wow64GetThreadContext(handle, guest))
			return false;
		thread->sp = guest->Esp;
		return true;
	}
	context->ContextFlags = CONTEXT_FULL;
	thread->context_bytes = sizeof(*context);
	if (!GetThreadContext(handle, context))
		return false;
	thread->sp = context->Rsp;
#else
	CONTEXT *context = room;

	(void)target;
	context->ContextFlags = CONTEXT_FULL;
	thread->context_bytes = sizeof(*context);
	if (!GetThreadContext(handle, context))
		return false;
	thread->sp = context->Esp;
#endif
	return true;
}

static uint64_t teb_of(struct target *target, HANDLE handle)
{
	uint64_t teb = balance_native_teb(handle);

	return teb && target->bits != OWN_BITS ? nt_guest_teb(target, teb) : teb;
}

static int read_thread(struct target *target, DWORD id,
	int (*each)(void *ctx, const struct target_thread *thread), void *ctx)
{
	union {
		CONTEXT context;
		unsigned char bytes[CONTEXT_BYTES];
	} room = {0};
	struct target_thread thread = {.context = room.bytes};
	HANDLE handle = OpenThread(THREAD_RIGHTS, FALSE, id);

	if (handle && registers(target, handle, &room, &thread))
		thread.teb = teb_of(target, handle);
	else
		thread = (struct target_thread){0};
	if (handle)
		CloseHandle(handle);
	return each(ctx, &thread);
}

static int threads_now(struct target *target,
	int (*each)(void *ctx, const struct target_thread *thread), void *ctx, struct err *err)
{
	HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
	THREADENTRY32 entry = {.dwSize = sizeof(entry)};
	int rc = 0;

	if (all == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_SYSTEM, target->name, "its threads cannot be listed");
	for (BOOL more = Thread32First(all, &entry); more && !rc;
		more = Thread32Next(all, &entry)) {
		if (entry.th32OwnerProcessID == target->pid)
			rc = read_thread(target, entry.th32ThreadID, each, ctx);
	}
	CloseHandle(all);
	return rc;
}

static int copy_thread(void *ctx, const struct target_thread *thread)
{
	struct live *live = ctx;
	struct live_thread *kept;

	array_grow((void **)&live->threads, &live->thread_cap, live->thread_count,
		sizeof(*live->threads));
	kept = &live->threads[live->thread_count++];
	kept->thread = *thread;
	if (thread->context_bytes)
		memcpy(kept->context, thread->context, thread->context_bytes);
	return 0;
}

/* Stores the list of threads, which the next clone will lack. */
static void look(void *ctx)
{
	struct live *live = ctx;
	struct err err;

	live->thread_count = 0;
	if (threads_now(live->target, copy_thread, live, &err))
		live->thread_count = 0;
}

static int live_threads(struct target *target,
	int (*each)(void *ctx, const struct target_thread *thread), void *ctx, struct err *err)
{
	struct live *live = target->system;
	int rc = 0;

	if (!hold_is_cloned(&live->hold))
		return threads_now(target, each, ctx, err);
	for (size_t i = 0; !rc && i < live->thread_count; i++) {
		struct target_thread thread = live->threads[i].thread;

		thread.context = live->threads[i].context;
		rc = each(ctx, &thread);
	}
	return rc;
}

static bool live_is_alive(struct target *target)
{
	struct live *live = target->system;

	return WaitForSingleObject(live->process, 0) == WAIT_TIMEOUT;
}

static void arm(void *ctx)
{
	struct live *live = ctx;

	if (!live->is_guard_tried) {
		live->is_guard_tried = true;
		live->guard = guard_start(live->process);
		if (!live->guard)
			fprintf(stderr,
				"hsnap: pid %lu: warning: the helper that would resume it cannot "
				"be started: if hsnap is killed, the process stays suspended\n",
				GetProcessId(live->process));
	}
	guard_arm(live->guard);
	/* Nothing was held before this point. Starting a helper may take a long time. */
	live->from_ms = os_clock_ms();
}

static void disarm(void *ctx)
{
	struct live *live = ctx;

	guard_disarm(live->guard);
}

static int live_suspend(struct target *target, struct err *err)
{
	struct live *live = target->system;
	long status;

	live->from_ms = os_clock_ms();
	live->target = target;
	live->hold.looks = target->needs_threads;
	status = hold_start(&live->hold);
	target->held_from_ms = live->from_ms;

	/* The interrupt will end this process. Until then, its thread uses objects that this thread
	 * would free if it continued. */
	if (status == HOLD_OVER)
		Sleep(INFINITE);
	target->is_cloned = hold_is_cloned(&live->hold);
	if (status >= 0)
		return 0;
	if (!live_is_alive(target))
		return err_set(err, ERR_GONE, target->name, NULL);
	return err_set(err, ERR_RIGHTS, target->name, "status %08lX", (unsigned long)status);
}

static void live_resume(struct target *target)
{
	struct live *live = target->system;

	hold_end(&live->hold);
}

static void live_interrupt(struct target *target)
{
	struct live *live = target->system;

	hold_interrupt(&live->hold);
}

static void live_close(struct target *target)
{
	struct live *live = target->system;

	live_resume(target);
	guard_stop(live->guard);
	if (live->is_ours)
		CloseHandle(live->process);
	free(live->threads);
	free(live);
	target->system = NULL;
}

/* Lists the modules. A process that has not started yet has no 64-bit half, so each call looks for
 * the 64-bit half again. */
static int live_modules(struct target *target, struct snapshot *snapshot, struct err *err)
{
	const struct live *live = target->system;

	if (live->native_peb)
		target->host_peb = nt_host_peb(target, live->native_peb);
	return modules_list(target, snapshot, err);
}

/* The process itself is examined, because a clone lacks views of sections. */
static int live_space(struct target *target, struct target_memory **list, size_t *count)
{
	struct live *live = target->system;

	return balance_space(live->process, target->is_wine, list, count);
}

static int live_tebs(struct target *target, struct target_teb **list, size_t *count)
{
	struct live *live = target->system;

	return balance_tebs(target, live->process, list, count);
}

static void live_count(struct target *target, struct balance *balance, struct arena *arena)
{
	struct live *live = target->system;

	balance_count(live->process, target->is_wine, balance, arena);
}

static struct target_ops live_ops = {
	.read = live_read,
	.region = live_region,
	.slow_region = live_region,
	.threads = live_threads,
	.space = live_space,
	.tebs = live_tebs,
	.count = live_count,
	.modules = live_modules,
	.suspend = live_suspend,
	.resume = live_resume,
	.interrupt = live_interrupt,
	.is_alive = live_is_alive,
	.close = live_close,
};

static void describe_system(struct target *target)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	LONG(WINAPI * version)(OSVERSIONINFOW *) = (void *)GetProcAddress(ntdll, "RtlGetVersion");
	const char *wine = os_wine_version();
	OSVERSIONINFOW info = {.dwOSVersionInfoSize = sizeof(info)};
	wchar_t host[128];
	DWORD units = sizeof(host) / sizeof(*host);

	/* Not the NetBIOS name, which is truncated to 15 letters. */
	if (GetComputerNameExW(ComputerNameDnsHostname, host, &units))
		text_from_utf16(
			(const unsigned char *)host, units, target->host, sizeof(target->host));
	if (version)
		version(&info);
	target->is_wine = wine;
	target->os_build = info.dwBuildNumber;
	snprintf(target->os, sizeof(target->os), "Windows %lu.%lu.%lu%s%.20s", info.dwMajorVersion,
		info.dwMinorVersion, info.dwBuildNumber, wine ? ", Wine " : "", wine ? wine : "");
}

static void describe_process(struct target *target, HANDLE process)
{
	wchar_t *wide = malloc(PATH_UNITS * sizeof(*wide));
	DWORD units = PATH_UNITS;

	if (wide && QueryFullProcessImageNameW(process, 0, wide, &units))
		text_from_utf16(
			(const unsigned char *)wide, units, target->image, sizeof(target->image));
	free(wide);
	target->start_ms = process_start_ms(process);
}

static bool is_guest(void)
{
	BOOL result = FALSE;

	return IsWow64Process(GetCurrentProcess(), &result) && result;
}

/* Returns the 32-bit PEB found through one of the process's threads, or 0. */
static uint64_t peb_by_threads(struct target *target, HANDLE process)
{
	HANDLE thread = NULL, next;
	uint64_t teb, peb = 0;

	while (!peb &&
		NtGetNextThread(process, thread, THREAD_QUERY_INFORMATION, 0, 0, &next) >= 0) {
		if (thread)
			CloseHandle(thread);
		thread = next;
		teb = balance_native_teb(thread);
		if (teb && nt_peb_of_teb(target, 32, nt_guest_teb(target, teb), &peb))
			peb = 0;
	}
	if (thread)
		CloseHandle(thread);
	return peb;
}

/* Finds both PEBs of a 32-bit process, as seen by a 64-bit hsnap. `asked` is the system's answer to
 * a query for the 32-bit PEB. */
static int find_guest(struct target *target, HANDLE process, uint64_t asked, struct err *err)
{
	struct live *live = target->system;
	uint64_t peb = peb_by_threads(target, process);

	if (!peb)
		peb = nt_guest_peb(target, target->peb, asked);
	if (!peb)
		return target_err(target, target->peb,
			"no 32-bit environment block belongs to the 64-bit one", err);
	live->native_peb = target->peb;
	target->bits = 32;
	target->host_peb = nt_host_peb(target, target->peb);
	target->peb = peb;
	return 0;
}

/* Finds the parent and the PEBs. A 32-bit hsnap sees only one PEB, and cannot read 64-bit
 * processes. */
static int find_peb(struct target *target, HANDLE process, struct err *err)
{
	PROCESS_BASIC_INFORMATION basic;
	ULONG_PTR asked = 0;

	if (NtQueryInformationProcess(
		    process, ProcessBasicInformation, &basic, sizeof(basic), NULL) < 0)
		return err_set(err, ERR_RIGHTS, target->name, NULL);
	target->peb = (uintptr_t)basic.PebBaseAddress;
	target->parent_pid = (uint32_t)basic.InheritedFromUniqueProcessId;
	if (NtQueryInformationProcess(process, (PROCESSINFOCLASS)NT_PROCESS_WOW64_INFORMATION,
		    &asked, sizeof(asked), NULL) < 0)
		asked = 0;
	if (OWN_BITS == 32)
		return !asked && is_guest() ? err_set(err, ERR_64_BITS, target->name, NULL) : 0;
	return asked ? find_guest(target, process, asked, err) : 0;
}

int target_open_handle(struct target *target, void *process, struct err *err)
{
	struct live *live;
	int rc;

	*target = (struct target){.ops = &live_ops, .bits = OWN_BITS, .pid = GetProcessId(process)};
	snprintf(target->name, sizeof(target->name), "pid %" PRIu32, target->pid);
	if (WaitForSingleObject(process, 0) == WAIT_OBJECT_0)
		return err_set(err, ERR_NO_PROCESS, target->name, "has ended");
	live = calloc(1, sizeof(*live));
	if (!live)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	live->process = process;
	live->calls = target_clone_calls();
	target->is_cloned = live->calls.clone != NULL;
	live->calls.arm = arm;
	live->calls.disarm = disarm;
	live->calls.look = look;
	hold_init(&live->hold, &live->calls, process, live);
	target->system = live;
	describe_system(target);
	/*
	 * In Wine, one of the target's own threads reports the target's regions. If the target is
	 * killed at that moment, the call never returns. Reading memory does not depend on the
	 * target's threads.
	 */
	if (target->is_wine)
		live_ops.region = NULL;
	rc = find_peb(target, process, err);
	if (rc) {
		live_close(target);
		return rc;
	}
	describe_process(target, process);
	return 0;
}

int target_open_live(struct target *target, uint32_t pid, struct err *err)
{
	HANDLE process = NULL;
	int rc = process_open(pid, RIGHTS, CLONE_RIGHTS, &process, err);

	if (rc)
		return rc;
	rc = target_open_handle(target, process, err);
	if (rc)
		CloseHandle(process);
	else
		((struct live *)target->system)->is_ours = true;
	return rc;
}
