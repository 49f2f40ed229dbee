#include "snapshot/control/install_windows.h"

#include <stdlib.h>
#include <windows.h>

#include "core/buf.h"
#include "core/utf_windows.h"
#include "snapshot/control/parts.h"
#include "snapshot/control/patch_plan.h"
#include "snapshot/stacks/tracer_table.h"

#define GRANULE ((uint64_t)0x10000)
#define SLOTS_BYTES ((uint64_t)4096)
_Static_assert(HOOK_COUNT *PATCH_SLOT_BYTES <= SLOTS_BYTES, "trampolines");

static const struct {
	const char *name;
	bool is_optional;
} functions[HOOK_COUNT] = {
	[HOOK_ALLOCATE] = {"RtlAllocateHeap", false},
	[HOOK_REALLOCATE] = {"RtlReAllocateHeap", false},
	[HOOK_FREE] = {"RtlFreeHeap", false},
	[HOOK_CREATE_HEAP] = {"RtlCreateHeap", false},
	[HOOK_DESTROY_HEAP] = {"RtlDestroyHeap", false},
	[HOOK_VIRTUAL_ALLOCATE] = {"NtAllocateVirtualMemory", false},
	[HOOK_VIRTUAL_ALLOCATE_EX] = {"NtAllocateVirtualMemoryEx", true},
	[HOOK_VIRTUAL_FREE] = {"NtFreeVirtualMemory", false},
	[HOOK_MAP] = {"NtMapViewOfSection", false},
	[HOOK_MAP_EX] = {"NtMapViewOfSectionEx", true},
	[HOOK_UNMAP] = {"NtUnmapViewOfSection", false},
	[HOOK_UNMAP_EX] = {"NtUnmapViewOfSectionEx", true},
	[HOOK_TERMINATE] = {"NtTerminateProcess", false},
	[HOOK_CREATE_PROCESS] = {"NtCreateUserProcess", true},
};

struct installing {
	struct target *target;
	HANDLE process;
	uint64_t area_addr;
	struct tracer_area *area;
	struct module ntdll;
	uint8_t slots[SLOTS_BYTES];
};

static bool is_ntdll(const char *path)
{
	const char *name = path_base(path), *ntdll = "ntdll.dll";

	while (*name && *ntdll && (*name | 0x20) == (*ntdll | 0x20)) {
		name++;
		ntdll++;
	}
	return !*name && !*ntdll;
}

static int find_ntdll(struct installing *installing, struct err *err)
{
	struct target *target = installing->target;
	struct snapshot modules;
	int rc;

	snapshot_init(&modules);
	rc = target->ops->modules(target, &modules, err);
	if (!rc) {
		rc = -ERR_INJECT;
		for (size_t i = 0; i < modules.module_count && rc; i++) {
			if (!is_ntdll(modules.modules[i].path))
				continue;
			installing->ntdll.base = modules.modules[i].base;
			installing->ntdll.size_bytes = modules.modules[i].size_bytes;
			rc = 0;
		}
		if (rc)
			err_set(err, ERR_INJECT, target->name, "it has no ntdll");
	}
	snapshot_release(&modules);
	return rc;
}

static int find_functions(struct installing *installing, struct err *err)
{
	struct target *target = installing->target;
	struct target_image at = {target, installing->ntdll.base};
	struct pe_source source = target_image_source(&at);
	struct pe_image *image = malloc(sizeof(*image));
	int rc = image ? pe_read_headers(&source, image) : -ERR_NOMEM;

	for (int i = 0; !rc && i < HOOK_COUNT; i++) {
		struct tracer_hook *hook = &installing->area->hooks[i];
		uint32_t rva = 0;

		if (!pe_find_export(&source, image, functions[i].name, &rva))
			hook->function = installing->ntdll.base + rva;
		else if (!functions[i].is_optional)
			rc = err_set(
				err, ERR_INJECT, target->name, "ntdll lacks %s", functions[i].name);
	}
	free(image);
	return rc == -ERR_INJECT || !rc ? rc : err_set(err, ERR_INJECT, target->name, "no ntdll");
}

/* Room for the trampolines within reach of ntdll. */
static uint64_t near_room(const struct installing *installing)
{
	uint64_t center = installing->ntdll.base & ~(GRANULE - 1);

	for (uint64_t away = GRANULE; away < PATCH_REACH; away += GRANULE) {
		uint64_t at[] = {center + away, center > away ? center - away : center + away};

		for (int i = 0; i < 2; i++) {
			void *room = VirtualAllocEx(installing->process, (void *)at[i], SLOTS_BYTES,
				MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);

			if (room)
				return (uint64_t)room;
		}
	}
	return 0;
}

