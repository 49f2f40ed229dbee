/*
 * What a snapshot says of the tracer that its stacks come from: what it did not record, and why.
 */
#ifndef SNAPSHOT_TRACER_DESCRIBE_H
#define SNAPSHOT_TRACER_DESCRIBE_H

#include "snapshot/captured.h"

/* Fills snapshot->tracer, when there is one. */
void describe_tracer(struct snapshot *snapshot, const struct captured *captured);

/* A warning for each gap that it left, with the remedy. */
void warn_of_tracer(struct snapshot *snapshot, const struct captured *captured);

#endif
