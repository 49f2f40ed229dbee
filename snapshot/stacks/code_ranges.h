/*
 * Ranges of a target that may contain code: its modules and its executable memory. An address
 * outside these ranges is never a frame of a stack.
 */
#ifndef SNAPSHOT_STACKS_CODE_RANGES_H
#define SNAPSHOT_STACKS_CODE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/target/target.h"

struct code_range {
	uint64_t addr, end;
};

struct code_ranges {
	struct code_range *list; /* sorted by address; adjacent ranges are merged */
	size_t count, cap;
	/* Cache of the ranges that were found last: indexes into `list`, by hashed address. */
	uint32_t *recent;
};

void code_ranges_init(struct code_ranges *ranges);
void code_ranges_release(struct code_ranges *ranges);

/* Replaces the list with the target's ranges. Returns 0 or -ERR_NOMEM. */
int code_ranges_capture(struct code_ranges *ranges, struct target *target,
	const struct module *modules, size_t module_count);

/* Returns true if `addr` can be a return address. The return address of a call that never returns
 * may be directly after a range. */
bool code_ranges_have_return(struct code_ranges *ranges, uint64_t addr);

#endif
