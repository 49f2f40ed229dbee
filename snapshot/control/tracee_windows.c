/* A process that has loaded the tracer: finds ntdll, its exports and the tracer's DLL, writes the
 * area, and writes or compares the jumps. */
#include "snapshot/control/tracee_windows.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "snapshot/control/patch_plan.h"
#include "snapshot/stacks/tracer_read.h"

#define FOLLOW_MAX 4 /* maximum chain of short jumps */

static const struct {
	const char *name;
	bool is_optional;
} functions[HOOK_COUNT] = {[HOOK_ALLOCATE] = {"RtlAllocateHeap", false},
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
	[HOOK_CREATE_THREAD] = {"NtCreateThreadEx", true},
	[HOOK_TERMINATE_THREAD] = {"NtTerminateThread", false},
	[HOOK_CREATE_PROCESS] = {"NtCreateUserProcess", true},
	[HOOK_CLOSE] = {"NtClose", false},
	[HOOK_DUPLICATE] = {"NtDuplicateObject", false},
#define NAME_OF(id, name, count, at, type) [HOOK_##id] = {name, true},
	TRACER_HANDLE_CALLS(NAME_OF)};

static const char *const waits[TRACEE_WAITS] = {"NtWaitForSingleObject", "NtWaitForMultipleObjects",
	"NtWaitForAlertByThreadId", "NtDelayExecution", "NtRemoveIoCompletion",
	"NtRemoveIoCompletionEx", "NtReadFile", "NtDeviceIoControlFile"};

#define CALL_BYTES 32 /* number of bytes of a function that makes a system call and returns */

#define NUMBER_OF(id, name, count, at, type) HOOK_##id,
const enum tracer_hook_id tracee_hook_order[] = {HOOK_CLOSE, HOOK_DUPLICATE,
	TRACER_HANDLE_CALLS(NUMBER_OF) HOOK_FREE, HOOK_DESTROY_HEAP, HOOK_VIRTUAL_FREE, HOOK_UNMAP,
	HOOK_UNMAP_EX, HOOK_TERMINATE, HOOK_TERMINATE_THREAD, HOOK_CREATE_PROCESS, HOOK_REALLOCATE,
	HOOK_CREATE_HEAP, HOOK_VIRTUAL_ALLOCATE, HOOK_VIRTUAL_ALLOCATE_EX, HOOK_MAP, HOOK_MAP_EX,
	HOOK_CREATE_THREAD, HOOK_ALLOCATE};
_Static_assert(sizeof(tracee_hook_order) / sizeof(*tracee_hook_order) == HOOK_COUNT, "every hook");

const char *tracee_function_name(enum tracer_hook_id id)
{
	return functions[id].name;
}

bool tracee_is_in(const struct tracee_range *range, uint64_t addr)
{
	return addr - range->base < range->bytes;
}

bool tracee_is_at_rest(const struct tracee *tracee, uint64_t ip)
{
	for (int i = 0; i < TRACEE_WAITS; i++) {
		if (tracee->waits[i] && ip - tracee->waits[i] < CALL_BYTES)
			return true;
	}
	return !tracee_is_in(&tracee->ntdll, ip);
}

static bool is_in_ntdll(const struct tracee *tracee, uint64_t addr, size_t len)
{
	return len <= tracee->ntdll.bytes && addr >= tracee->ntdll.base &&
	       addr - tracee->ntdll.base <= tracee->ntdll.bytes - len;
}

/* Returns true if an image has the target's bitness. A 32-bit process on 64-bit Windows has two
 * ntdlls. */
static bool has_bits(struct target *target, uint64_t base)
{
	struct target_image at = {.target = target, .base = base};
	struct pe_source source = target_image_source(&at);
	struct pe_image *image = malloc(sizeof(*image));
	bool has = image && !pe_read_headers(&source, image) && image->bits == target->bits;

	free(image);
	return has;
}

int tracee_find(struct target *target, uint64_t *area_addr, struct err *err)
{
	struct snapshot modules;
	int rc;

	snapshot_init(&modules);
	rc = target->ops->modules(target, &modules, err);
	if (!rc)
		rc = tracer_find(target, modules.modules, modules.module_count, area_addr, err);
	snapshot_release(&modules);
	return rc;
}

static int find_modules(struct tracee *tracee, struct err *err)
{
	struct target *target = tracee->target;
	struct snapshot modules;
	int rc;

	snapshot_init(&modules);
	rc = target->ops->modules(target, &modules, err);
	for (size_t i = 0; !rc && i < modules.module_count; i++) {
		const struct module *module = &modules.modules[i];
		struct tracee_range range = {module->base, module->size_bytes};

		if (tracee_is_in(&range, tracee->area_addr))
			tracee->dll = range;
		if (!tracee->ntdll.bytes &&
			!text_compare(module_path_base(module->path), "ntdll.dll") &&
			has_bits(target, module->base))
			tracee->ntdll = range;
	}
	snapshot_release(&modules);
	if (!rc && !tracee->ntdll.bytes)
		rc = err_set(err, ERR_INJECT, target->name, "no ntdll in it");
	if (!rc && !tracee->dll.bytes)
		rc = err_set(err, ERR_GONE, target->name, NULL);
	return rc;
}

/* Returns the address to hook for a function: the end of its short jumps, if they stay inside
 * ntdll. */
