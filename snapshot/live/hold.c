#include "snapshot/live/hold.h"

#include <stddef.h>

void hold_init(struct hold *hold, const struct hold_calls *calls, void *process, void *ctx)
{
	*hold = (struct hold){.calls = calls, .process = process, .ctx = ctx};
	atomic_init(&hold->reader, process);
	atomic_init(&hold->state, HOLD_NONE);
	atomic_init(&hold->is_over, false);
}

/* A clone that could not be made now (no right, no memory, a protected process) cannot be made a
 * moment later: the many tries of one snapshot need not find that out again. */
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

/* The guard is armed here alone, and never after an interrupt found something to end: whoever ends a
 * suspension may disarm it. */
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

long hold_start(struct hold *hold)
{
	long status = 0;

	hold_end(hold);
	if (atomic_load(&hold->is_over))
		return HOLD_OVER;
	if (make_clone(hold)) {
		atomic_store(&hold->reader, hold->clone);
		atomic_store(&hold->state, HOLD_CLONED);
	} else if (!atomic_load(&hold->is_over)) {
		status = suspend(hold);
	}
	/* Either the interrupt saw what was begun, or it is seen here. */
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
		/* Its handle is gone with the snapshot. */
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
