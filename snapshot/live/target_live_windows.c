#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "snapshot/live/clone_windows.h"
#include "snapshot/live/modules_windows.h"
#include "snapshot/live/open_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/live/regions_windows.h"

#include "core/utf16.h"

#define PATH_UNITS 32768
#define OWN_BITS ((unsigned)(8 * sizeof(void *)))
/* Wine's server and its clients copy by turns, so several are at work at once: three threads read two
 * and a half times as fast as one does. */
#define READERS 3
#define RIGHTS (PROCESS_VM_READ | PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME | SYNCHRONIZE)

struct live {
	HANDLE process;
	int64_t from_ms; /* when holding it began */
	bool is_ours; /* to be closed */
	struct hold_calls calls;
	struct hold hold;
	struct guard *guard;
	bool is_guard_tried;
};

static HANDLE reader(struct target *target)
{
	struct live *live = target->system;

	return atomic_load(&live->hold.reader);
}

static int live_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	struct live *live = target->system;

	return memory_read_either(reader(target), live->process, addr, bytes, len);
}

static int live_region(struct target *target, uint64_t addr, struct target_region *region)
{
	struct live *live = target->system;

	return region_query_either(reader(target), live->process, addr, region);
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
				"hsnap: pid %lu: warning: its helper cannot be started: if "
				"hsnap is ended by force the process stays suspended\n",
				GetProcessId(live->process));
	}
	guard_arm(live->guard);
	/* Until here nothing was held: a helper may take long to start. */
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
	status = hold_start(&live->hold);
	target->held_from_ms = live->from_ms;

	/* The interrupt ends this process. Until then its thread uses what would go if this one went on. */
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
	free(live);
	target->system = NULL;
}

static int live_modules(struct target *target, struct snapshot *snapshot, struct err *err)
{
	struct live *live = target->system;

	return modules_list(target, live->process, snapshot, err);
}

static const struct target_ops live_ops = {
	.read = live_read,
	.region = live_region,
	.modules = live_modules,
	.suspend = live_suspend,
	.resume = live_resume,
	.interrupt = live_interrupt,
	.is_alive = live_is_alive,
	.close = live_close,
};

/* Wine has a thread of the target answer what its regions are; when the target is killed at that
 * moment, nobody ever does. Reading needs no answer of anybody. */
static const struct target_ops live_ops_wine = {
	.read = live_read,
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
	const char *(CDECL * wine)(void) = (void *)GetProcAddress(ntdll, "wine_get_version");
	OSVERSIONINFOW info = {.dwOSVersionInfoSize = sizeof(info)};

	if (version)
		version(&info);
	target->is_wine = wine;
	target->os_build = info.dwBuildNumber;
	snprintf(target->os, sizeof(target->os), "Windows %lu.%lu.%lu%s%.20s", info.dwMajorVersion,
		info.dwMinorVersion, info.dwBuildNumber, wine ? ", Wine " : "", wine ? wine() : "");
}

static void describe_process(struct target *target, HANDLE process)
{
	wchar_t *wide = malloc(PATH_UNITS * sizeof(*wide));
	DWORD units = PATH_UNITS;
	FILETIME start, exit, kernel, user;

	if (wide && QueryFullProcessImageNameW(process, 0, wide, &units))
		utf16_text(
			(const unsigned char *)wide, units, target->image, sizeof(target->image));
	free(wide);
	if (GetProcessTimes(process, &start, &exit, &kernel, &user)) {
		uint64_t ticks = (uint64_t)start.dwHighDateTime << 32 | start.dwLowDateTime;

		target->start_ms = (int64_t)(ticks / 10000) - 11644473600000;
	}
}

/* A 32-bit hsnap on 64-bit Windows. */
static bool is_guest(void)
{
	BOOL result = FALSE;

	return IsWow64Process(GetCurrentProcess(), &result) && result;
}

/* Its parent, and both environment blocks of a 32-bit process on 64-bit Windows; or the one. A 32-bit hsnap sees but
 * one of any. */
static int find_peb(struct target *target, HANDLE process)
{
	PROCESS_BASIC_INFORMATION basic;
	ULONG_PTR peb32 = 0;

	if (NtQueryInformationProcess(
		    process, ProcessBasicInformation, &basic, sizeof(basic), NULL) < 0)
		return -ERR_RIGHTS;
	target->peb = (uintptr_t)basic.PebBaseAddress;
	target->parent_pid = (uint32_t)basic.InheritedFromUniqueProcessId;
	if (NtQueryInformationProcess(process, (PROCESSINFOCLASS)NT_PROCESS_WOW64_INFORMATION,
		    &peb32, sizeof(peb32), NULL) < 0)
		peb32 = 0;
	if (OWN_BITS == 32)
		return !peb32 && is_guest() ? -ERR_64_BITS : 0;
	if (peb32) {
		target->bits = 32;
		target->host_peb = target->peb;
		target->peb = peb32;
	}
	return 0;
}

int target_open_handle(struct target *target, void *process, struct err *err)
{
	struct live *live;
	int rc;

	*target = (struct target){.ops = &live_ops,
		.bits = OWN_BITS,
		.pid = GetProcessId(process),
		.reader_count = READERS};
	snprintf(target->name, sizeof(target->name), "pid %" PRIu32, target->pid);
	if (WaitForSingleObject(process, 0) == WAIT_OBJECT_0)
		return err_set(err, ERR_NO_PROCESS, target->name, "it has ended");
	rc = find_peb(target, process);
	if (rc)
		return err_set(err, (enum err_code) - rc, target->name, NULL);
	live = calloc(1, sizeof(*live));
	if (!live)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	live->process = process;
	live->calls = clone_calls();
	live->calls.arm = arm;
	live->calls.disarm = disarm;
	hold_init(&live->hold, &live->calls, process, live);
	target->system = live;
	describe_system(target);
	if (target->is_wine)
		target->ops = &live_ops_wine;
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
