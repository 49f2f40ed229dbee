/*
 * Virtual memory that the tracer recorded, in a snapshot: each range is a block under one of three
 * headings that are no heaps.
 */
#ifndef SNAPSHOT_JOIN_VIRTUAL_H
#define SNAPSHOT_JOIN_VIRTUAL_H

#include "snapshot/captured.h"

/* Adds the headings behind the heaps, also when there is nothing under them, if the tracer records
 * virtual memory at all. 0 or -ERR_NOMEM. */
int join_virtual(struct snapshot *snapshot, const struct captured *captured);

#endif
