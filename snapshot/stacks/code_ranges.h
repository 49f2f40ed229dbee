/*
 * Where a target's code may lie: its modules and its executable memory. What is not there is no
 * frame of a stack.
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
	struct code_range *list; /* by address; none touches the next */
	size_t count, cap;
	uint32_t *recent; /* by place in the address space, which one was found there last */
};

void code_ranges_init(struct code_ranges *ranges);
void code_ranges_release(struct code_ranges *ranges);

/* Lists a target's; what was there before is gone. 0 or -ERR_NOMEM. */
int code_ranges_take(struct code_ranges *ranges, struct target *target,
	const struct module *modules, size_t module_count);

/* True when addr can be where a call returns to: that may lie right behind the code when the call
 * never returns. */
bool code_ranges_have_return(struct code_ranges *ranges, uint64_t addr);

#endif
