/*
 * Memory for all tables: committed as they fill, in the room that hsnap reserved, up to a limit.
 * tracer_area.committed_bytes says at any rest how much that is, to the byte.
 */
#ifndef SNAPSHOT_TRACER_TABLES_H
#define SNAPSHOT_TRACER_TABLES_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

/* Zeroed memory, whole pages, that nobody else commits; false when the limit would be passed, or the
 * system has none. */
bool tables_commit(struct tracer_area *area, void *at, uint64_t bytes);

void tables_decommit(struct tracer_area *area, void *at, uint64_t bytes);

/* Says that memory got from tables_commit() is, after all, that of another thread, which has been
 * given the very same. It stays committed. */
void tables_share(struct tracer_area *area, uint64_t bytes);

/* A table that only grows, at its end. */
struct tables_part {
	uint64_t start, limit_bytes; /* the room: address, whole pages */
	uint64_t step_bytes; /* so much at a time, whole pages */
};

/* Makes the first end bytes of a part usable, of which *committed are; any number of threads. */
bool tables_extend(struct tracer_area *area, const struct tables_part *part, uint64_t *committed,
	uint64_t end);

#endif
