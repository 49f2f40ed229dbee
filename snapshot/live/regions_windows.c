#include "snapshot/live/regions_windows.h"

#include "snapshot/live/protection.h"
#include "snapshot/target/target_memory.h"

static bool query(HANDLE process, uint64_t addr, MEMORY_BASIC_INFORMATION *info)
{
	/* None above the end of user space; and never backwards. */
	return VirtualQueryEx(process, (LPCVOID)(uintptr_t)addr, info, sizeof(*info)) &&
	       (uint64_t)(uintptr_t)info->BaseAddress + info->RegionSize > addr;
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
	region->access = protection_access(info.Protect);
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
			region->access = protection_access(info.Protect);
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

int memory_read_either(HANDLE clone, HANDLE process, uint64_t addr, void *bytes, size_t len)
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