static bool write(const struct installing *installing, uint64_t addr, const void *bytes, size_t len)
{
	return WriteProcessMemory(installing->process, (void *)addr, bytes, len, NULL);
}

static int plan(struct installing *installing, struct err *err)
{
	struct tracer_area *area = installing->area;

	for (int i = 0; i < HOOK_COUNT; i++) {
		struct tracer_hook *hook = &area->hooks[i];
		uint64_t slot = area->trampolines + (uint64_t)i * PATCH_SLOT_BYTES;
		uint8_t code[PATCH_CODE_BYTES];
		struct patch_plan plan;
		struct patch_request request = {
			64, code, sizeof(code), hook->function, slot, hook->hook};

		if (!hook->function)
			continue;
		if (target_read(installing->target, hook->function, code, sizeof(code)) ||
			!patch_plan(&plan, &request))
			return err_set(err, ERR_INJECT, installing->target->name,
				"ntdll's %s begins with code that cannot be moved",
				functions[i].name);
		hook->original = slot + plan.original;
		if (hook->hook && (i != HOOK_CREATE_PROCESS || area->flags & TRACER_FLAG_CHILDREN))
			hook->patch_bytes = plan.patch_bytes;
		memcpy(hook->old_bytes, plan.old_bytes, sizeof(plan.old_bytes));
		memcpy(hook->new_bytes, plan.new_bytes, sizeof(plan.new_bytes));
		memcpy(installing->slots + (size_t)i * PATCH_SLOT_BYTES, plan.slot,
			PATCH_SLOT_BYTES);
	}
	return 0;
}

static int reserve(
	struct installing *installing, const struct install_options *options, struct err *err)
{
	struct tracer_area *area = installing->area;
	uint64_t bytes = parts_reserve_bytes(options->limit_bytes);
	void *base = VirtualAllocEx(
		installing->process, NULL, (SIZE_T)bytes, MEM_RESERVE, PAGE_READWRITE);

	if (!base)
		return err_set(err, ERR_INJECT, installing->target->name,
			"no address space for its tables");
	parts_set(area, (uint64_t)base, options->limit_bytes);
	area->sample_bytes = options->sample_bytes;
	area->flags = options->flags;
	area->trampolines = near_room(installing);
	area->trampolines_bytes = SLOTS_BYTES;
	return area->trampolines ? 0 :
				   err_set(err, ERR_INJECT, installing->target->name,
					   "no memory near its ntdll");
}

static bool patch(const struct installing *installing, const struct tracer_hook *hook)
{
	void *at = (void *)hook->function;
	DWORD old, unused;
	bool ok;

	if (!hook->patch_bytes)
		return true;
	if (!VirtualProtectEx(
		    installing->process, at, hook->patch_bytes, PAGE_EXECUTE_READWRITE, &old))
		return false;
	ok = write(installing, hook->function, hook->new_bytes, hook->patch_bytes);
	VirtualProtectEx(installing->process, at, hook->patch_bytes, old, &unused);
	FlushInstructionCache(installing->process, at, hook->patch_bytes);
	return ok;
}

static int apply(struct installing *installing, struct err *err)
{
	struct tracer_area *area = installing->area;
	DWORD old;
	bool ok;

	area->state = TRACER_ON;
	ok = write(installing, area->trampolines, installing->slots, SLOTS_BYTES) &&
	     VirtualProtectEx(installing->process, (void *)area->trampolines, SLOTS_BYTES,
		     PAGE_EXECUTE_READ, &old) &&
	     write(installing, installing->area_addr, area, sizeof(*area));
	for (int i = 0; ok && i < HOOK_COUNT; i++)
		ok = patch(installing, &area->hooks[i]);
	return ok ? 0 :
		    err_set(err, ERR_INJECT, installing->target->name,
			    "its memory cannot be written");
}

int install(struct target *target, void *process, uint64_t area_addr,
	const struct install_options *options, struct err *err)
{
	struct installing *installing = calloc(1, sizeof(*installing));
	int rc = 0;

	if (!installing)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	installing->area = malloc(sizeof(*installing->area));
	installing->target = target;
	installing->process = process;
	installing->area_addr = area_addr;
	if (!installing->area)
		rc = err_set(err, ERR_NOMEM, target->name, NULL);
	if (!rc)
		rc = tracer_area_read(target, area_addr, installing->area, err);
	if (!rc)
		rc = find_ntdll(installing, err);
	if (!rc)
		rc = find_functions(installing, err);
	if (!rc)
		rc = reserve(installing, options, err);
	if (!rc)
		rc = plan(installing, err);
	if (!rc)
		rc = apply(installing, err);
	free(installing->area);
	free(installing);
	return rc;
}
