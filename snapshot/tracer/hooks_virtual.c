/* Hooks of the functions for virtual memory. The first part of this file queries pages, and is used
 * by other hooks too. */
#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_nt.h"
#include "snapshot/tracer/unwind.h"

#define CAN_READ                                                                                   \
	(PAGE_READONLY | PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READ |                     \
		PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY)

/* Finds the pages of [base, base + bytes). Returns false if the range is empty or not inside the
 * address space. */
static bool pages_around(uint64_t base, uint64_t bytes, struct pages *pages)
{
	uint64_t end = base + bytes;

	if (end <= base || end > UINT64_MAX - TRACER_PAGE)
		return false;
	pages->from = base & ~(TRACER_PAGE - 1);
	pages->to = (end + TRACER_PAGE - 1) & ~(TRACER_PAGE - 1);
	return true;
}

static bool query(uint64_t addr, MEMORY_BASIC_INFORMATION *info)
{
	return addr <= UINTPTR_MAX &&
	       NtQueryVirtualMemory(THIS_PROCESS, (LPCVOID)(uintptr_t)addr,
		       NT_MEMORY_BASIC_INFORMATION, info, sizeof(*info), NULL) >= 0;
}

static uint64_t region_end(const MEMORY_BASIC_INFORMATION *info)
{
	return (uint64_t)(uintptr_t)info->BaseAddress + info->RegionSize;
}

bool pages_query(uint64_t addr, struct pages_kind *kind)
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

static bool pages_of_image(uint64_t addr, struct pages *image)
{
	struct pages_kind kind;
	uint64_t base;

	if (!pages_query(addr, &kind) || kind.type != MEM_IMAGE)
		return false;
	base = kind.allocation;
	image->from = image->to = base;
	while (pages_query(image->to, &kind) && kind.type == MEM_IMAGE && kind.allocation == base)
		image->to = kind.pages.to;
	return image->to > base;
}

/* Returns true for memory on the thread's own stack, above this function's frame. Such memory is
 * readable, so no system call is needed to check it. */
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

/*
 * Functions for virtual memory.
 *
 * No lock is held during the real call. New memory is added to the table after the call, and memory
 * to be freed is removed before the call. So the table never contains memory that another thread
 * may already have got. Three kinds of memory are not recorded: memory that a heap requests for
 * itself, the tracer's own memory, and the memory of other processes. However, freed memory is
 * always removed from the table, even if a heap frees it.
 *
 * The real functions check their arguments. Before the real call, a hook dereferences pointer
 * arguments only if they refer to readable memory.
 *
 * Sources: driver kit pages of ZwAllocateVirtualMemory, ZwFreeVirtualMemory, ZwMapViewOfSection,
 * ZwUnmapViewOfSection; VirtualAlloc2, VirtualFree, MapViewOfFile3, UnmapViewOfFileEx for
 * placeholders; for the Ex functions, their published prototypes (phnt, ntmmapi.h).
 */

/* Missing in older headers; see VirtualAlloc2 and VirtualFree, Microsoft Learn. */
#define ALLOCATE_REPLACE_PLACEHOLDER 0x4000u
#define FREE_COALESCE_PLACEHOLDERS 0x1u
#define FREE_PRESERVE_PLACEHOLDER 0x2u

/* Results and parameters are passed as whole registers, because some callers may use the upper
 * bits. */
typedef ULONG_PTR any;
typedef any(WINAPI *allocate_fn)(HANDLE, PVOID *base, any, PSIZE_T bytes, any type, any);
typedef any(WINAPI *allocate_ex_fn)(HANDLE, PVOID *base, PSIZE_T bytes, any type, any, any, any);
typedef any(WINAPI *free_fn)(HANDLE, PVOID *base, PSIZE_T bytes, any type);
typedef any(WINAPI *map_fn)(
	any, HANDLE, PVOID *base, any, any, any, PSIZE_T bytes, any, any type, any);
