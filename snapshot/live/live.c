/* Holding a live process: the order of the steps, and the handling of failures and interrupts. Also
 * page protections, and paths of 32-bit modules. */
#include "snapshot/live/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/base/text.h"
#include "snapshot/target/target.h"

/* PAGE_* from winnt.h, Windows SDK: one of the low eight bits, plus modifiers in higher bits. */
#define PROTECT_KIND 0xffu
#define PROTECT_GUARD 0x100u
#define PROTECT_WRITES                                                                             \
	0xccu /* PAGE_READWRITE, _WRITECOPY, _EXECUTE_READWRITE, _EXECUTE_WRITECOPY */
#define PROTECT_WRITTEN 0x44u /* PAGE_READWRITE, _EXECUTE_READWRITE */
#define PROTECT_WRITECOPY 0x88u /* PAGE_WRITECOPY, _EXECUTE_WRITECOPY */
#define MAPPED 0x40000u /* MEM_MAPPED */
#define IMAGE 0x1000000u /* MEM_IMAGE */

unsigned live_protection_access(uint32_t protect)
{
	if (protect & PROTECT_GUARD)
		return 0;
	switch (protect & PROTECT_KIND) {
	case 0x02: return TARGET_READ; /* PAGE_READONLY */
	case 0x04: /* PAGE_READWRITE */
	case 0x08: return TARGET_READ | TARGET_WRITE; /* PAGE_WRITECOPY */
	case 0x10: return TARGET_EXECUTE; /* PAGE_EXECUTE */
	case 0x20: return TARGET_READ | TARGET_EXECUTE; /* PAGE_EXECUTE_READ */
	case 0x40: /* PAGE_EXECUTE_READWRITE */
	case 0x80: return TARGET_READ | TARGET_WRITE | TARGET_EXECUTE; /* PAGE_EXECUTE_WRITECOPY */
	default: return 0; /* PAGE_NOACCESS, or an invalid value */
	}
}

bool live_is_read_only_view(uint32_t type, uint32_t protect, uint32_t allocation_protect)
{
	const uint32_t kinds = (protect | allocation_protect) & PROTECT_KIND;

	return type == MAPPED && allocation_protect && !(kinds & PROTECT_WRITES);
}

bool live_is_copy(uint32_t type, uint32_t protect, uint32_t allocation_protect)
{
	if ((type != IMAGE && type != MAPPED) || !(protect & PROTECT_WRITTEN))
		return false;
	return type == IMAGE || (allocation_protect & PROTECT_WRITECOPY);
}

const char *live_wow64_path(
	struct arena *arena, const char *path, const char *system, const char *wow64)
{
	size_t system_len = strlen(system), wow64_len = strlen(wow64);
	const char *rest;
	char *result;

	if (strlen(path) <= system_len || !text_same(path, system_len, system, system_len) ||
		path[system_len] != '\\')
		return path;
	rest = path + system_len;
	result = arena_alloc(arena, wow64_len + strlen(rest) + 1);
	strcpy(result, wow64);
	strcpy(result + wow64_len, rest);
	return result;
}

void hold_init(struct hold *hold, const struct hold_calls *calls, void *process, void *ctx)
{
	*hold = (struct hold){.calls = calls, .process = process, .ctx = ctx};
	atomic_init(&hold->reader, process);
	atomic_init(&hold->state, HOLD_NONE);
	atomic_init(&hold->is_over, false);
}

/*
 * Clones the process. If this fails (no right, no memory, a protected process), another attempt
 * would probably fail too. So after one failure, later holds during the same snapshot do not try to
 * make a clone.
 */
static bool make_clone(struct hold *hold)
{
	if (hold->without_clones || !hold->calls->capture)
		return false;
	if (hold->calls->capture(hold->process, &hold->snapshot)) {
		if (hold->calls->clone(hold->snapshot, &hold->clone))
			return true;
		hold->calls->free_snapshot(hold->snapshot);
	}
	hold->snapshot = hold->clone = NULL;
	hold->without_clones = true;
	return false;
}

/* Suspends the process. The guard is armed only in this function. Once an interrupt has ended a
 * hold, this function is not called again. So the thread that ends a suspension may disarm the
 * guard. */
static long suspend(struct hold *hold)
{
	long status;

	hold->calls->arm(hold->ctx);
	status = hold->calls->suspend(hold->process);
	if (status < 0)
		hold->calls->disarm(hold->ctx);
	else
		atomic_store(&hold->state, HOLD_SUSPENDED);
	return status;
}

/* Suspends the process to look at it, clones it in this state, and resumes it. If no clone can be
 * made, the process stays suspended. */
static long look_and_clone(struct hold *hold)
{
	long status = suspend(hold);

	if (status < 0)
		return status;
	hold->calls->look(hold->ctx);
	if (atomic_load(&hold->is_over) || !make_clone(hold))
		return status;
	atomic_store(&hold->reader, hold->clone);
	if (atomic_exchange(&hold->state, HOLD_CLONED) == HOLD_SUSPENDED) {
		hold->calls->resume(hold->process);
		hold->calls->disarm(hold->ctx);
	}
	return status;
}

long hold_start(struct hold *hold)
{
	long status = 0;

	hold_end(hold);
	if (atomic_load(&hold->is_over))
		return HOLD_OVER;
	if (hold->looks && hold->calls->capture && !hold->without_clones) {
		status = look_and_clone(hold);
	} else if (make_clone(hold)) {
		atomic_store(&hold->reader, hold->clone);
		atomic_store(&hold->state, HOLD_CLONED);
	} else if (!atomic_load(&hold->is_over)) {
		status = suspend(hold);
	}
	/* An interrupt is never missed: either the interrupt saw the new hold, or this check sees
	 * the interrupt. */
	if (!atomic_load(&hold->is_over))
		return status;
	hold_end(hold);
	return HOLD_OVER;
}

void hold_end(struct hold *hold)
{
	int state = atomic_exchange(&hold->state, HOLD_NONE);

	if (state == HOLD_SUSPENDED) {
		hold->calls->resume(hold->process);
		hold->calls->disarm(hold->ctx);
	} else if (state == HOLD_CLONED) {
		/* Freeing the snapshot also closes the clone's handle. */
		atomic_store(&hold->reader, hold->process);
		hold->calls->end_clone(hold->clone);
		hold->calls->free_snapshot(hold->snapshot);
	}
}

void hold_interrupt(struct hold *hold)
{
	atomic_store(&hold->is_over, true);
	hold_end(hold);
}

bool hold_is_cloned(struct hold *hold)
{
	return atomic_load(&hold->state) == HOLD_CLONED;
}
