#include "snapshot/live/regions_windows.h"

#include "snapshot/live/protection.h"
#include "snapshot/target/target_memory.h"

static bool query(HANDLE process, uint64_t addr, MEMORY_BASIC_INFORMATION *info)
{
	/* None above the end of user space; and never backwards. */
	return VirtualQueryEx(process, (LPCVOID)addr, info, sizeof(*info)) &&
	       (uint64_t)info->BaseAddress + info->RegionSize > addr;
}

/* The system tells of a region what lies from the page asked for on. Whoever reads in pieces wants
 * the start too, as far back as addr's piece goes. */
static uint64_t region_start(HANDLE process, uint64_t addr, const MEMORY_BASIC_INFORMATION *info)
{
	uint64_t base = (uint64_t)info->BaseAddress;
	uint64_t from = addr - addr % MEMORY_PIECE_BYTES;
	MEMORY_BASIC_INFORMATION before;

	if (from < (uint64_t)info->AllocationBase)
		from = (uint64_t)info->AllocationBase;
	while (from < base && query(process, from, &before)) {
		uint64_t end = (uint64_t)before.BaseAddress + before.RegionSize;

		if (end > addr)
			return (uint64_t)before.BaseAddress;
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
		at = (uint64_t)info.BaseAddress + info.RegionSize;
	}
	region->addr = region_start(process, at, &info);
	region->end = (uint64_t)info.BaseAddress + info.RegionSize;
	region->access = protection_access(info.Protect);
	region->is_image = info.Type == MEM_IMAGE;
	return 0;
}