typedef any(WINAPI *map_ex_fn)(
	any, HANDLE, PVOID *base, any, PSIZE_T bytes, any type, any, any, any);
typedef any(WINAPI *unmap_fn)(HANDLE, PVOID addr);
typedef any(WINAPI *unmap_ex_fn)(HANDLE, PVOID addr, any flags);

static bool is_success(any result)
{
	return (NTSTATUS)result >= 0;
}

bool hooks_is_this_process(HANDLE process)
{
	PROCESS_BASIC_INFORMATION info;

	if (process == THIS_PROCESS)
		return true;
	return NtQueryInformationProcess(
		       process, ProcessBasicInformation, &info, sizeof(info), NULL) >= 0 &&
	       info.UniqueProcessId == GetCurrentProcessId();
}

bool hooks_record(HANDLE process)
{
	return hooks_are_on() && guard_now() == GUARD_NONE && hooks_is_this_process(process);
}

/* Finds the pages returned by a successful call. */
static bool pages_given(const PVOID *base, const SIZE_T *bytes, struct pages *pages)
{
	return pages_around((uintptr_t)*base, *bytes, pages);
}

/* ---------------------------------------------------------------- allocating */

/* Adds memory that was reserved before the tracer was loaded, or by another process. Otherwise a
 * commit could not distinguish new pages from pages that were committed before. */
static void learn_reserved(const struct pages *pages)
{
	struct pages_kind kind;

	if (ranges_is_known(&hsnap_tracer, pages->from, pages->to))
		return;
	for (uint64_t at = pages->from; at < pages->to && pages_query(at, &kind);
		at = kind.pages.to) {
		struct tracer_range range = {.start = at,
			.end = kind.pages.to < pages->to ? kind.pages.to : pages->to,
			.allocation = kind.allocation,
			.kind = RANGE_RESERVED};

		if (kind.state == MEM_RESERVE && kind.type == MEM_PRIVATE)
			ranges_fill(&hsnap_tracer, &range);
	}
}

enum allocation_kind {
	ALLOCATION_UNSEEN,
	ALLOCATION_NEW, /* address space that was free before */
	ALLOCATION_INSIDE, /* part of memory that is already reserved */
};

/* Classifies a call before it is made. A commit without an address also reserves the memory. */
static enum allocation_kind before_allocate(HANDLE process, PVOID *base, PSIZE_T bytes, any type)
{
	struct pages pages;

	if (!(type & (MEM_RESERVE | MEM_COMMIT)) || !hooks_record(process))
		return ALLOCATION_UNSEEN;
	if (type & MEM_RESERVE)
		return type & ALLOCATE_REPLACE_PLACEHOLDER ? ALLOCATION_INSIDE : ALLOCATION_NEW;
	if (!pages_can_read(base, sizeof(*base)) || !pages_can_read(bytes, sizeof(*bytes)))
		return ALLOCATION_UNSEEN; /* the call will be refused */
	if (!*base)
		return ALLOCATION_NEW;
	if (pages_given(base, bytes, &pages))
		learn_reserved(&pages);
	return ALLOCATION_INSIDE;
}

/* Adds a placeholder, unless its address space is known already. Known address space keeps the
 * stack that reserved it. */
static void record_placeholder(const struct pages *pages, uint32_t stack)
{
	struct tracer_range unknown = {.start = pages->from,
		.end = pages->to,
		.allocation = pages->from,
		.kind = RANGE_RESERVED,
		.stack = stack};

	ranges_fill(&hsnap_tracer, &unknown);
}

static void after_allocate(
	enum allocation_kind how, const struct pages *pages, any type, const void *caller)
{
	uint32_t stack = record_stack(caller);
	struct tracer_range range = {.start = pages->from,
		.end = pages->to,
		.allocation = pages->from,
		.kind = type & MEM_COMMIT ? RANGE_COMMITTED : RANGE_RESERVED,
		.stack = stack,
		.reserve_stack = type & MEM_COMMIT ? stack : 0};

