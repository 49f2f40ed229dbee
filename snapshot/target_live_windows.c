#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/nt_windows.h"
#include "snapshot/process.h"

#include <psapi.h>

#include "core/utf_windows.h"

#define RIGHTS (PROCESS_VM_READ | PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME | SYNCHRONIZE)

struct live {
	HANDLE process;
	bool is_ours; /* to be closed */
	LONG volatile held;
	struct guard *guard;
};

static int live_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	struct live *live = target->system;
	SIZE_T got = 0;

	if (!ReadProcessMemory(live->process, (LPCVOID)addr, bytes, len, &got) || got != len)
		return -ERR_READ;
	return 0;
}

static bool live_is_alive(struct target *target)
{
	struct live *live = target->system;

	return WaitForSingleObject(live->process, 0) == WAIT_TIMEOUT;
}

static int live_suspend(struct target *target, struct err *err)
{
	struct live *live = target->system;
	NTSTATUS status;

	if (!live->guard)
		live->guard = guard_start(live->process);
	guard_arm(live->guard);
	status = NtSuspendProcess(live->process);
	if (status < 0) {
		guard_disarm(live->guard);
		if (!live_is_alive(target))
			return err_set(err, ERR_GONE, target->name, NULL);
		return err_set(err, ERR_RIGHTS, target->name, "status %08lX", status);
	}
	InterlockedExchange(&live->held, 1);
	return 0;
}

/* Also called from an interrupt: whoever comes first continues the target, once. */
static void live_resume(struct target *target)
{
	struct live *live = target->system;

	if (!InterlockedExchange(&live->held, 0))
		return;
	NtResumeProcess(live->process);
	guard_disarm(live->guard);
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

/* The module's path: 0 and a copy in the snapshot's arena, or an error. */
static int module_path(
	struct live *live, HMODULE handle, struct snapshot *snapshot, const char **path)
{
	static const DWORD units = 32768;
	wchar_t *wide = malloc(units * sizeof(*wide));
	char *text = NULL;

	*path = NULL;
	if (wide && GetModuleFileNameExW(live->process, handle, wide, units))
		text = utf8_from_wide(wide);
	if (text)
		*path = arena_text(&snapshot->arena, text, strlen(text));
	free(text);
	free(wide);
	return *path ? 0 : -ERR_READ;
}

static int module_add(struct live *live, HMODULE handle, struct snapshot *snapshot)
{
	MODULEINFO info;
	struct module *module;
	const char *path;

	/* One that was unloaded meanwhile is not there any more. */
	if (!GetModuleInformation(live->process, handle, &info, sizeof(info)) ||
		module_path(live, handle, snapshot, &path))
		return 0;
	module = snapshot_add_module(snapshot);
	if (!module)
		return -ERR_NOMEM;
	module->base = (uint64_t)info.lpBaseOfDll;
	module->size_bytes = info.SizeOfImage;
	module->path = path;
	return 0;
}

static int live_modules(struct target *target, struct snapshot *snapshot, struct err *err)
{
	struct live *live = target->system;
	DWORD bytes = 4096 * sizeof(HMODULE), needed = 0;
	HMODULE *handles = malloc(bytes);
	int rc = 0;

	if (!handles)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	if (!EnumProcessModulesEx(live->process, handles, bytes, &needed, LIST_MODULES_ALL))
		rc = target_err(target, target->peb, "unreadable module list", err);
	for (DWORD i = 0; !rc && i < (needed < bytes ? needed : bytes) / sizeof(HMODULE); i++)
		rc = module_add(live, handles[i], snapshot);
	if (rc == -ERR_NOMEM)
		err_set(err, ERR_NOMEM, target->name, NULL);
	modules_sort(snapshot->modules, snapshot->module_count);
	free(handles);
	return rc;
}

static const struct target_ops live_ops = {
	.read = live_read,
	.modules = live_modules,
	.suspend = live_suspend,
	.resume = live_resume,
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
	snprintf(target->os, sizeof(target->os), "Windows %lu.%lu.%lu%s%.20s", info.dwMajorVersion,
		info.dwMinorVersion, info.dwBuildNumber, wine ? ", Wine " : "", wine ? wine() : "");
}

static void describe_process(struct target *target, HANDLE process)
{
	wchar_t wide[1024];
	DWORD units = 1024;
	FILETIME start, exit, kernel, user;
	char *image;

	if (QueryFullProcessImageNameW(process, 0, wide, &units) &&
		(image = utf8_from_wide(wide))) {
		snprintf(target->image, sizeof(target->image), "%s", image);
		free(image);
	}
	if (GetProcessTimes(process, &start, &exit, &kernel, &user)) {
		uint64_t ticks = (uint64_t)start.dwHighDateTime << 32 | start.dwLowDateTime;

		target->start_ms = (int64_t)(ticks / 10000) - 11644473600000;
	}
}

int target_open_handle(struct target *target, void *process, struct err *err)
{
	PROCESS_BASIC_INFORMATION basic;
	struct live *live;
	BOOL is_wow64 = FALSE;

	*target = (struct target){.ops = &live_ops, .bits = 64, .pid = GetProcessId(process)};
	snprintf(target->name, sizeof(target->name), "pid %" PRIu32, target->pid);
	if (IsWow64Process(process, &is_wow64) && is_wow64)
		return err_set(err, ERR_BITS, target->name, NULL);
	if (WaitForSingleObject(process, 0) == WAIT_OBJECT_0)
		return err_set(err, ERR_NO_PROCESS, target->name, "it has ended");
	if (NtQueryInformationProcess(
		    process, ProcessBasicInformation, &basic, sizeof(basic), NULL) < 0)
		return err_set(err, ERR_RIGHTS, target->name, NULL);
	live = calloc(1, sizeof(*live));
	if (!live)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	live->process = process;
	target->system = live;
	target->peb = (uint64_t)basic.PebBaseAddress;
	describe_system(target);
	describe_process(target, process);
	return 0;
}

int target_open_live(struct target *target, uint32_t pid, struct err *err)
{
	char place[40], text[300];
	HANDLE process;
	DWORD code;
	int rc;

	snprintf(place, sizeof(place), "pid %" PRIu32, pid);
	if (pid == GetCurrentProcessId())
		return err_set(err, ERR_USAGE, place, "that is hsnap itself");
	process = OpenProcess(RIGHTS, FALSE, pid);
	if (!process) {
		code = GetLastError();
		if (code == ERROR_ACCESS_DENIED)
			return err_set(err, ERR_RIGHTS, place, NULL);
		return err_set(err, ERR_NO_PROCESS, place,
			code == ERROR_INVALID_PARAMETER ? NULL : "%s",
			windows_error(code, text, sizeof(text)));
	}
	rc = target_open_handle(target, process, err);
	if (rc)
		CloseHandle(process);
	else
		((struct live *)target->system)->is_ours = true;
	return rc;
}
