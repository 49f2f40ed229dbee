/*
 * Modules and memory regions of a live process. For a 32-bit process on 64-bit Windows, module
 * lists are read from both halves of the process. Regions come from a clone or, for shared memory,
 * from the process itself.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os_windows.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/target_memory.h"

#define LIST_TRIES 10
#define LIST_RETRY_MS 10
#define QUERY_TRIES 3

/* Returns true if the module's header in memory is that of a 32-bit image. */
static bool is_32_bit(struct target *target, uint64_t base)
{
	struct target_image at = {.target = target, .base = base};
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

/* Returns the path of a module's file. For a 32-bit module, `path` is the path that the module's
 * process sees. Windows redirects that path, so the file is in another folder. */
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

/* Reads the module lists. A 32-bit process on 64-bit Windows has two halves, each with its own
 * loader. */
static int read_lists(struct memory *memory, struct snapshot *snapshot)
{
	const struct target *target = memory->target;
	int rc = nt_modules_read(memory, target->peb, target->bits, snapshot), host_rc = 0;

	if (target->host_peb)
		host_rc = nt_modules_read(memory, target->host_peb, 64, snapshot);
	return rc ? rc : host_rc;
}

int modules_list(struct target *target, struct snapshot *snapshot, struct err *err)
{
	const size_t before = snapshot->module_count;
	struct memory memory;
	int rc = memory_init(&memory, target);

	if (rc)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	/* A list may be incomplete because the process is just changing it, or has not made it yet.
	 * A moment later it is complete. If it is still incomplete after all tries, only the other
	 * half's list is used. */
	for (int tries = 1; read_lists(&memory, snapshot) && tries < LIST_TRIES; tries++) {
		Sleep(LIST_RETRY_MS);
		memory_clear(&memory);
		snapshot->module_count = before;
	}
	memory_release(&memory);
	if (snapshot->module_count == before)
		return target_err(target, target->peb, "unreadable module list", err);
	for (size_t i = 0; i < snapshot->module_count; i++) {
		struct module *module = &snapshot->modules[i];

		module->path = true_path(target, module->base, snapshot, module->path);
	}
	modules_sort(snapshot->modules, snapshot->module_count);
	return 0;
}

/* There are no regions above the end of user space. Other failures would look like that end, so the
 * query is repeated. */
bool region_info(HANDLE process, uint64_t addr, MEMORY_BASIC_INFORMATION *info)
{
	for (int tries = 1; !VirtualQueryEx(process, (LPCVOID)(uintptr_t)addr, info, sizeof(*info));
		tries++) {
		if (GetLastError() == ERROR_INVALID_PARAMETER || tries >= QUERY_TRIES)
			return false;
	}
	/* The result must lie after addr, so that loops over regions end. */
	return (uint64_t)(uintptr_t)info->BaseAddress + info->RegionSize > addr;
}

/*
 * Returns the start of a region. When the system is queried for an address, its answer begins at
 * the page of that address. A caller that reads in pieces needs to know more: where the region
 * begins within the piece that contains `addr`.
 */
static uint64_t region_start(HANDLE process, uint64_t addr, const MEMORY_BASIC_INFORMATION *info)
{
	uint64_t base = (uint64_t)(uintptr_t)info->BaseAddress;
	uint64_t from = addr - addr % MEMORY_PIECE_BYTES;
	MEMORY_BASIC_INFORMATION before;

	if (from < (uint64_t)(uintptr_t)info->AllocationBase)
		from = (uint64_t)(uintptr_t)info->AllocationBase;
	while (from < base && region_info(process, from, &before)) {
		uint64_t end = (uint64_t)(uintptr_t)before.BaseAddress + before.RegionSize;

		if (end > addr)
			return (uint64_t)(uintptr_t)before.BaseAddress;
		from = end;
	}
	return base;
}

static void describe(struct target_region *region, const MEMORY_BASIC_INFORMATION *info)
{
	region->access = live_protection_access(info->Protect);
	region->is_image = info->Type == MEM_IMAGE;
	region->is_read_only_view =
		live_is_read_only_view(info->Type, info->Protect, info->AllocationProtect);
}

int region_query(HANDLE process, uint64_t addr, struct target_region *region)
{
	MEMORY_BASIC_INFORMATION info;
	uint64_t at = addr;

	for (;;) {
		if (!region_info(process, at, &info))
			return -ERR_READ;
		if (info.State == MEM_COMMIT)
			break;
		at = (uint64_t)(uintptr_t)info.BaseAddress + info.RegionSize;
	}
	region->addr = region_start(process, at, &info);
	region->end = (uint64_t)(uintptr_t)info.BaseAddress + info.RegionSize;
	describe(region, &info);
	return 0;
}

/* Finds the process's shared memory at addr, or the next shared memory above addr and below end.
 * Returns false if none exists. */
static bool find_shared(HANDLE process, uint64_t addr, uint64_t end, struct target_region *region)
{
	MEMORY_BASIC_INFORMATION info;

	while (addr < end && region_info(process, addr, &info)) {
		const uint64_t info_end = (uint64_t)(uintptr_t)info.BaseAddress + info.RegionSize;

		if (info.State == MEM_COMMIT && info.Type == MEM_MAPPED) {
			region->addr = region_start(process, addr, &info);
			region->end = info_end < end ? info_end : end;
			describe(region, &info);
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
	if (clone == process || (region_info(clone, addr, &info) && info.State == MEM_COMMIT) ||
		!find_shared(process, addr, addr + 1, &region) ||
		!read_all(process, addr, bytes, len))
		return -ERR_READ;
	return 0;
}