	if (!hooks_are_on())
		return;
	if (how == ALLOCATION_NEW) {
		ranges_add(&hsnap_tracer, &range);
		return;
	}
	if (type & ALLOCATE_REPLACE_PLACEHOLDER)
		record_placeholder(pages, stack);
	if (type & MEM_COMMIT)
		ranges_use(&hsnap_tracer, pages->from, pages->to, RANGE_COMMITTED, stack);
}

static any WINAPI hook_virtual_allocate(
	HANDLE process, PVOID *base, any zero_bits, PSIZE_T bytes, any type, any protect)
{
	enum allocation_kind how = before_allocate(process, base, bytes, type);
	any result = ((allocate_fn)hook_original(HOOK_VIRTUAL_ALLOCATE))(
		process, base, zero_bits, bytes, type, protect);
	struct pages pages;

	if (how && is_success(result) && hooks_are_on() && pages_given(base, bytes, &pages))
		after_allocate(how, &pages, type, __builtin_return_address(0));
	return result;
}

static any WINAPI hook_virtual_allocate_ex(HANDLE process, PVOID *base, PSIZE_T bytes, any type,
	any protect, any parameters, any parameter_count)
{
	enum allocation_kind how = before_allocate(process, base, bytes, type);
	any result = ((allocate_ex_fn)hook_original(HOOK_VIRTUAL_ALLOCATE_EX))(
		process, base, bytes, type, protect, parameters, parameter_count);
	struct pages pages;

	if (how && is_success(result) && hooks_are_on() && pages_given(base, bytes, &pages))
		after_allocate(how, &pages, type, __builtin_return_address(0));
	return result;
}

/* ---------------------------------------------------------------- freeing */

/* Returns the stack of a free, or 0 if no recording needs it. Must be called before a hook checks
 * the tables, because hsnap may free the tables while this function walks the stack. */
static uint32_t freeing_stack(const void *caller)
{
	return hooks_are_on() && hsnap_tracer.rings && guard_now() == GUARD_NONE ?
		       record_stack(caller) :
		       0;
}

/* Finds the pages that a call is about to free. If the size is 0, finds the known pages of the
 * allocation at `*base`. Returns false if there is nothing to remove. */
static bool before_free(HANDLE process, PVOID *base, PSIZE_T bytes, struct pages *pages)
{
	struct ranges_extent extent;

	__atomic_fetch_add(&unwind_frees, 1, __ATOMIC_RELAXED);
	if (!hooks_are_on() || !hooks_is_this_process(process) ||
		!pages_can_read(base, sizeof(*base)) || !pages_can_read(bytes, sizeof(*bytes)))
		return false;
	if (*bytes)
		return pages_given(base, bytes, pages);
	pages->from = (uintptr_t)*base & ~(TRACER_PAGE - 1);
	if (!ranges_find(&hsnap_tracer, pages->from, &extent) || extent.base != pages->from)
		return false;
	pages->to = extent.end;
	return true;
}

/* Restores memory whose free was refused, unless another thread has freed it in the meantime. */
static void after_refused_free(const struct pages *pages, const struct ranges_taken *taken)
{
	struct pages_kind kind;

	if (pages_query(pages->from, &kind) && kind.state == MEM_FREE)
		ranges_drop(&hsnap_tracer, taken);
	else
		ranges_restore(&hsnap_tracer, taken);
}

static void after_free(any result, const struct pages *pages, const struct ranges_taken *taken)
{
	if (taken->session != hsnap_tracer.session)
		return;
	if (is_success(result))
		ranges_drop(&hsnap_tracer, taken);
	else
		after_refused_free(pages, taken);
}

/* Makes the pages a placeholder of their own. The remaining part of the allocation, after these
 * pages, becomes another placeholder. */
