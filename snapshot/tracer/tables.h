/*
 * Memory for all tables: committed as they fill, in the room that hsnap reserved, up to a limit.
 */
#ifndef SNAPSHOT_TRACER_TABLES_H
#define SNAPSHOT_TRACER_TABLES_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

/* Zeroed memory; false when the limit would be passed, or the system has none. */
bool tables_commit(struct tracer_area *area, void *at, uint64_t bytes);

void tables_decommit(struct tracer_area *area, void *at, uint64_t bytes);

#endif
