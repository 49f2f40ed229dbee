#include "snapshot/tracer/pages.h"

#include "snapshot/tracer/nt.h"

#define MEMORY_BASIC 0 /* MemoryBasicInformation; driver kit page of ZwQueryVirtualMemory */
#define CAN_READ                                                                                   \
	(PAGE_READONLY | PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READ |                     \
		PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY)

bool pages_around(uint64_t base, uint64_t bytes, struct pages *pages)
{
	uint64_t end = base + bytes;

	if (end <= base || end > UINT64_MAX - PAGE_BYTES)
		return false;
	pages->from = base & ~(PAGE_BYTES - 1);
	pages->to = (end + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	return true;
}

static bool query(uint64_t addr, MEMORY_BASIC_INFORMATION *info)
{
	return addr <= UINTPTR_MAX && NtQueryVirtualMemory(THIS_PROCESS, (LPCVOID)(uintptr_t)addr,
					      MEMORY_BASIC, info, sizeof(*info), NULL) >= 0;
}

static uint64_t region_end(const MEMORY_BASIC_INFORMATION *info)
{
	return (uint64_t)(uintptr_t)info->BaseAddress + info->RegionSize;
}

bool pages_ask(uint64_t addr, struct pages_kind *kind)
{
	MEMORY_BASIC_INFORMATION info;

	if (!query(addr, &info) || region_end(&info) <= addr)
		return false;
	*kind = (struct pages_kind){
		.pages = {(uint64_t)(uintptr_t)info.BaseAddress, region_end(&info)},
		.allocation = (uint64_t)(uintptr_t)info.AllocationBase,
		.state = info.State,
		.type = info.State == MEM_FREE ? 0 : info.Type,
	};
	return true;
}

bool pages_of_image(uint64_t addr, struct pages *image)
{
	struct pages_kind kind;
	uint64_t base;

	if (!pages_ask(addr, &kind) || kind.type != MEM_IMAGE)
		return false;
	base = kind.allocation;
	image->from = image->to = base;
	while (pages_ask(image->to, &kind) && kind.type == MEM_IMAGE && kind.allocation == base)
		image->to = kind.pages.to;
	return image->to > base;
}

/* What is on the thread's own stack, above the caller, needs no system call to be known. */
static bool is_on_stack(uintptr_t from, uintptr_t end)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return here >= (uintptr_t)tib->StackLimit && from >= here &&
	       end <= (uintptr_t)tib->StackBase;
}

bool pages_can_read(const void *at, size_t bytes)
{
	uintptr_t from = (uintptr_t)at, end = from + bytes;
	MEMORY_BASIC_INFORMATION info;

	if (end < from)
		return false;
	if (is_on_stack(from, end))
		return true;
	while (from < end) {
		if (!query(from, &info) || region_end(&info) <= from || info.State != MEM_COMMIT ||
			!(info.Protect & CAN_READ) || info.Protect & PAGE_GUARD)
			return false;
		from = (uintptr_t)region_end(&info);
	}
	return true;
}
