/* Where in a target lies what is read of its tracer. */
#ifndef SNAPSHOT_STACKS_TRACER_PLAN_H
#define SNAPSHOT_STACKS_TRACER_PLAN_H

#include <stdint.h>

#include "snapshot/target/target.h"
#include "snapshot/target/target_ranges.h"

/* Adds the area and all tables that it names, as it says: whoever reads them then checks it. 0 or
 * -ERR_NOMEM; of an area that cannot be read, and of sizes that cannot be, nothing more is added. */
int tracer_plan(struct target *target, uint64_t area_addr, struct target_ranges *ranges);

#endif
