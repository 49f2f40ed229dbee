/*
 * The functions that take the place of ntdll's, and what they share.
 *
 * hsnap has every jump to them written, and taken out again, while no thread stands inside the bytes
 * that change. Calls of the original go through hook_original(), which also works when the jump is out.
 */
#ifndef SNAPSHOT_TRACER_HOOKS_H
#define SNAPSHOT_TRACER_HOOKS_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

/* hsnap finds it by its name, see TRACER_EXPORT. */
extern __declspec(dllexport) struct tracer_area hsnap_tracer;

static inline void *hook_original(enum tracer_hook_id id)
{
	return (void *)(uintptr_t)hsnap_tracer.hooks[id].original;
}

/* False before hsnap has set everything up, and from when it takes the hooks out. That may be while
 * threads are inside hooks: the tables stay until none is. */
static inline bool hooks_are_on(void)
{
	return __builtin_expect(
		__atomic_load_n(&hsnap_tracer.state, __ATOMIC_RELAXED) == TRACER_ON, 1);
}

/* Each fills in tracer_hook.hook for the functions it hooks. */
void hooks_heap_init(void);
void hooks_heaps_init(void);
void hooks_virtual_init(void);
void hooks_process_init(void);

#endif
