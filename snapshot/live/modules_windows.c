#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <psapi.h>

#include "core/base/os_windows.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/target/target_memory.h"

#define MODULES_MAX 65536
#define PATH_UNITS 32768
#define LIST_TRIES 10
#define LIST_RETRY_MS 10
#define QUERY_TRIES 3

/* Whether a module is 32-bit, as its header in memory says. */
static bool is_32_bit(struct target *target, uint64_t base)
{
	struct target_image at = {target, base};
	struct pe_source source = target_image_source(&at);
	struct pe_image *image = malloc(sizeof(*image));
	bool result =
		image && !pe_read_headers(&source, image) && image->machine == PE_MACHINE_I386;

	free(image);
	return result;
}

static char *folder(UINT(WINAPI *get)(LPWSTR, UINT))
{
	wchar_t wide[MAX_PATH];
	UINT len = get(wide, MAX_PATH);

	return len && len < MAX_PATH ? wide_to_utf8(wide) : NULL;
}

/* A 32-bit module names the folder that its process believes to be in; the file lies elsewhere. */
static const char *true_path(
	struct target *target, uint64_t base, struct snapshot *snapshot, const char *path)
{
	char *system, *wow64;
	const char *result = path;

	if (target->bits != 32 || !is_32_bit(target, base))
		return path;
	system = folder(GetSystemDirectoryW);
	wow64 = folder(GetSystemWow64DirectoryW);
	if (system && wow64)
		result = live_wow64_path(&snapshot->arena, path, system, wow64);
	free(system);
	free(wow64);
	return result;
}

/* The system reads the process's own lists, which may be changed while it does, or not be there yet: that is over in
 * a moment. Whether it is worth another try then. */
static bool may_pass(int tries)
{
	DWORD code = GetLastError();

	if (tries >= LIST_TRIES ||
		(code != ERROR_PARTIAL_COPY && code != ERROR_NOACCESS /* Wine */))
		return false;
	Sleep(LIST_RETRY_MS);
	return true;
}

static bool enumerate(HANDLE process, HMODULE *handles, DWORD bytes, DWORD *needed)
{
	int tries = 1;

	while (!EnumProcessModulesEx(process, handles, bytes, needed, LIST_MODULES_ALL)) {
		if (!may_pass(tries++))
			return false;
	}
	return true;
}

static bool query_module(HANDLE process, HMODULE handle, MODULEINFO *info)
{
	int tries = 1;

	while (!GetModuleInformation(process, handle, info, sizeof(*info))) {
		if (!may_pass(tries++))
			return false;
	}
	return true;
}

static bool query_path(HANDLE process, HMODULE handle, wchar_t *path)
{
	int tries = 1;

	while (!GetModuleFileNameExW(process, handle, path, PATH_UNITS)) {
		if (!may_pass(tries++))
			return false;
	}
	return true;
}

/* Adds one, with its path as the system tells it; one that cannot be told is named by its place, for it
 * lies there all the same. */
static int add(struct target *target, HANDLE process, HMODULE handle, struct snapshot *snapshot)
{
	MODULEINFO info;
	struct module *module;
	uint64_t base;
	wchar_t *wide;
	char *text;

	/* One that was unloaded meanwhile is not there any more. */
	if (!query_module(process, handle, &info))
		return 0;
	base = (uint64_t)(uintptr_t)info.lpBaseOfDll;
	wide = malloc(PATH_UNITS * sizeof(*wide));
	if (!wide)
		return -ERR_NOMEM;
	if (!query_path(process, handle, wide))
		_snwprintf(wide, PATH_UNITS, L"?%llX", (unsigned long long)base);
	text = wide_to_utf8(wide);
	free(wide);
	if (!text)
		return -ERR_NOMEM;
	module = snapshot_add_module(snapshot);
	module->base = base;
	module->size_bytes = info.SizeOfImage;
	module->path =
		true_path(target, base, snapshot, arena_text(&snapshot->arena, text, strlen(text)));
	free(text);
	return 0;
}

static int compare(const void *a, const void *b)
{
	ULONG_PTR left = (ULONG_PTR) * (const HMODULE *)a, right = (ULONG_PTR) * (const HMODULE *)b;

	return left < right ? -1 : left > right;
}

struct handles {
	HMODULE *items; /* the caller's to free */
	size_t count;
};

/* All handles, by address: 0, -ERR_NOMEM, or -ERR_TARGET: they cannot be listed. */
static int list(HANDLE process, struct handles *handles)
{
	DWORD bytes = 4096 * sizeof(HMODULE), needed = 0;

	for (;;) {
		HMODULE *items = malloc(bytes);

		if (!items)
			return -ERR_NOMEM;
		if (!enumerate(process, items, bytes, &needed)) {
			free(items);
			return -ERR_TARGET;
		}
		if (needed <= bytes || bytes >= MODULES_MAX * sizeof(HMODULE)) {
			handles->items = items;
			handles->count = (needed < bytes ? needed : bytes) / sizeof(HMODULE);
			qsort(items, handles->count, sizeof(*items), compare);
			return 0;
		}
		free(items);
		bytes = MODULES_MAX * sizeof(HMODULE);
	}
}