static void split_off(const struct pages *pages, uint32_t stack)
{
	struct tracer_area *area = &hsnap_tracer;
	struct ranges_extent extent;

	ranges_decommit(area, pages->from, pages->to, RANGE_COMMITTED, stack);
	if (ranges_find(area, pages->from, &extent) && extent.end > pages->to)
		ranges_rebase(area, pages->to, extent.end, pages->to);
	ranges_rebase(area, pages->from, pages->to, pages->from);
}

/* Records a free that keeps the address space reserved. Called after the real call, because no
 * other thread can get the memory in between. */
static void after_decommit(const struct pages *pages, any type, uint32_t stack)
{
	if (type & MEM_DECOMMIT)
		ranges_decommit(&hsnap_tracer, pages->from, pages->to, RANGE_COMMITTED, stack);
	else if (type & FREE_COALESCE_PLACEHOLDERS)
		ranges_rebase(&hsnap_tracer, pages->from, pages->to, pages->from);
	else
		split_off(pages, stack);
}

static any WINAPI hook_virtual_free(HANDLE process, PVOID *base, PSIZE_T bytes, any type)
{
	free_fn original = (free_fn)hook_original(HOOK_VIRTUAL_FREE);
	bool leaves =
		!(type & (MEM_DECOMMIT | FREE_COALESCE_PLACEHOLDERS | FREE_PRESERVE_PLACEHOLDER));
	uint32_t stack = freeing_stack(__builtin_return_address(0));
	struct ranges_taken taken;
	struct pages pages;
	any result;

	if (!before_free(process, base, bytes, &pages))
		return original(process, base, bytes, type);
	if (leaves && !ranges_detach(&hsnap_tracer, pages.from, pages.to, stack, &taken))
		return original(process, base, bytes, type);
	result = original(process, base, bytes, type);
	if (!hooks_are_on())
		return result;
	if (leaves)
		after_free(result, &pages, &taken);
	else if (is_success(result))
		after_decommit(&pages, type, stack);
	return result;
}

/* ---------------------------------------------------------------- views */

/* Adds a view. Ignores images, because modules are listed separately. */
static void after_map(const PVOID *base, const SIZE_T *bytes, any type, const void *caller)
{
	struct pages_kind kind;
	struct pages pages;
	uint32_t stack;

	if (!pages_given(base, bytes, &pages) || !pages_query(pages.from, &kind) ||
		kind.type == MEM_IMAGE)
		return;
	stack = record_stack(caller);
	if (!hooks_are_on())
		return;
	if (type & ALLOCATE_REPLACE_PLACEHOLDER) {
		record_placeholder(&pages, stack);
		ranges_use(&hsnap_tracer, pages.from, pages.to, RANGE_MAPPED, stack);
	} else {
		struct tracer_range range = {.start = pages.from,
			.end = pages.to,
			.allocation = pages.from,
			.kind = RANGE_MAPPED,
			.stack = stack};

		ranges_add(&hsnap_tracer, &range);
	}
}

static any WINAPI hook_map(any section, HANDLE process, PVOID *base, any zero_bits,
	any commit_bytes, any offset, PSIZE_T bytes, any inherit, any type, any protect)
{
	bool is_seen = hooks_record(process);
	any result = ((map_fn)hook_original(HOOK_MAP))(section, process, base, zero_bits,
		commit_bytes, offset, bytes, inherit, type, protect);

	if (is_seen && is_success(result) && hooks_are_on())
		after_map(base, bytes, type, __builtin_return_address(0));
	return result;
}

static any WINAPI hook_map_ex(any section, HANDLE process, PVOID *base, any offset, PSIZE_T bytes,
	any type, any protect, any parameters, any parameter_count)
{
	bool is_seen = hooks_record(process);
	any result = ((map_ex_fn)hook_original(HOOK_MAP_EX))(
		section, process, base, offset, bytes, type, protect, parameters, parameter_count);

	if (is_seen && is_success(result) && hooks_are_on())
		after_map(base, bytes, type, __builtin_return_address(0));
	return result;
}

