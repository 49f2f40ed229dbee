#include "snapshot/tracer/record.h"

#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/stacktable.h"
#include "snapshot/tracer/unwind.h"

static struct unwind_skip own_code;

void record_init(uint64_t from, uint64_t to)
{
	own_code = (struct unwind_skip){from, to};
}

static uint32_t unwind(uint64_t *frames)
{
	uintptr_t before = guard_begin(GUARD_TRACER);
	uint64_t mismatches;
	uint32_t depth = unwind_stack(frames, TRACER_DEPTH_MAX, &own_code);

	guard_end(before);
	mismatches = unwind_mismatches - hsnap_tracer.unwind_base;
	if (hsnap_tracer.unwind_mismatches != mismatches)
		hsnap_tracer.unwind_mismatches = mismatches;
	return depth;
}

uint32_t record_stack(const void *caller)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t id, depth = guard_now() == GUARD_NONE ? unwind(frames) : 0;

	if (!depth) /* on a stack that is not the thread's own, say */
		frames[depth++] = (uint64_t)(uintptr_t)caller;
	id = stacktable_intern(&hsnap_tracer, frames, depth);
	if (!id)
		__atomic_fetch_add(&hsnap_tracer.dropped_stacks, 1, __ATOMIC_RELAXED);
	return id;
}
