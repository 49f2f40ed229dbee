/*
 * Taking one snapshot: hold the target, walk its heaps and copy the tracer's tables, let it go,
 * then join the two into the model.
 */
#ifndef SNAPSHOT_CAPTURE_H
#define SNAPSHOT_CAPTURE_H

#include "core/model.h"
#include "snapshot/target.h"

struct capture_stats {
	int64_t held_ms; /* how long the target stood still, all tries together */
	unsigned tries;
};

/*
 * Fills snapshot (initialised by the caller). The target runs again when this returns, whatever it
 * returns: 0, -ERR_NOT_TRACED, -ERR_INJECT (its tracer failed), -ERR_GONE, -ERR_TARGET, -ERR_RIGHTS, -ERR_NOMEM.
 */
int capture(struct target *target, struct snapshot *snapshot, struct capture_stats *stats,
	struct err *err);

#endif