static uint64_t hooked_place(const struct tracee *tracee, uint64_t function)
{
	uint8_t code[PATCH_CODE_BYTES];
	struct patch_request request = {
		.bits = tracee->target->bits, .code = code, .code_bytes = sizeof(code)};

	for (int i = 0; i < FOLLOW_MAX; i++) {
		uint64_t to = 0;

		request.function = function;
		if (target_read(tracee->target, function, code, sizeof(code)) ||
			!patch_follow(&request, &to) || !is_in_ntdll(tracee, to, sizeof(code)))
			break;
		function = to;
	}
	return function;
}

#define EXPORTS (HOOK_COUNT + TRACEE_WAITS)

static int find_exports(const struct tracee *tracee, uint32_t rvas[EXPORTS], struct err *err)
{
	struct target *target = tracee->target;
	struct target_image at = {.target = target, .base = tracee->ntdll.base};
	struct pe_source source = target_image_source(&at);
	struct pe_image *image = malloc(sizeof(*image));
	const char *names[EXPORTS];
	int rc = image ? 0 : err_set(err, ERR_NOMEM, target->name, NULL);

	for (int i = 0; i < HOOK_COUNT; i++)
		names[i] = functions[i].name;
	memcpy(names + HOOK_COUNT, waits, sizeof(waits));
	if (!rc && pe_read_headers(&source, image))
		rc = target_err(target, tracee->ntdll.base, "no ntdll", err);
	if (!rc && pe_find_exports(&source, image, names, EXPORTS, rvas))
		rc = target_err(target, tracee->ntdll.base, "unreadable exports of ntdll", err);
	free(image);
	return rc;
}

static int find_functions(struct tracee *tracee, struct err *err)
{
	uint32_t rvas[EXPORTS];
	int rc = find_exports(tracee, rvas, err);

	for (int i = 0; !rc && i < HOOK_COUNT; i++) {
		uint64_t function = tracee->ntdll.base + rvas[i];

		if (rvas[i] && is_in_ntdll(tracee, function, PATCH_CODE_BYTES))
			tracee->functions[i] = hooked_place(tracee, function);
		else if (!functions[i].is_optional)
			rc = err_set(err, ERR_INJECT, tracee->target->name, "ntdll lacks %s",
				functions[i].name);
	}
	for (int i = 0; !rc && i < TRACEE_WAITS; i++) {
		if (rvas[HOOK_COUNT + i])
			tracee->waits[i] = tracee->ntdll.base + rvas[HOOK_COUNT + i];
	}
	return rc;
}

int tracee_new(struct tracee **tracee, struct target *target, HANDLE process, uint64_t area_addr,
	struct err *err)
{
	struct tracee *made;
	int rc;

	if (target->bits != 8 * sizeof(void *))
		return err_set(err, ERR_BITS, target->name, NULL);
	made = calloc(1, sizeof(*made));
	if (!made)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	made->target = target;
	made->process = process;
	made->area_addr = area_addr;
	rc = tracer_area_read(target, area_addr, &made->area, err);
	if (!rc && made->area.state > TRACER_OFF)
		rc = err_set(err, ERR_TARGET, target->name, "its tracer is in an unknown state");
	if (!rc)
		rc = find_modules(made, err);
	if (!rc)
		rc = find_functions(made, err);
	if (rc)
		free(made);
	else
		*tracee = made;
	return rc;
}

void tracee_free(struct tracee *tracee)
{
	free(tracee);
}

bool tracee_write(const struct tracee *tracee, uint64_t addr, const void *bytes, size_t len)
{
	return WriteProcessMemory(tracee->process, (void *)(ULONG_PTR)addr, bytes, len, NULL);
}

bool tracee_set_state(struct tracee *tracee, enum tracer_state state)
{
	uint32_t value = state;

	if (!tracee_write(tracee, tracee->area_addr + offsetof(struct tracer_area, state), &value,
		    sizeof(value)))
		return false;
	tracee->area.state = value;
	return true;
}

enum tracee_jump tracee_jump(const struct tracee *tracee, enum tracer_hook_id id)
{
	const struct tracer_hook *hook = &tracee->area.hooks[id];
	uint8_t bytes[PATCH_BYTES_MAX];

	if (!hook->patch_bytes)
		return JUMP_OUT;
	if (hook->patch_bytes > sizeof(bytes) ||
		!is_in_ntdll(tracee, hook->function, hook->patch_bytes) ||
		target_read(tracee->target, hook->function, bytes, hook->patch_bytes))
		return JUMP_UNREADABLE;
	if (!memcmp(bytes, hook->new_bytes, hook->patch_bytes))
		return JUMP_IN;
	return memcmp(bytes, hook->old_bytes, hook->patch_bytes) ? JUMP_FOREIGN : JUMP_OUT;
}

bool tracee_patch(const struct tracee *tracee, enum tracer_hook_id id, bool in)
{
	const struct tracer_hook *hook = &tracee->area.hooks[id];
	void *at = (void *)(ULONG_PTR)hook->function;
	DWORD old, unused;
	bool ok;

	if (!hook->patch_bytes)
		return true;
	if (hook->patch_bytes > PATCH_BYTES_MAX ||
		!is_in_ntdll(tracee, hook->function, hook->patch_bytes) ||
		!VirtualProtectEx(
			tracee->process, at, hook->patch_bytes, PAGE_EXECUTE_READWRITE, &old))
		return false;
	ok = tracee_write(
		tracee, hook->function, in ? hook->new_bytes : hook->old_bytes, hook->patch_bytes);
	VirtualProtectEx(tracee->process, at, hook->patch_bytes, old, &unused);
	FlushInstructionCache(tracee->process, at, hook->patch_bytes);
	return ok;
}