int modules_list(struct target *target, HANDLE process, struct snapshot *snapshot, struct err *err)
{
	struct handles handles = {0};
	int rc = list(process, &handles);

	if (rc == -ERR_TARGET)
		rc = target_err(target, target->peb, "unreadable module list", err);
	for (size_t i = 0; !rc && i < handles.count; i++) {
		/* A 32-bit program is in the lists of both kinds. */
		if (!i || handles.items[i] != handles.items[i - 1])
			rc = add(target, process, handles.items[i], snapshot);
	}
	if (rc == -ERR_NOMEM)
		err_set(err, ERR_NOMEM, target->name, NULL);
	modules_sort(snapshot->modules, snapshot->module_count);
	free(handles.items);
	return rc;
}

static bool query(HANDLE process, uint64_t addr, MEMORY_BASIC_INFORMATION *info)
{
	/* None above the end of user space. What fails for another reason would look like that end. */
	for (int tries = 1; !VirtualQueryEx(process, (LPCVOID)(uintptr_t)addr, info, sizeof(*info));
		tries++) {
		if (GetLastError() == ERROR_INVALID_PARAMETER || tries >= QUERY_TRIES)
			return false;
	}
	/* Never backwards. */
	return (uint64_t)(uintptr_t)info->BaseAddress + info->RegionSize > addr;
}

/* The system tells of a region what lies from the page asked for on. Whoever reads in pieces wants
 * the start too, as far back as addr's piece goes. */
static uint64_t region_start(HANDLE process, uint64_t addr, const MEMORY_BASIC_INFORMATION *info)
{
	uint64_t base = (uint64_t)(uintptr_t)info->BaseAddress;
	uint64_t from = addr - addr % MEMORY_PIECE_BYTES;
	MEMORY_BASIC_INFORMATION before;

	if (from < (uint64_t)(uintptr_t)info->AllocationBase)
		from = (uint64_t)(uintptr_t)info->AllocationBase;
	while (from < base && query(process, from, &before)) {
		uint64_t end = (uint64_t)(uintptr_t)before.BaseAddress + before.RegionSize;

		if (end > addr)
			return (uint64_t)(uintptr_t)before.BaseAddress;
		from = end;
	}
	return base;
}

int region_query(HANDLE process, uint64_t addr, struct target_region *region)
{
	MEMORY_BASIC_INFORMATION info;
	uint64_t at = addr;

	for (;;) {
		if (!query(process, at, &info))
			return -ERR_READ;
		if (info.State == MEM_COMMIT)
			break;
		at = (uint64_t)(uintptr_t)info.BaseAddress + info.RegionSize;
	}
	region->addr = region_start(process, at, &info);
	region->end = (uint64_t)(uintptr_t)info.BaseAddress + info.RegionSize;
	region->access = live_protection_access(info.Protect);
	region->is_image = info.Type == MEM_IMAGE;
	return 0;
}

/* Shared memory of the process that begins or goes on at addr or above it, and below end; false: there
 * is none. */
static bool find_shared(HANDLE process, uint64_t addr, uint64_t end, struct target_region *region)
{
	MEMORY_BASIC_INFORMATION info;

	while (addr < end && query(process, addr, &info)) {
		const uint64_t info_end = (uint64_t)(uintptr_t)info.BaseAddress + info.RegionSize;

		if (info.State == MEM_COMMIT && info.Type == MEM_MAPPED) {
			region->addr = region_start(process, addr, &info);
			region->end = info_end < end ? info_end : end;
			region->access = live_protection_access(info.Protect);
			region->is_image = false;
			return true;
		}
		addr = info_end;
	}
	return false;
}

int region_query_either(HANDLE clone, HANDLE process, uint64_t addr, struct target_region *region)
{
	struct target_region found = {0};
	int rc = region_query(clone, addr, &found);

	if (clone != process && (rc || found.addr > addr) &&
		find_shared(process, addr, rc ? UINT64_MAX : found.addr, &found))
		rc = 0;
	if (!rc)
		*region = found;
	return rc;
}

static bool read_all(HANDLE process, uint64_t addr, void *bytes, size_t len)
{
	SIZE_T got = 0;

	return ReadProcessMemory(process, (LPCVOID)(uintptr_t)addr, bytes, len, &got) && got == len;
}

int region_read_either(HANDLE clone, HANDLE process, uint64_t addr, void *bytes, size_t len)
{
	MEMORY_BASIC_INFORMATION info;
	struct target_region region;

	if (read_all(clone, addr, bytes, len))
		return 0;
	if (clone == process || (query(clone, addr, &info) && info.State == MEM_COMMIT) ||
		!find_shared(process, addr, addr + 1, &region) ||
		!read_all(process, addr, bytes, len))
		return -ERR_READ;
	return 0;
}
