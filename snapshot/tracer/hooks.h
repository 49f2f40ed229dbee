/*
 * The functions that take the place of ntdll's, and what they share.
 *
 * hsnap has every jump to them written, and taken out again, while no thread stands inside the bytes
 * that change. Calls of the original go through hook_original(), which also works when the jump is out.
 */
#ifndef SNAPSHOT_TRACER_HOOKS_H
#define SNAPSHOT_TRACER_HOOKS_H

#include "snapshot/tracer/shared.h"

extern struct tracer_area hsnap_tracer;

static inline void *hook_original(enum tracer_hook_id id)
{
	return (void *)(uintptr_t)hsnap_tracer.hooks[id].original;
}

/* Each fills in tracer_hook.hook for the functions it hooks. */
void hooks_heap_init(void);
void hooks_virtual_init(void);
void hooks_process_init(void);

#endif
