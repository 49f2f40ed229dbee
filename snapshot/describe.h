/*
 * What a snapshot says beside its blocks: whose it is, which builds of modules, where its stacks come
 * from, and what is missing in it.
 */
#ifndef SNAPSHOT_DESCRIBE_H
#define SNAPSHOT_DESCRIBE_H

#include "snapshot/captured.h"

/* The process and its modules, which are listed already. 0 or -ERR_NOMEM. */
int describe(struct target *target, struct snapshot *snapshot);

/* The source of stacks, and a warning for each gap that the reader of the dump has to know of. */
void describe_stacks(
	const struct target *target, struct snapshot *snapshot, const struct captured *captured);
void describe_gaps(struct snapshot *snapshot, const struct captured *captured);

#endif