enum unmap_kind {
	UNMAP_UNSEEN,
	UNMAP_TAKEN, /* must later be dropped or restored */
	UNMAP_PLACEHOLDER,
	UNMAP_IMAGE, /* an image: cached facts about its code are now invalid */
};

/* Prepares an unmap before the call. The caller may pass any address inside the view. */
static enum unmap_kind before_unmap(HANDLE process, PVOID addr, any flags, uint32_t stack,
	struct pages *pages, struct ranges_taken *taken)
{
	struct ranges_extent extent;

	__atomic_fetch_add(&unwind_frees, 1, __ATOMIC_RELAXED);
	if (!hooks_are_on() || !hooks_is_this_process(process))
		return UNMAP_UNSEEN;
	if (!ranges_find(&hsnap_tracer, (uintptr_t)addr, &extent) || extent.kind != RANGE_MAPPED) {
		if (!pages_of_image((uintptr_t)addr, pages))
			return UNMAP_UNSEEN;
		unwind_forget(pages->from, pages->to);
		return UNMAP_IMAGE;
	}
	*pages = (struct pages){extent.base, extent.end};
	if (flags & FREE_PRESERVE_PLACEHOLDER)
		return UNMAP_PLACEHOLDER;
	return ranges_detach(&hsnap_tracer, pages->from, pages->to, stack, taken) ? UNMAP_TAKEN :
										    UNMAP_UNSEEN;
}

static void after_unmap(enum unmap_kind how, any result, uint32_t stack, const struct pages *pages,
	const struct ranges_taken *taken)
{
	if (how == UNMAP_IMAGE)
		unwind_forget(pages->from, pages->to);
	else if (!hooks_are_on())
		return;
	else if (how == UNMAP_TAKEN)
		after_free(result, pages, taken);
	else if (how == UNMAP_PLACEHOLDER && is_success(result))
		ranges_decommit(&hsnap_tracer, pages->from, pages->to, RANGE_MAPPED, stack);
}

static any WINAPI hook_unmap(HANDLE process, PVOID addr)
{
	uint32_t stack = freeing_stack(__builtin_return_address(0));
	struct ranges_taken taken;
	struct pages pages;
	enum unmap_kind how = before_unmap(process, addr, 0, stack, &pages, &taken);
	any result = ((unmap_fn)hook_original(HOOK_UNMAP))(process, addr);

	after_unmap(how, result, stack, &pages, &taken);
	return result;
}

static any WINAPI hook_unmap_ex(HANDLE process, PVOID addr, any flags)
{
	uint32_t stack = freeing_stack(__builtin_return_address(0));
	struct ranges_taken taken;
	struct pages pages;
	enum unmap_kind how = before_unmap(process, addr, flags, stack, &pages, &taken);
	any result = ((unmap_ex_fn)hook_original(HOOK_UNMAP_EX))(process, addr, flags);

	after_unmap(how, result, stack, &pages, &taken);
	return result;
}

void hooks_virtual_init(void)
{
	struct tracer_hook *hooks = hsnap_tracer.hooks;

	hooks[HOOK_VIRTUAL_ALLOCATE].hook = (uintptr_t)hook_virtual_allocate;
	hooks[HOOK_VIRTUAL_ALLOCATE_EX].hook = (uintptr_t)hook_virtual_allocate_ex;
	hooks[HOOK_VIRTUAL_FREE].hook = (uintptr_t)hook_virtual_free;
	hooks[HOOK_MAP].hook = (uintptr_t)hook_map;
	hooks[HOOK_MAP_EX].hook = (uintptr_t)hook_map_ex;
	hooks[HOOK_UNMAP].hook = (uintptr_t)hook_unmap;
	hooks[HOOK_UNMAP_EX].hook = (uintptr_t)hook_unmap_ex;
}
